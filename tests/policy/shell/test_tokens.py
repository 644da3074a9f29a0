"""Tokens of the strict reading: what is a word, an operator, a redirection, a document."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.strict import read_strictly
from quarterdeck.policy.shell.tokens import LEVELS, Kind


def tokens(text: str) -> list[tuple[str, str]]:
    """The tokens that count, each with its kind."""
    passed = {Kind.BLANK, Kind.END}
    return [
        (token.kind.value, text[token.start : token.end])
        for token in read_strictly(text).tokens
        if token.kind not in passed
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b", [("word", "a"), ("word", "b")]),
        ("a&&b", [("word", "a"), ("operator", "&&"), ("word", "b")]),
        ("a|&b", [("word", "a"), ("operator", "|&"), ("word", "b")]),
        ("a;b", [("word", "a"), ("operator", ";"), ("word", "b")]),
        ("a 2>&1", [("word", "a"), ("redirection", "2>&"), ("word", "1")]),
        ("a2>b", [("word", "a2"), ("redirection", ">"), ("word", "b")]),
        ("a &>>b", [("word", "a"), ("redirection", "&>>"), ("word", "b")]),
        ("a #b", [("word", "a"), ("comment", "#b")]),
        ("a#b", [("word", "a#b")]),
        ("a\nb", [("word", "a"), ("newline", "\n"), ("word", "b")]),
        ("'a b'c\"d e\"", [("word", "'a b'c\"d e\"")]),
        ("a\\ b", [("word", "a\\ b")]),
        ("$'a\\'b' c", [("word", "$'a\\'b'"), ("word", "c")]),
        ("${a:-b c} d", [("word", "${a:-b c}"), ("word", "d")]),
        ("x=(a b) c", [("word", "x=(a b)"), ("word", "c")]),
    ],
)
def test_a_text_falls_into_tokens_as_bash_has_them(
    text: str, expected: list[tuple[str, str]]
) -> None:
    assert tokens(text) == expected
    assert read_strictly(text).outside is None


def test_the_lines_of_a_document_are_one_token_with_its_last_line() -> None:
    found = tokens("cat <<E\na; b\nE\nc")
    assert [text for kind, text in found if kind == "document"] == ["a; b\nE"]
    assert found[-1] == ("word", "c")


@pytest.mark.parametrize("text", ["a 'b", 'a "b', "a $(b", "a `b", "a ${b", "a <<E\nb", "a $'b"])
def test_what_does_not_end_is_outside_of_what_is_understood(text: str) -> None:
    assert read_strictly(text).outside is not None


def test_levels_have_an_end() -> None:
    def nested(levels: int) -> str:
        return "$(a " * levels + ")" * levels

    assert read_strictly(nested(LEVELS // 2)).outside is None
    outside = read_strictly(nested(LEVELS + 1)).outside
    assert outside is not None


@pytest.mark.parametrize("text", ["a 'b", "a && b; c | d", "a <<E\nb\nE\n", "a $(b `c`) # d", "("])
def test_tokens_make_up_the_text_without_a_gap(text: str) -> None:
    found = [token for token in read_strictly(text).tokens if token.kind is not Kind.END]
    assert "".join(text[token.start : token.end] for token in found) == text
