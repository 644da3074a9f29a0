"""What a decision is: a pure function of state, input and facts that gives events. No I/O.

    decide(state, input, facts) -> events      a generator function, one for each kind of input
    evolve(state, event) -> state              `run_state` for the run, `journal.views` for the view
    effects(events) -> effects                 `effects`

A decision is a generator of events. Who asks it for the next event has put the one before into the
state of the run, so that a decision reads what it has decided so far. It changes nothing itself,
and has no clock, no disk and no chance: the time is a fact, and ids follow from the state. What it
returns (`Done`) is what no event tells: the reply, effects, and the inputs that follow once its
events are journalled. A refusal is an exception.

`inputs` has the union of all inputs, and `table` says which function decides about which.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec import Raw

from quarterdeck.domain.errors import NotFound
from quarterdeck.domain.structs import Value
from quarterdeck.hub.run_state import LineReport, RunState
from quarterdeck.protocol.commands import Outcome
from quarterdeck.protocol.events import Event, Sent
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.wire.base import Message

if TYPE_CHECKING:
    from quarterdeck.hub.decisions.inputs import Input
    from quarterdeck.hub.effects import Effect


class Known(NamedTuple):
    """An event, and what its line says: the fold need not decode it again."""

    event: Event
    message: Message


T = TypeVar("T")
Decision = Generator[Event | Known, LineReport | None, T]
"""Gives events, gets the report on each line of the CLI among them, and returns what follows."""


class State(NamedTuple):
    """The state of a session: its view, as it is journalled, and its run."""

    session: str
    stored: SessionView | None
    """None before its first event."""
    run: RunState | None

    @property
    def view(self) -> SessionView:
        """Its view. Raises `NotFound` if nothing of it is in the journal."""
        if self.stored is None:
            raise NotFound("session", self.session)
        return self.stored

    def run_of(self, run: str) -> RunState | None:
        """The run with this id, if it is the one that the session has."""
        return self.run if self.run is not None and self.run.run == run else None


class Facts(Value):
    """What a decision cannot know from the state: at least the time, in ms since 1970."""

    now: int


class Done(Value):
    """What a decision gives besides its events."""

    outcome: Outcome | None = None
    """The reply to a command."""
    effects: tuple[Effect, ...] = ()
    """What is to be done that no event tells, once the events are journalled."""
    then: tuple[Input, ...] = ()
    """What is to be decided next, once the events are journalled."""
    request: str = ""
    """The id of a request to the CLI whose answer the caller may wait for."""
    leave: str = ""
    """The run whose process is asked to end, after the session's lock is released."""


NOTHING = Done()


def send_line(
    run: RunState, line: bytes | None, by: str = "", message: Message | None = None
) -> Steps:
    """Have a line sent to the CLI, if there is one. `message` is what it says, if it is known."""
    if line is None:
        return
    event = Sent(run=run.run, number=run.sent + 1, line=Raw(line), by=by)
    yield event if message is None else Known(event, message)


def status_changes(
    run: RunState, at: int, message: Message | None = None, *, over: bool = False
) -> Steps:
    """What has changed about the session as a whole."""
    yield from run.status.changes(run.peer, message, at, over=over)


Steps = Decision[None]
"""A part of a decision."""


Fold = Callable[[Event, Message | None, int], LineReport | None]
"""Puts an event into the state, with what its line says if that is known, at a time in ms."""


def collect(decision: Decision[T], fold: Fold, at: int) -> T:
    """Run a decision, and put each event into the state before the next is decided."""
    report: LineReport | None = None
    try:
        while True:
            step = decision.send(report)
            if isinstance(step, Known):
                report = fold(step.event, step.message, at)
            else:
                report = fold(step, None, at)
    except StopIteration as done:
        found: T = done.value
        return found
