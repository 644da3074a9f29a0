"""Variables are known where every command that can set them is; else their words are not known."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell import Part, Word, read


def words_of_show(script: str) -> list[Word]:
    """The arguments of the last `show` of a script."""
    parts: list[Part] = [part for part in read(script, cwd="/w").parts if part.name == "show"]
    return list(parts[-1].words[1:])


def texts(word: Word) -> list[str] | None:
    """All that a word may be; None if it is not known."""
    if word.text is not None:
        return [word.text]
    return sorted(word.texts) or None


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("x=a; show $x", ["a"]),
        ('x="a b"; show "$x"', ["a b"]),
        ("x=a && show ${x}/b", ["a/b"]),
        ("x=a y=$x/c; show $y", ["a/c"]),
        ("export x=a; show $x", ["a"]),
        ("declare -r x=a; show $x", ["a"]),
        ("for x in a b; do show $x; done", ["a", "b"]),
        ('for x in src/*.py; do show "$x"; done', ["src/*.py"]),
        ("for d in a b; do for f in $d/*.c; do show $f; done; done", ["a/*.c", "b/*.c"]),
        ("x=a; if t; then x=b; fi; show $x", ["a", "b"]),
        ("for i in 1 2; do show $x; x=b; done", None),
        ("x=a; for i in 1 2; do show $x; x=b; done", ["a", "b"]),
        ("x=a; (x=b); show $x", ["a", "b"]),
        ('x=(a b); show "${x[@]}"', ["a", "b"]),
        ("show $PWD/a", ["/w/a"]),
        ('show "$HOME/a"', ["~/a"]),
        ("x=~/a; show $x", ["~/a"]),
        ("x=$HOME; show $x/a", ["~/a"]),
        ("cd sub && show $PWD/a", ["/w/sub/a"]),
        ("bash -c 'x=a; show $x'", ["a"]),
        ("f() { show a; }; x=b; show $x", ["b"]),
    ],
)
def test_a_variable_that_is_set_to_texts_is_known(script: str, expected: list[str] | None) -> None:
    (word,) = words_of_show(script)
    assert texts(word) == expected


@pytest.mark.parametrize(
    "script",
    [
        "show $x",
        "t && x=a; show $x",
        "if t; then x=a; fi; show $x",
        "(x=a); show $x",
        "x=a | t; show $x",
        "x=a & show $x",
        "x=$(t); show $x",
        'x="a b"; show $x',
        "x=; show $x",
        "x=a; read x; show $x",
        "x=a; command read -r x; show $x",
        "x=a; printf -v x b; show $x",
        "x=a; unset x; show $x",
        "x=a; eval 'x=b'; show $x",
        "x=a; . ./file; show $x",
        "x=a; trap 'x=b' DEBUG; show $x",
        "x=a; mapfile x; show $x",
        "x=a; x+=b; show $x",
        "x=a; x[0]=b; show $x",
        "x=a; : ${x:=b}; show $x",
        "x=a; : $((x=1)); show $x",
        "x=a; ((x++)); show $x",
        "x=a; declare -n x=y; show $x",
        "x=a; declare -u x; show $x",
        "x=a; $t; show $x",
        "x=a; exec {x}<f; show $x",
        "x=a; y=x; declare $y=b; show $x",
        "IFS=b; x=abc; show $x",
        "x='*'; show $x",
        "x=a; show ${x%b}",
        "x=a; show ${!x}",
        "x=a bash -c 'show $x'",
        "x=a; bash -c 'show $x'",
        "HOME=/b; show $HOME/a",
        "HOME=/b bash -c 'show $HOME/a'",
        "PWD=/b; show $PWD/a",
        "x=$HOME; show a$x",
        "show ${HOME}x",
        "x=a:~/b; show $x",
        "RANDOM=1; show $RANDOM",
        "path=a; show $path",
        "x=a; g() { local x=b; show $x; }; g",
        "g() { show $1; }; g a",
        "for x; do show $x; done",
        "select x in a; do show $x; done",
        'x=(a b); show p"${x[@]}"',
    ],
)
def test_a_variable_that_may_be_anything_is_not_known(script: str) -> None:
    assert any(texts(word) is None for word in words_of_show(script))


@pytest.mark.parametrize(
    "script",
    [
        "echo $((1 + 2))",
        "n=5; echo $((n + 1))",
        "n=$(wc -l < file); echo $((n + 1))",
        'n=$(git status --porcelain | wc -l); [[ "$n" -eq 0 ]]',
        "[[ $(ls | wc -l) -eq 0 ]]",
        "n=$((1 + 1)); echo $((n * 2))",
        "for i in 1 2; do echo $((i + 1)); done",
        "n=5; for ((i = 0; i < n; i++)); do echo $i; done",
        "n=0; ((n++)); echo $n",
        "if [ $? -eq 0 ]; then a; fi",
        "[[ $# -gt 1 ]]",
        # What this script does not set comes from the session.
        "echo $((COLUMNS - 1))",
        "[[ $RETRIES -gt 1 ]]",
    ],
)
def test_arithmetic_with_numbers_is_harmless(script: str) -> None:
    assert read(script, cwd="/w").problems == ()


@pytest.mark.parametrize(
    "script",
    [
        "x='a[$(t)]'; echo $((x))",
        "x='a[$(t)]'; ((x))",
        "x='a[$(t)]'; [[ x -eq 0 ]]",
        "x='a[$(t)]'; [[ 0 -lt x ]]",
        "x='a[$(t)]'; [[ $x -eq 0 ]]",
        "x='a[$(t)]'; for ((i = x; i < 1; i++)); do :; done",
        "x='a[$(t)]'; y=x; echo $((y))",
        "x=1; read x; echo $((x))",
        "x=$(cat file); echo $((x))",
        "x=$(wc -l a b); echo $((x))",
        "x=$(grep -rc a .); echo $((x))",
        "wc() { cat file; }; x=$(wc -l); echo $((x))",
        "f() { echo $(($1 + 1)); }; f 'a[$(t)]'",
        "x='a[$(t)]' bash -c 'echo $((x))'",
        "export x='a[$(t)]'; bash -c '[[ $x -eq 0 ]]'",
        "t && x=1; echo $((x))",
        "echo $(( $(cat file) + 1 ))",
        "[[ $(cat file) -eq 0 ]]",
        "[[ -v a[$(t)] ]]",
    ],
)
def test_arithmetic_with_anything_else_is_a_problem(script: str) -> None:
    assert read(script, cwd="/w").problems


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("f() { ls a; }; f x", True),
        ("f()\n{\n  ls a\n}\nf x", True),
        ("cd() { :; }; cd src; cat a", False),
        ("test() { :; }; test x", False),
        ("bash -c 'f() { ls; }; f'", False),
    ],
)
def test_a_function_is_read_unless_it_changes_what_the_shell_does(
    script: str, expected: bool
) -> None:
    assert (read(script, cwd="/w").problems == ()) is expected


def test_the_folder_is_unknown_after_a_function_that_may_change_it() -> None:
    stays, moves = (
        read(f"f() {{ {body}; }}; f; cat a", cwd="/w").parts[-1] for body in ("ls", "cd b")
    )
    assert (stays.dirs, moves.dirs) == (("/w",), ())
