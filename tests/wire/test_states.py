"""The table of states: what may follow what, and that the docs show it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from quarterdeck.domain.errors import UsageError
from quarterdeck.wire.states import TABLE, State, Transition, transition

PROJECT = Path(__file__).parents[2]


def test_every_state_has_a_row() -> None:
    assert set(TABLE) == set(State)


def test_every_state_can_be_reached_and_every_open_one_can_be_left() -> None:
    reached, found = set(), {State.NEW}
    while found:
        reached |= found
        found = {after for state in found for after in TABLE[state].values()} - reached
    assert reached == set(State)
    for state in set(State) - {State.CLOSED}:
        assert TABLE[state][Transition.LINK_CLOSED] is State.CLOSED


def test_nothing_follows_closed() -> None:
    for happening in Transition:
        if happening in {Transition.INITIALIZE, Transition.PROMPT}:
            with pytest.raises(UsageError, match="closed"):
                transition(State.CLOSED, happening)
        else:
            assert transition(State.CLOSED, happening) is State.CLOSED


@pytest.mark.parametrize("state", [state for state in State if state is not State.CLOSED])
def test_a_prompt_is_taken_in_every_open_state(state: State) -> None:
    transition(state, Transition.PROMPT)


def test_what_the_cli_does_is_never_refused() -> None:
    for state in State:
        for happening in set(Transition) - {Transition.INITIALIZE, Transition.PROMPT}:
            transition(state, happening)


def test_a_second_initialize_before_the_first_is_answered_is_a_mistake() -> None:
    with pytest.raises(UsageError, match="initialis"):
        transition(State.INITIALIZING, Transition.INITIALIZE)


def test_the_docs_show_the_table_as_it_is() -> None:
    spec = importlib.util.spec_from_file_location(
        "draw_states", PROJECT / "tools" / "draw_states.py"
    )
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.PAGE.read_text() == tool.draw(), "run `make docs`"
