"""Lists of names that are written as text."""

from __future__ import annotations

from quarterdeck.domain.structs import name_set


def test_names_are_apart_at_any_blanks_and_count_once() -> None:
    assert name_set("a  b\n  -c a\t[[") == {"a", "b", "-c", "[["}


def test_a_text_of_blanks_names_nothing() -> None:
    assert name_set(" \n ") == frozenset()
