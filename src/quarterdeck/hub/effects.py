"""What the shell must do once events are journalled. Pure: it says what, and does nothing.

Most effects follow from an event (`EFFECTS`). The others are returned by a decision, where no event
tells them: an acknowledgement, an answer to a caller, the end of a process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from quarterdeck.domain.coded import AlarmAct
from quarterdeck.domain.structs import Value
from quarterdeck.hub.ports import RunEnd
from quarterdeck.policy.grants import Grant
from quarterdeck.protocol.events import Alarmed, Event, RunEnded, RunStarting, Sent
from quarterdeck.protocol.runner_frames import TranscriptQuery
from quarterdeck.wire.exchange import Ending


class WriteLine(Value):
    """Write a line to the CLI, once and in the order of its number."""

    number: int
    line: bytes


class StartProcess(Value):
    """Start the process of a run; or take hold of one that the hub did not start."""

    starting: RunStarting


class ForgetRun(Value):
    """A run is over: let go of its process."""

    run: str


class StopProcess(Value):
    """Have its machine end the process."""

    force: bool = False


class Acknowledge(Value):
    """The journal has all lines up to this number."""

    number: int


class Settle(Value):
    """Requests of ours have ended: their callers get that."""

    endings: tuple[tuple[str, Ending], ...]


class Expect(Value):
    """A caller will wait for the answer to a request."""

    request_id: str
    subtype: str


class AwaitGreeting(Value):
    """The CLI has so many seconds to answer `initialize`."""


class ReadTranscript(Value):
    """Have the transcript of a run that ended read; its end is taken after that."""

    run: str
    end: RunEnd
    wanted: TranscriptQuery


class StoreGrant(Value):
    """Store what an answer grants, before the answer is given."""

    grant: Grant


class SpendingChecked(Value):
    """The budgets were held against all that the run has used so far."""


class CloseGap(Value):
    """Messages between two runs are journalled: nothing more is asked for."""

    messages: tuple[str, ...]


Effect = (
    WriteLine
    | StartProcess
    | ForgetRun
    | StopProcess
    | Acknowledge
    | Settle
    | Expect
    | AwaitGreeting
    | ReadTranscript
    | StoreGrant
    | SpendingChecked
    | CloseGap
)


def _write_line(event: Sent) -> WriteLine:
    return WriteLine(number=event.number, line=bytes(event.line))


def _start_process(event: RunStarting) -> StartProcess:
    return StartProcess(starting=event)


def _forget_run(event: RunEnded) -> ForgetRun:
    return ForgetRun(run=event.run)


def _stop_process(event: Alarmed) -> StopProcess | None:
    if event.act == AlarmAct.RUN_KILLED:
        return StopProcess(force=True)
    return StopProcess() if event.act == AlarmAct.RUN_ENDED else None


EFFECTS: dict[type[object], Callable[[Any], Effect | None]] = {
    Sent: _write_line,
    RunStarting: _start_process,
    RunEnded: _forget_run,
    Alarmed: _stop_process,
}
"""What each event has the shell do. Events that are not here are only journalled."""


def effects(events: Iterable[Event]) -> Iterator[Effect]:
    """What the shell must do for these events, in their order."""
    for event in events:
        make = EFFECTS.get(type(event))
        if make is not None and (effect := make(event)) is not None:
            yield effect
