"""Lists of names that are written as text."""

from __future__ import annotations

from quarterdeck.policy.shell.lists import names


def test_names_are_apart_at_any_blanks_and_count_once() -> None:
    assert names("a  b\n  -c a\t[[") == {"a", "b", "-c", "[["}


def test_a_text_of_blanks_names_nothing() -> None:
    assert names(" \n ") == frozenset()
