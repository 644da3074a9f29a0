"""One word: what the shell makes of it, where that can be known."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.policy.shell import read
from quarterdeck.policy.shell.word_reader import MOST_TEXTS, _braces, join_words, read_word
from support.shell_words import words


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a", "a"),
        ("'b c'", "b c"),
        ('"d"e', "de"),
        ("$'\\x66'", "f"),
        ("$'\\101\\n\\''", "A\n'"),
        ("g\\ h", "g h"),
        ("\\\na", "a"),
        ('"a\\$b\\\\c\\d"', "a$b\\c\\d"),
        ("a$", "a$"),
        ('"$"', "$"),
        ("''", ""),
        ("'$x'", "$x"),
        ("~/i", "~/i"),
        ("*.j", "*.j"),
    ],
)
def test_a_word_whose_text_is_known(source: str, text: str) -> None:
    found = read_word(source)
    assert found.source == source
    assert found.text == text
    assert found.prefix == text


@pytest.mark.parametrize(
    ("source", "prefix"),
    [
        ("$k", ""),
        ('"l$m"', "l"),
        ("a`b`", "a"),
        ("a$(b)", "a"),
        ("a'b", "a"),
        ('$"a"', ""),
        ("=a", ""),
        ("a$'\\cx'", "a"),
        ("$'\\0'", ""),
        ("$'\\xe4'", ""),
        ("a<(b)", "a"),
        ("a b", "a"),
    ],
)
def test_a_word_that_only_running_it_can_tell(source: str, prefix: str) -> None:
    found = read_word(source)
    assert found.text is None
    assert found.prefix == prefix


@pytest.mark.parametrize(
    ("source", "glob", "tilde", "quoted"),
    [
        ("*.j", True, False, False),
        ("'*'", False, False, True),
        ("\\*", False, False, True),
        ("a?", True, False, False),
        ("[ab]", True, False, False),
        ("~/a", False, True, False),
        ("'~'/a", False, False, True),
        ("a~", False, False, False),
        ("{a,b}", True, False, False),
    ],
)
def test_patterns_homes_and_quotes_are_told(
    source: str, glob: bool, tilde: bool, quoted: bool
) -> None:
    found = read_word(source)
    assert (found.glob, found.tilde, found.quoted) == (glob, tilde, quoted)


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("{a,b}", ("a", "b")),
        ("x{a,b}y", ("xay", "xby")),
        ("{a,b}{c,d}", ("ac", "ad", "bc", "bd")),
        ("{1..3}", ("1", "2", "3")),
        ("{3..1}", ("1", "2", "3")),
        ("'{a,b}'", ()),
        ("{a,{b,c}}", ()),
        ("{a,$x}", ()),
        ("{1..1000}", ()),
        ("{a..c}", ()),
    ],
)
def test_the_few_words_that_braces_make_are_told(source: str, texts: tuple[str, ...]) -> None:
    found = read_word(source)
    assert tuple(sorted(found.texts)) == texts
    assert (found.text is None) == (source != "'{a,b}'")


def test_many_words_of_braces_are_not_looked_at() -> None:
    most = ",".join(str(number) for number in range(MOST_TEXTS))
    assert len(read_word(f"{{{most}}}").texts) == MOST_TEXTS
    assert read_word(f"{{{most},more}}").texts == ()


@given(text=st.text("{}.,a", max_size=10))
def test_braces_are_found_as_before(text: str) -> None:
    plain = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}|\{[^}]*[,{]")
    assert _braces(text) == (plain.search(text) is not None)


@given(st.text(alphabet="ab$(){}[]`'\"\\|&;<>\n #*?~!=-/ ", max_size=30))
def test_any_text_is_a_word_that_begins_with_what_is_said(source: str) -> None:
    found = read_word(source)
    assert found.source == source
    if found.text is not None:
        assert found.prefix == found.text


def test_the_words_of_one_command_are_each_what_the_shell_makes_of_them() -> None:
    (part,) = read("a 'b c' \"d\"e $'\\x66' g\\ h ~/i *.j $k \"l$m\"", cwd="/w").parts
    assert [each.text for each in part.words] == [
        "a", "b c", "de", "f", "g h", "~/i", "*.j", None, None,
    ]  # fmt: skip
    assert [each.source for each in part.words if each.tilde] == ["~/i"]
    assert [each.source for each in part.words if each.glob] == ["*.j"]
    assert part.words[8].prefix == "l"


def test_words_are_joined_as_they_were_written() -> None:
    assert join_words(words("a 'b' $c")) == "a 'b' $c"
