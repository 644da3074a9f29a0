"""Reading shell commands: which parts they have, and what cannot be known."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.domain.structs import name_set
from quarterdeck.policy.shell import LIMIT, EffectKind, Part, Script, read
from quarterdeck.policy.shell.arithmetic import _INDEXED
from support.examples import examples


def texts(command: str) -> list[str]:
    return [part.text for part in read(command, cwd="/w").parts if part.text]


def problems(command: str) -> list[str]:
    return [problem.why for problem in read(command, cwd="/w").problems]


def only(command: str) -> Part:
    (part,) = read(command, cwd="/w").parts
    return part


def written(command: str) -> set[str]:
    """Every path that the command may write."""
    found: set[str] = set()
    for part in read(command, cwd="/w").parts:
        for target in part.writes:
            found.update(target.paths or ("?",))
        for effect in part.effects:
            if effect.kind is EffectKind.WRITES and effect.target is not None:
                found.update(effect.target.paths or ("?",))
    return found


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("git status", ["git status"]),
        ("git   status\t-s", ["git status -s"]),
        ("a && b || c; d & e", ["a", "b", "c", "d", "e"]),
        ("a | b |& c", ["a", "b", "c"]),
        ("(a; { b; })", ["a", "b"]),
        ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
        ("while a; do b; done; until c; do d; done", ["a", "b", "c", "d"]),
        ("for i in $(a); do b; done", ["a", "b"]),
        ("case $(a) in x) b;; *) c;; esac", ["a", "b", "c"]),
        ("[[ -f $(a) ]] && b", ["a", "b"]),
        ("a $(b `c`) <(d)", ["b `c`", "c", "d", "a $(b `c`) <(d)"]),
        ("cat <<E\n$(a)\nE\nb", ["a", "cat", "b"]),
        ("cat <<'E'\n$(a)\nE\nb", ["cat", "b"]),
        ("! a", ["a"]),
        ("a # b\n# c\nd", ["a", "d"]),
        ("a \\\n  b", ["a b"]),
        ("x=$(a)", ["a"]),
        ("timeout 5 nice -n 3 a b", ["a b"]),
        ("sudo -u me a b", ["sudo -u me a b", "a b"]),
        ("bash -c 'a; b'", ["bash -c 'a; b'", "a", "b"]),
        ("find . -exec a {} \\; -exec b \\;", ["find . -exec a {} \\; -exec b \\;", "b", "a {}"]),
        ("ssh host 'a; b'", ["ssh host 'a; b'", "a", "b"]),
        ("x | xargs a", ["x", "a"]),
    ],
)
def test_every_command_is_found_wherever_it_stands(command: str, parts: list[str]) -> None:
    assert sorted(texts(command)) == sorted(parts)
    assert problems(command) == []


@pytest.mark.parametrize(
    "command",
    [
        "$x",
        "$(a) b",
        "a 'b",
        "a\rb",
        "a\u00a0b",
        "r\\\nm x",
        "cd() { a; }",
        "alias a=b",
        "coproc a",
        "echo ${x@P}",
        "x=a; echo $((x))",
        "eval $x",
        "cat <<A <<B\nA\nB",
        "env -S 'a b'",
        "PATH=/tmp",
        "",
        "a" * (LIMIT + 1),
    ],
)
def test_what_cannot_be_known_is_a_problem(command: str) -> None:
    assert problems(command) != []


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("tee a /b", {"/w/a", "/b"}),
        ("rm -rf a", {"/w/a"}),
        ("cp a b c", {"/w/c", "/w/c/a", "/w/c/b"}),
        ("cp -t c a b", {"/w/c", "/w/c/a", "/w/c/b"}),
        ("mv a b", {"/w/a", "/w/b", "/w/b/a"}),
        ("dd if=a of=b", {"/w/b"}),
        ("sort -o a b", {"/w/a"}),
        ("sort --outp=a b", {"/w/a"}),
        ("curl -sSo a http://x", {"/w/a"}),
        ("sed -i s/a/b/ c", {"/w/c"}),
        ("git diff --output=a", {"/w/a"}),
        ("cd x && touch a", {"/w/x/a"}),
        ("cd x; touch a", {"/w/x/a", "/w/a"}),
        ("(cd x); touch a", {"/w/a"}),
        ("cd $x && touch a", {"?"}),
        ("cd x && echo > a", {"/w/x/a"}),
        ("touch $x", {"?"}),
        ("> a", {"/w/a"}),
        ("cat a", set()),
    ],
)
def test_what_a_command_writes_is_known(command: str, paths: set[str]) -> None:
    assert written(command) == paths


def test_a_path_that_a_link_could_bend_is_not_sure() -> None:
    def sure(command: str) -> bool:
        return all(e.target.sure for e in only(command).effects if e.target is not None)

    assert sure("cat a/b")
    assert sure("cat ../b")
    assert not sure("cat a/../b")
    cd, cat = read("cd a && cat ../b", cwd="/w").parts
    assert cat.effects[0].target is not None
    assert not cat.effects[0].target.sure
    assert cd.name == "cd"


def test_spans_are_in_characters() -> None:
    command = "echo 'äöü'; rm x"
    second = read(command).parts[1]
    assert command[slice(*second.span)] == "rm x"


WORDS = sorted(
    name_set("""
