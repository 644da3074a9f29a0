"""The states of the CLI, as one table.

The whole state machine is in this file: the states, the transitions, and the next states. `peer`
detects transitions and calls `transition`; `tools/draw_states.py` draws the diagram in the docs
from `TABLE`.

A transition by the CLI is never refused: without a row for the present state, the state stays. A
transition by *us* must have a row, else the caller made a mistake (`UsageError`).
"""

from __future__ import annotations

from enum import Enum, unique

from quarterdeck.domain.errors import UsageError


@unique
class State(Enum):
    """The CLI's state. The values are shown to people."""

    NEW = "not initialised"
    INITIALIZING = "initialising"
    READY = "ready"
    WORKING = "in a turn"
    WAITING = "waiting for an answer"
    COMPACTING = "compacting"
    RETRYING = "retrying"
    DOWN = "link down"
    CLOSED = "closed"


@unique
class Transition(Enum):
    """What moves the CLI from one state to the next."""

    # By us.
    INITIALIZE = "we send initialize"
    PROMPT = "we send a prompt"
    # By the CLI.
    INITIALIZED = "the CLI answers initialize"
    TURN_BEGAN = "a turn begins, with or without a prompt"
    PROGRESS = "the model writes or a tool runs"
    ASKED = "the CLI asks a question"
    SETTLED_IN_TURN = "the last question is settled in a turn"
    SETTLED_BETWEEN_TURNS = "the last question is settled between turns"
    COMPACTING = "the CLI compacts"
    COMPACTED = "compacting has ended"
    RETRYING = "the API failed, the CLI will retry"
    TURN_ENDED = "the last open turn ends"
    # By the link.
    LINK_LOST = "the link is lost"
    BACK_IDLE = "the link is back, no turn is open"
    BACK_IN_TURN = "the link is back in a turn"
    BACK_ASKING = "the link is back, a question is open"
    LINK_CLOSED = "the link is closed"


_OURS = frozenset({Transition.INITIALIZE, Transition.PROMPT})

_BUSY = (State.WORKING, State.COMPACTING, State.RETRYING)
_OPEN = tuple(state for state in State if state is not State.CLOSED)

TABLE: dict[State, dict[Transition, State]] = {
    State.NEW: {
        Transition.INITIALIZE: State.INITIALIZING,
        # `initialize` is optional: a prompt may come first.
        Transition.PROMPT: State.WORKING,
        Transition.TURN_BEGAN: State.WORKING,
        Transition.ASKED: State.WAITING,
    },
    State.INITIALIZING: {
        Transition.INITIALIZED: State.READY,
        # Both may be sent together; the CLI takes them in order.
        Transition.PROMPT: State.WORKING,
        Transition.TURN_BEGAN: State.WORKING,
        # The newest CLI talks to our MCP servers, and may ask, before it answers.
        Transition.ASKED: State.WAITING,
    },
    State.READY: {
        # Again, after a reconnect: the answer lists the questions that are still open.
        Transition.INITIALIZE: State.READY,
        Transition.PROMPT: State.WORKING,
        # A finished background task starts a turn without a prompt.
        Transition.TURN_BEGAN: State.WORKING,
        Transition.PROGRESS: State.WORKING,
        # A background subagent may ask between turns.
        Transition.ASKED: State.WAITING,
        Transition.COMPACTING: State.COMPACTING,
        Transition.RETRYING: State.RETRYING,
    },
    **{
        busy: {
            Transition.INITIALIZE: busy,
            Transition.PROMPT: busy,
            Transition.ASKED: State.WAITING,
            Transition.TURN_ENDED: State.READY,
        }
        for busy in _BUSY
    },
    State.WAITING: {
        Transition.INITIALIZE: State.WAITING,
        Transition.PROMPT: State.WAITING,
        Transition.SETTLED_IN_TURN: State.WORKING,
        Transition.SETTLED_BETWEEN_TURNS: State.READY,
        # A result while a question is open: a background subagent is still asking.
        Transition.TURN_ENDED: State.WAITING,
    },
    State.DOWN: {
        # Kept by the link, and sent when it is back.
        Transition.INITIALIZE: State.DOWN,
        Transition.PROMPT: State.DOWN,
        Transition.BACK_IDLE: State.READY,
        Transition.BACK_IN_TURN: State.WORKING,
        Transition.BACK_ASKING: State.WAITING,
    },
    State.CLOSED: {},
}
TABLE[State.WORKING][Transition.COMPACTING] = State.COMPACTING
TABLE[State.WORKING][Transition.RETRYING] = State.RETRYING
TABLE[State.COMPACTING][Transition.COMPACTED] = State.WORKING
TABLE[State.COMPACTING][Transition.RETRYING] = State.RETRYING
TABLE[State.RETRYING][Transition.PROGRESS] = State.WORKING
TABLE[State.RETRYING][Transition.COMPACTING] = State.COMPACTING
for _state in _OPEN:
    TABLE[_state][Transition.LINK_CLOSED] = State.CLOSED
    if _state is not State.DOWN:
        TABLE[_state][Transition.LINK_LOST] = State.DOWN


def transition(state: State, event: Transition) -> State:
    """The state after a transition. Raises `UsageError` for one that we may not make in `state`."""
    after = TABLE[state].get(event)
    if after is not None:
        return after
    if event in _OURS:
        raise UsageError(f"cannot do this now: {event.value}, but the CLI is {state.value}")
    return state
