"""Most lines take a short way through the state of a run: it leads where the long way leads.

Each part of the state says which types of messages it reads, and others do not reach it. Here every
message that there is goes both ways, from a new run and into an open turn.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from quarterdeck.hub import run_state
from quarterdeck.hub.decisions.base import State, collect
from quarterdeck.hub.decisions.inputs import Line, LineFacts
from quarterdeck.hub.decisions.lines import decide_line
from quarterdeck.hub.lines import read_line
from quarterdeck.hub.run_state import LineReport, RunState
from quarterdeck.hub.snapshots import snapshot
from quarterdeck.hub.status import StatusTracker
from quarterdeck.hub.supervision import watchdog
from quarterdeck.protocol.events import Event
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.wire import peer
from quarterdeck.wire.base import Message
from support import lines

EVERY_MESSAGE = Path(__file__).parent.parent / "fixtures/messages/every_message.ndjson"
NOW = 1_800_000_000_000
TABLES = (
    (run_state, "READ_BY_PARTS"),
    (peer, "OBSERVED"),
    (peer, "_MOVING"),
)


class _Everything(frozenset[type[Message]]):
    def __contains__(self, _: object) -> bool:
        return True


def _take(said: list[bytes]) -> tuple[list[Event], bytes | None]:
    """The events that follow from these lines, and the state after them."""
    run = RunState("01m7m9fk52dzxm583dajwd7hv3", "r1", SessionSpec(directory="/work"))
    events: list[Event] = []

    def fold(event: Event, message: Message | None, at: int) -> LineReport | None:
        events.append(event)
        return run.evolve(event, at, message)

    for number, line in enumerate(said, 1):
        input_ = Line(run="r1", number=number, read=read_line(line))
        state = State(run.session, None, run)
        collect(
            decide_line(state, input_, LineFacts(now=NOW + number, rulings={})), fold, NOW + number
        )
    return events, snapshot(run, {})


def _take_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in TABLES:
        monkeypatch.setattr(module, name, _Everything())
    # The two halves of the watch read other messages; here each reads all of them.
    turn, task = watchdog.Watch._receive_turn, watchdog.Watch._receive_task

    def receive(watch: watchdog.Watch, message: Message, at: int) -> None:
        watch.lives(at)
        task(watch, message)
        turn(watch, message, at)

    monkeypatch.setattr(watchdog.Watch, "receive", receive)
    monkeypatch.setattr(StatusTracker, "_is_unchanged", lambda *_, **__: False)


def test_every_message_does_the_same_on_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    turn = [lines.init(), lines.assistant("Hello", "a1")]
    said = [
        [*before, line, lines.assistant("Goodbye", "a2")]
        for line in EVERY_MESSAGE.read_bytes().splitlines()
        for before in ([], turn)
    ]
    short = [_take(each) for each in said]
    _take_the_long_way(monkeypatch)
    differ = [each for each, found in zip(said, short, strict=True) if _take(each) != found]
    assert not differ


def test_the_short_way_is_taken() -> None:
    run = RunState("s", "r1", replace(SessionSpec(directory="/work"), name="short"))
    read = read_line(lines.line(type="tool_progress", tool_use_id="t", uuid="u1"))
    input_ = Line(run="r1", number=1, read=read)
    reports: list[LineReport | None] = []

    def fold(event: Event, message: Message | None, at: int) -> LineReport | None:
        reports.append(run.evolve(event, at, message))
        return reports[-1]

    collect(decide_line(State("s", None, run), input_, LineFacts(now=NOW, rulings={})), fold, NOW)
    assert reports[0] is not None
    assert reports[0].plain
