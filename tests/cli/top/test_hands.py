"""Keys on a question: what counts, and what was not meant for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.cli.top.hands import SETTLE_SECONDS, Hands, Press

GO, ARMED, EARLY = Press.GO, Press.ARMED, Press.EARLY


class Person:
    def __init__(self) -> None:
        self.now = 50.0
        self.hands = Hands(lambda: self.now)

    def after(self, seconds: float, key: str = "a", *, lasting: bool = False) -> Press:
        self.now += seconds
        return self.hands.press(key, lasting=lasting)


def test_a_key_counts_after_a_moment_of_rest() -> None:
    person = Person()
    assert not person.hands.ready
    assert person.after(0.39) is EARLY
    assert person.after(0.39) is EARLY
    assert person.after(0.41) is GO


def test_whatever_moves_begins_the_moment_anew() -> None:
    person = Person()
    person.now += 10
    person.hands.note_move()
    assert person.after(0.3) is EARLY
    person.hands.note_move()
    assert person.after(0.41) is GO


def test_what_lasts_needs_the_same_key_twice() -> None:
    person = Person()
    assert person.after(1, "s", lasting=True) is ARMED
    assert person.after(1, "w", lasting=True) is ARMED
    assert person.after(1, "s", lasting=True) is ARMED
    assert person.after(1, "s", lasting=True) is GO
    assert person.after(1, "s", lasting=True) is ARMED


DISARMS: dict[str, Callable[[Person], object]] = {
    "a move": lambda person: person.hands.note_move(),
    "another key": lambda person: person.after(1),
    "escape": lambda person: person.hands.disarm(),
}


@pytest.mark.parametrize("what", DISARMS)
def test_the_first_press_of_a_lasting_key_is_forgotten(what: str) -> None:
    person = Person()
    assert person.after(1, "s", lasting=True) is ARMED
    DISARMS[what](person)
    assert person.after(1, "s", lasting=True) is ARMED


@given(st.lists(st.floats(0.01, SETTLE_SECONDS - 0.01), min_size=1), st.booleans())
def test_a_key_that_is_held_down_never_counts(gaps: list[float], lasting: bool) -> None:
    person = Person()
    for gap in gaps:
        assert person.after(gap, lasting=lasting) is EARLY


@given(st.lists(st.floats(0.01, SETTLE_SECONDS - 0.01), min_size=1))
def test_a_lasting_key_that_is_held_down_is_armed_at_most(gaps: list[float]) -> None:
    person = Person()
    assert person.after(1, "s", lasting=True) is ARMED
    for gap in gaps:
        assert person.after(gap, "s", lasting=True) is EARLY
