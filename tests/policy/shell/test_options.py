"""The first operand of a wrapper, behind options that are known by two lists."""

from __future__ import annotations

import pytest

from quarterdeck.domain.structs import name_set
from quarterdeck.policy.shell.options import operand_at
from support.shell_words import words

VALUES, FLAGS = name_set("-n --count"), name_set("-v -x --all")


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("p a", "a"),
        ("p -v a", "a"),
        ("p -n 3 a", "a"),
        ("p -n3 a", "a"),
        ("p -vn 3 a", "a"),
        ("p --count 3 a", "a"),
        ("p --count=3 a", "a"),
        ("p --all -- -a", "-a"),
        ("p - a", "-"),
    ],
)
def test_the_first_operand_is_found_behind_known_options(text: str, first: str) -> None:
    given = words(text)
    at = operand_at(given, VALUES, FLAGS)
    assert at is not None
    assert given[at].source == first


@pytest.mark.parametrize("text", ["p -q a", "p -vq a", "p --other a", "p -5 a", "p $x a", "p a*"])
def test_an_option_that_is_not_known_leaves_the_place_open(text: str) -> None:
    assert operand_at(words(text), VALUES, FLAGS) is None


def test_a_number_is_an_option_only_of_those_that_take_one() -> None:
    assert operand_at(words("nice -5 a"), VALUES, frozenset({"-#"})) == 2


def test_where_there_is_no_operand_its_place_is_the_end() -> None:
    assert operand_at(words("p -v"), VALUES, FLAGS) == 2