git rm -c $( ) ` ' " ; && || | <<EOF EOF if then fi for do done case esac in { } [[ ]] (( )) > <
>> find -exec {} \\; xargs sudo bash sed -i tar -I awk crontab - -- env ssh cd .. /x ~ =x a=1 $x
${x} $'a' {a,b} * make dd of= vim +q
""")
)


@settings(max_examples=examples(300))
@given(
    st.one_of(
        st.text(max_size=60),
        st.text(alphabet="ab$(){}[]`'\"\\|&;<>\n #*?~!=-/ \t", max_size=80),
        st.lists(
            st.sampled_from(WORDS),
            max_size=25,
        ).map(" ".join),
    )
)
def test_reading_is_total(command: str) -> None:
    script = read(command, cwd="/w")
    assert isinstance(script, Script)
    for part in script.parts:
        assert 0 <= part.span[0] <= part.span[1] <= len(command)
    if not script.parts and not script.problems:
        # Nothing runs: there is nothing in it but assignments, tests, comments, or copies of files'
        # numbers (`<&0`).
        assert not command.strip() or any(mark in command for mark in "=#[<>")


@given(text=st.text("$[a1_ ", max_size=10))
def test_an_index_is_found_as_before(text: str) -> None:
    plain = re.compile(r"[$\[A-Za-z]\w*\[|\$")
    assert (_INDEXED.search(text) is not None) == (plain.search(text) is not None)


SHAPES = {
    "a list": ("git status && ", 1),
    "words": ("a ", 1),
    "substitutions": ("echo $(ls x); ", 1),
    "quotes": ("'a' \"b\" ", 1),
    "here-documents": ("cat <<E\n$(a)\nE\n", 1),
    "redirections": ("a > b < c; ", 1),
    "brackets that do not close": ("( ", 1),
    "quotes in quotes": ("bash -c 'ls'; ", 1),
    "assignments": ("a=1 ", 1),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_work_grows_with_the_length_and_no_faster(shape: str) -> None:
    piece, _ = SHAPES[shape]

    def steps(times: int) -> int:
        return read(piece * times + "end").steps

    short, long = steps(40), steps(160)
    assert long <= 4.6 * short + 50


def test_the_analysis_of_a_command_is_kept_for_the_same_text_and_folder_only() -> None:
    there = read("cat a.txt", cwd="/x")
    assert read("cat a.txt", cwd="/x") is there
    paths = [effect.target.paths for effect in there.parts[0].effects if effect.target]
    other = read("cat a.txt", cwd="/y").parts[0]
    assert paths == [("/x/a.txt",)]
    assert [effect.target.paths for effect in other.effects if effect.target] == [("/y/a.txt",)]
    long = f"echo {'a' * LIMIT}"
    assert read(long[:1024], cwd="/x") is not read(long[:1024], cwd="/x")
    assert read("ls", limit=1).problems
    assert not read("ls").problems
