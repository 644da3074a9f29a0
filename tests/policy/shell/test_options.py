"""Options and operands, in the ways that programs commonly take them."""

from __future__ import annotations

import pytest

from quarterdeck.domain.structs import name_set
from quarterdeck.policy.shell.options import Options, operand_at, operands, option
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p a -v b", "a b"),
        ("p -n 3 a", "a"),
        ("p -vn 3 a", "a"),
        ("p -n3 a", "a"),
        ("p -- -n a", "-n a"),
        ("p - a", "- a"),
        ("p $x a", "$x a"),
        ("p --other a", "a"),
    ],
)
def test_operands_are_all_but_options_and_their_values(text: str, expected: str) -> None:
    assert [each.source for each in operands(words(text), VALUES)] == expected.split()


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("p -o a", "-o", ["a"]),
        ("p -oa", "-o", ["a"]),
        ("p -xo a", "-o", ["a"]),
        ("p -o", "-o", [None]),
        ("p -o $x", "-o", [None]),
        ("p --output=a", "--output", ["a"]),
        ("p --output a", "--output", ["a"]),
        ("p --outp=a", "--output", ["a"]),
        ("p --o=a", "--output", []),
        ("p --output-x=a", "--output", []),
        ("p -out a", "-out", ["a"]),
        ("p -o a -o b", "-o", ["a", "b"]),
        ("p -- -o a", "-o", []),
        ("p --other", "-o", []),
        ("p run a", "run", [None]),
        ("p EXEC:a", "EXEC:", [None]),
    ],
)
def test_an_option_is_found_in_every_way_to_write_it(
    text: str, name: str, values: list[str | None]
) -> None:
    assert [value for _, value in option(words(text), name)] == values


def test_there_are_options_or_there_are_none() -> None:
    assert Options(words("p a -v"))
    for text in ("p a b", "p -", "p -- -v"):
        assert not Options(words(text))
