"""The values that a command is told in: names and literal texts."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.script import Part
from support.shell_words import words


def part(text: str) -> Part:
    return Part(words=words(text), text=text, forms=(), span=(0, len(text)))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("git push", "git"),
        ("/usr/bin/git push", "git"),
        ("./a", "a"),
        ("'rm' x", "rm"),
        ("$x a", None),
        ("a* b", None),
        ("~/a b", None),
        ("", None),
    ],
)
def test_a_part_is_named_by_its_program_where_that_is_known(text: str, name: str | None) -> None:
    assert part(text).name == name


@pytest.mark.parametrize(
    ("text", "literal"),
    [("a", "a"), ("'a*'", "a*"), ("a*", None), ("~", None), ("'~'", "~"), ("$x", None)],
)
def test_a_word_is_literal_where_the_command_gets_just_that(text: str, literal: str | None) -> None:
    assert words(text)[0].literal == literal
