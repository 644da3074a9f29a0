"""The strict reading: commands by bash's own grammar, and where it and the tree must agree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.policy.shell import read
from quarterdeck.policy.shell.strict import difference, plain_marks, read_strictly
from support.examples import examples

ODD = (
    "'",
    '"',
    "\\",
    "\n",
    "\\\n",
    "$",
    "$(",
    "`",
    ")",
    "(",
    "${x:-",
    "}",
    "<<E",
    "\nE\n",
    "#",
    "$'",
)
OTHER = (
    " ",
    "a",
    "b c",
    ";",
    "&&",
    "|",
    "[[ ",
    " ]]",
    "=~",
    "if ",
    "then ",
    "fi",
    "x=",
    "<(",
    "2>&1",
)


def commands(text: str) -> list[list[str]]:
    """The words of every simple command, in the order in which they stand."""
    found: dict[int, list[tuple[int, str]]] = {}
    reading = read_strictly(text)
    assert reading.outside is None, reading.outside
    for start, end, what, place, _ in reading.marks:
        if what in {"word", "assignment", "test"}:
            found.setdefault(place, []).append((start, text[start:end]))
    return [[word for _, word in sorted(words)] for _, words in sorted(found.items())]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b", [["a", "b"]]),
        ("a\n\\\nb c", [["a"], ["b", "c"]]),
        ("a \\\n  b\\\n c", [["a", "b", "c"]]),
        ("a <<E b\nx\nE\nc", [["a", "b"], ["c"]]),
        ("a <<-E\n\tx\n\tE\nb", [["a"], ["b"]]),
        ("x=$ a b", [["x=$", "a", "b"]]),
        ("a b''\\c", [["a", "b''\\c"]]),
        ("[ a ]#;b", [["[ a ]#"], ["b"]]),
        ("a b#c # d\ne", [["a", "b#c"], ["e"]]),
        ("a $'\\\\'; b #'", [["a", "$'\\\\'"], ["b"]]),
        ("a ==\nb", [["a", "=="], ["b"]]),
        ("a -b2>&1", [["a", "-b2"]]),
        ("[[ x =~ `a` ]]", [["[[ x =~ `a` ]]"], ["a"]]),
        ('a "$(b "$(c)")"', [["a", '"$(b "$(c)")"'], ["b", '"$(c)"'], ["c"]]),
        ("a $(case x in x) b;; esac) c", [["a", "$(case x in x) b;; esac)", "c"], ["b"]]),
        ("x=(a b # c\n d) e", [["x=(a b # c\n d)", "e"]]),
        ("cat <<E\n$(a)\n\\$(b)\nE", [["cat"], ["a"]]),
        ("cat <<'E'\n$(a)\nE", [["cat"]]),
        ("cat <<E\na \\\nE\nE\nb", None),
        ("cat <<E\nE\\\n\nb", None),
        ('a "$\\\n(b)"', None),
        ("a ${x:-<(b)}", None),
        ("a b\\\nc", None),
        ("a &\\\n& b", None),
        ("f() { a; }", [["a"]]),
        ("f () { a; }", [["a"]]),
        ("f()\n{ a; }; b", [["a"], ["b"]]),
        ("f() ( a )", None),
        ("echo f() { a; }", None),
        ("function f { a; }", None),
        ("((a))", []),
        ("((a + 1)) && b", [["b"]]),
        ("((a); (b))", None),
        ("((a[1]))", None),
        ("for ((i=0; i<9; i++)); do a; done", [["a"]]),
        ("for ((i=0; i<9)); do a; done", None),
        ("for ((;;)); do a; done", [["a"]]),
        ('a $"b"', None),
        ("a `b \\`c\\``", None),
    ],
)
def test_commands_are_those_that_bash_would_run_or_it_is_given_up(
    text: str, expected: list[list[str]] | None
) -> None:
    if expected is None:
        assert read_strictly(text).outside is not None
    else:
        assert commands(text) == expected


@settings(max_examples=examples(500))
@given(
    st.one_of(
        st.text(st.characters(max_codepoint=255), max_size=60),
        st.lists(st.sampled_from(ODD + OTHER), max_size=20).map("".join),
    )
)
def test_it_never_raises_and_its_tokens_are_the_text(text: str) -> None:
    reading = read_strictly(text)
    assert "".join(text[token.start : token.end] for token in reading.tokens) == text
    at = 0
    for token in reading.tokens:
        assert token.start == at < token.end
        at = token.end


@pytest.mark.parametrize(
    ("deep", "closed"),
    [
        ("a $(", ")"),
        ("${x:-", "}"),
        ("( ", ")"),
        ("{ ", "; }"),
        ("if a; then ", "; fi"),
        ('a "$(', ')"'),
        ("a <(", ")"),
        ("$((", "))"),
        ("[[ (", ") ]]"),
    ],
)
def test_nesting_without_end_is_given_up_and_not_followed(deep: str, closed: str) -> None:
    for text in (deep * 2_000, deep * 900 + "a" + closed * 900):
        assert read_strictly(text).outside is not None
        assert read(text).problems
        assert read(f"echo {text}").problems


@pytest.mark.parametrize(
    "text",
    ["<<<" * 4_000, "<<E " * 4_000, "a\\\n" * 4_000, "'\"" * 8_000, "cat <<E\n" + "a\\\n" * 5_000],
)
def test_long_texts_are_read_once(text: str) -> None:
    """It would be noticed: a reader that went back would take minutes."""
    reading = read_strictly(text)
    assert sum(token.end - token.start for token in reading.tokens) == len(text)


def test_what_only_one_reading_saw_is_a_difference() -> None:
    one = read_strictly("a b").marks
    assert difference(one, read_strictly("a b").marks) is None
    assert difference(one, one[:1]) == (2, 3, "word", 0, 0)
    assert difference(one, [*one, one[0]]) is not None


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git log --oneline | head -20 && echo 'done' || true",
        'git commit -m "$(cat <<\'EOF\'\nIt\'s done.\n\n- "all" of it\n- $(not) `run`\nEOF\n)"',
        "cat > notes.md <<'EOF'\n# it's a `title`\n$x\nEOF\nls",
        "cat <<EOF | tee a.txt\nhello $USER \\\n again\nEOF",
        "python3 - <<'PY' > out.txt 2>&1\nprint(\"x\")\nPY",
        "for f in *.py; do echo \"$f\" | grep -v 'x' > /dev/null; done",
        'while read -r line; do echo "${line%%:*}"; done < list.txt',
        "if [ -f a ] && [[ $x =~ ^(a|b)+$ ]]; then ls; elif test -d b; then pwd; else :; fi",
        'case "$1" in a|b) ls ;; (c) pwd ;; *) exit 1 ;; esac',
        'x=$(ls | wc -l) y="a b" make -j4 2>&1 | tail -n 5',
        "find . -name '*.py' -not -path './a/*' -exec grep -l x {} + | sort",
        "awk -F, '{ s += $3 } END { print s }' data.csv",
        "{ ls; pwd; } > out 2> err & wait",
        "(cd src && make) || exit 1",
        "diff <(sort a) <(sort b)",
        'echo "${x:-a b}" ${y#"$z"} $((1 + 2)) $\'a\\tb\' "it\'s" \'say "x"\'',
        "curl -s 'http://h/?a=1&b=2' -H \"A: $B\" # a comment; rm x",
        "npm test \\\n  --silent \\\n  && echo ok",
        "echo ä 'ö' \"ü\" # é\nls ñ",
        'export A=1 B="x y"; arr=(a "b c"); ls >&2 2>&-',
        'ls 2>/dev/null >> log; cat <<< "$x" | tr a b |& cat',
        "! grep -q x y && time make -s; : > empty",
        "until test -f x; do sleep 1; done",
    ],
)
def test_what_people_write_is_read_the_same_by_both(command: str) -> None:
    assert read_strictly(command.encode().decode("latin-1")).outside is None
    whys = [problem.why for problem in read(command, cwd="/w").problems]
    assert "bash may read it differently" not in whys


_PIECES = (
    *("a", "git", "-x", "--y=z", "./b", "'q r'", '"q;|"', "a'b'c", "*", "~", "{a,b}", "[x]", "2"),
    *("|", "||", "&&", ";", "&", ";;", "|&", " ", "  ", "\t", "\n", "\\", "$x", "`", "(", ")"),
    *("if", "then", "fi", "in", "do", "{", "}", "!", "[", "[[", "]]", "case", "time", "declare"),
    *("x=1", "x+=1", "a=b", "=", "#", "#x", "a#b", "<", ">f", "2>", "'", '"', "f()", "é", "!!"),
)


@settings(max_examples=examples(2_000), deadline=None)
@given(
    pieces=st.lists(st.sampled_from(_PIECES), max_size=8),
    between=st.sampled_from(("", " ", " ", " ")),
)
def test_a_line_of_simple_commands_has_the_marks_of_the_whole_grammar(
    pieces: list[str], between: str
) -> None:
    text = between.join(pieces)
    plain = plain_marks(text)
    reading = read_strictly(text)
    if plain is not None:
        assert (sorted(plain), None) == (sorted(reading.marks), reading.outside)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("git status", True),
        ("cat a.txt | grep -n 'foo bar' | head -5", True),
        ('cd src && python3 -m pytest -q "tests/a b" ; ls *.py', True),
        ("! git status", False),
        ("[ -f a ]", False),
        ("x=1 git status", False),
        ("git status # why", False),
        ("git status\ntouch a", False),
        ("git status \\\ntouch a", False),
        ("git log $x", False),
        ("git log > a", False),
        ("git status &", False),
        ("a | | b", False),
        ("| a", False),
        ("a &&", False),
        ("", False),
    ],
)
def test_only_words_blanks_and_joints_make_a_line_of_simple_commands(
    text: str, plain: bool
) -> None:
    assert (plain_marks(text) is not None) is plain
