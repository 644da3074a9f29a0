"""Snapshots of a run: a hub that starts folds what came after the last one, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.domain.errors import JournalError
from quarterdeck.hub import snapshots
from quarterdeck.hub.decisions.base import State, collect
from quarterdeck.hub.decisions.inputs import Line, LineFacts
from quarterdeck.hub.decisions.lines import decide_line
from quarterdeck.hub.decisions.process import wanted_of_transcript
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.lines import read_line
from quarterdeck.hub.run import Run
from quarterdeck.hub.run_state import RunState
from quarterdeck.hub.session_process import ProcessEvents
from quarterdeck.hub.snapshots import SnapshotPace, is_current, restore_state, snapshot
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.commands import (
    AllowAnswer,
    AnswerAsk,
    CreateSession,
    DeleteSession,
    SendPrompt,
)
from quarterdeck.protocol.events import Event, RunStarting, Said, Sent
from quarterdeck.protocol.holds import Holds
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from quarterdeck.protocol.stored_events import Stored
from support import lines
from support.hub_machines import TestRun, hub_with

pytestmark = pytest.mark.anyio
SPEC = SessionSpec(directory="/work", machine="far")
TOKEN = "qd_0123456789ab_Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6"


class WatchedJournal(MemoryJournal):
    """A journal that knows which events were read."""

    def __init__(self) -> None:
        super().__init__()
        self.read_after: list[int] = []
        self.full = False

    async def read(self, session: str, *, after: int = 0, limit: int = 1000) -> list[Stored]:
        self.read_after.append(after)
        return await super().read(session, after=after, limit=limit)

    async def append(
        self,
        session: str,
        events: Sequence[Event],
        *,
        snapshot: bytes | None = None,
        **conditions: Any,
    ) -> list[Stored]:
        if self.full:
            raise JournalError("there is no room", code="full")
        return await super().append(session, events, snapshot=snapshot, **conditions)


@pytest.fixture
def journal() -> WatchedJournal:
    return WatchedJournal()


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot with every second append."""
    monkeypatch.setattr(snapshots, "EVENTS", 1)
    monkeypatch.setattr(snapshots, "SHARE", 0)


async def begun(hub: Hub, run: TestRun) -> None:
    await run.greet()
    await run.take_prompt()


async def create(hub: Hub, spec: SessionSpec = SPEC) -> None:
    command = CreateSession(spec=spec, session="mine", prompt=Raw(b'"go"'), by="ada")
    await hub.submit(command)


async def words(run: TestRun, count: int, kind: str = "a") -> None:
    for number in range(count):
        await run.say(lines.assistant("words", f"{kind}{number}"))


# --- the hub -------------------------------------------------------------------------------------


async def test_a_hub_that_starts_reads_only_what_came_after_the_snapshot(
    journal: WatchedJournal, often: None
) -> None:
    hub, machines = hub_with(journal)
    async with hub.run():
        await create(hub)
        (run,) = machines.runs
        await begun(hub, run)
        await words(run, 20)
        await run.say(lines.asks_permission("q1"))
    found = await journal.latest_snapshot("mine")
    assert found is not None
    head = await journal.head("mine")
    assert head - found.seq < 10

    journal.read_after.clear()
    hub, machines = hub_with(journal)
    async with hub.run():
        assert min(journal.read_after) >= found.seq
        (run,) = machines.runs
        assert run.read() == [], "all lines were with the CLI already"
        (card,) = await hub.asks()
        await hub.submit(AnswerAsk(ask=card.opened.ask, answer=AllowAnswer(), by="ada"))
        (answer,) = run.read()
        assert answer["response"]["request_id"] == "q1"
        await run.say(lines.assistant("words", "a1"), lines.assistant("done", "z"))
        said = [each.event for each in await hub.events("mine", after=head)]
        repeated = [
            event for event in said if isinstance(event, Said) and b'"a1"' in bytes(event.line)
        ]
        assert len(repeated) == 1, "it is numbered, so it is kept"
        await run.say(lines.result("r1"))
        view = await hub.session("mine")
        assert (view.state, view.turns) == (SessionState.IDLE, 1)


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "other version": lambda data: data.replace(snapshots.VERSION.encode(), b"0.0.1/1"),
    "cut off": lambda data: data[:-10],
    "empty": lambda data: b"",
    "a member is missing": lambda data: data.replace(b'"said":', b'"sad":'),
    "no such state": lambda data: data.replace(b'"state":"', b'"state":"un'),
    "another type": lambda data: data.replace(b'"turns":{', b'"turns":7,"t":{'),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_snapshot_that_cannot_be_used_is_ignored(
    journal: WatchedJournal, change: str
) -> None:
    hub, machines = hub_with(journal)
    async with hub.run():
        await create(hub)
        (run,) = machines.runs
        await begun(hub, run)
        await words(run, 110)
    found = await journal.latest_snapshot("mine")
    assert found is not None
    changed = CHANGES[change](found.data)
    assert changed != found.data
    await journal.append("mine", [], snapshot=changed)
    journal.read_after.clear()
    hub, machines = hub_with(journal)
    async with hub.run():
        assert min(journal.read_after) < 10, "it was folded from its beginning"
        (run,) = machines.runs
        await run.say(lines.result("r1"))
        assert (await hub.session("mine")).turns == 1


async def test_the_snapshot_of_another_run_is_ignored(journal: WatchedJournal) -> None:
    hub, machines = hub_with(journal)
    async with hub.run():
        await create(hub)
        await begun(hub, machines.runs[0])
    other = snapshot(RunState("mine", "another", SPEC), {})
    assert other is not None
    await journal.append("mine", [], snapshot=other)
    hub, machines = hub_with(journal)
    async with hub.run():
        assert hub._sessions["mine"].run is not None
        assert hub._sessions["mine"].run.busy


async def test_lines_that_the_machine_may_not_have_are_sent_again(
    journal: WatchedJournal, often: None
) -> None:
    hub, machines = hub_with(journal)
    async with hub.run():
        await create(hub)
        (run,) = machines.runs
        await run.greet()
        await words(run, 3)
        (prompt,) = [line for line in run.written.values() if b'"user"' in line]
        number = max(run.written)
        assert run.unwritten() == {number: prompt}, "it is on its way"
    hub, machines = hub_with(journal)
    async with hub.run():
        (run,) = machines.runs
        assert run.written == {number: prompt}
        await hub.submit(SendPrompt(session="mine", prompt="p2", content=Raw(b'"2"'), by="ada"))
        await run.say(lines.init(), lines.echo(json.loads(prompt)["uuid"]), lines.result("r1"))
        assert sorted(run.written) == [number, number + 1], "numbers go on"


async def test_an_idle_run_and_an_orderly_stop_store_a_snapshot(journal: WatchedJournal) -> None:
    hub, machines = hub_with(journal)
    async with hub.run():
        await create(hub)
        (run,) = machines.runs
        await begun(hub, run)
        await words(run, 60)
        await ProcessEvents(hub._sessions["mine"]).tick()
        assert await journal.latest_snapshot("mine") is None, "it works"
        await run.say(lines.result("r1"))
        await ProcessEvents(hub._sessions["mine"]).tick()
        assert await journal.latest_snapshot("mine") is None, "there is little to fold"
        await words(run, 60, "b")
        await run.say(lines.result("r2"))
        await ProcessEvents(hub._sessions["mine"]).tick()
        first = await journal.latest_snapshot("mine")
        assert first is not None
        assert first.seq == await journal.head("mine")
        await ProcessEvents(hub._sessions["mine"]).tick()
        assert await journal.latest_snapshot("mine") == first
        await words(run, 110, "c")
    last = await journal.latest_snapshot("mine")
    assert last is not None
    assert last.seq == await journal.head("mine") > first.seq


async def test_a_disk_that_is_full_when_the_hub_stops_costs_only_time(
    journal: WatchedJournal, caplog: pytest.LogCaptureFixture
) -> None:
    hub, machines = hub_with(journal)
    async with hub.run():
        await create(hub)
        await begun(hub, machines.runs[0])
        await words(machines.runs[0], 110)
        journal.full = True
    assert "no snapshot is stored" in caplog.text
    journal.full = False
    hub, machines = hub_with(journal)
    async with hub.run():
        await machines.runs[0].say(lines.result("r1"))
        assert (await hub.session("mine")).turns == 1


async def test_a_snapshot_ends_with_the_run_and_the_session(
    journal: WatchedJournal, often: None
) -> None:
    hub, machines = hub_with(journal)
    async with hub.run():
        await create(hub)
        (run,) = machines.runs
        await begun(hub, run)
        await words(run, 5)
        await run.say(lines.result("r1"))
        assert await journal.latest_snapshot("mine") is not None
        await run.end(clean=True)
        assert await journal.latest_snapshot("mine") is None
        await hub.submit(DeleteSession(session="mine", by="ada"))


async def test_no_snapshot_has_a_token_in_it_but_the_spec_is_whole(
    journal: WatchedJournal, often: None
) -> None:
    hub, machines = hub_with(journal)
    async with hub.run():
        await create(hub, msgspec.structs.replace(SPEC, env={"OURS": TOKEN}))
        (run,) = machines.runs
        await begun(hub, run)
        await run.say(lines.asks_permission("q1", command=f"curl -H 'Bearer {TOKEN}'"))
        await words(run, 5)
        state = hub._sessions["mine"].run
        assert state is not None
    found = await journal.latest_snapshot("mine")
    assert found is not None
    assert found.data.count(TOKEN.encode()) == 1
    again = restore_state(found.data, "mine", state.run)
    assert again is not None
    assert again[0].spec.env == {"OURS": TOKEN}
    (card,) = again[0].asks._cards.values()
    assert b"qd_0123456789ab_redacted" in bytes(card.request)


# --- the form ------------------------------------------------------------------------------------


def test_every_attribute_of_the_state_is_in_a_snapshot() -> None:
    state = RunState("mine", "r1", SPEC)
    state.said, state.sent, state.stopped_at = 11, 12, 13
    state.greeting = state.inbound = state.unknown_place = state.at_root = True
    state.asked_at = {"q": 14}
    state.turns._prompts = {"u": "p"}
    state.received.add("m")
    data = snapshot(state, {12: b'{"type":"user"}'})
    assert data is not None
    found = restore_state(data, "mine", "r1")
    assert found is not None
    again, unwritten = found
    assert unwritten == {12: b'{"type":"user"}'}
    assert vars(again).keys() == vars(state).keys()
    for name, value in vars(state).items():
        if name != "peer":  # compared in `test_run_state`, with all that it can know
            assert getattr(again, name) == value, name
    stored = set(snapshots._State.__struct_fields__) - {"unwritten"}
    assert stored == vars(state).keys() - {"session", "run", "spec", "holds"}


def test_a_state_that_cannot_be_encoded_makes_no_snapshot() -> None:
    state = RunState("mine", "r1", SPEC)
    state.asked_at = {"half a character \ud800": 1}
    assert snapshot(state, {}) is None


@pytest.mark.parametrize(
    ("events", "size", "last", "due", "worth_it"),
    [
        (0, 0, 0, False, False),
        (snapshots.WORTH_IT, 10**9, 0, False, True),
        (snapshots.EVENTS - 1, 10**9, 0, False, True),
        (snapshots.EVENTS, 1, 0, True, True),
        (snapshots.EVENTS, 2_999_999, 1_000_000, False, True),
        (snapshots.EVENTS, 3_000_000, 1_000_000, True, True),
    ],
)
def test_a_snapshot_is_due_after_many_events_that_outweigh_it(
    events: int, size: int, last: int, due: bool, worth_it: bool
) -> None:
    pace = SnapshotPace(events=events, size=size, last=last)
    assert (pace.due, pace.worth_it) == (due, worth_it)
    assert pace.note_taken(b"12345") == b"12345"
    assert (pace.due, pace.worth_it, pace.last) == (False, False, 5)


def test_a_snapshot_that_is_too_large_is_not_stored_and_not_made_again_soon() -> None:
    pace = SnapshotPace(events=snapshots.EVENTS)
    assert pace.note_taken(b"x" * (snapshots.LARGEST + 1)) is None
    pace.events, pace.size = snapshots.EVENTS, snapshots.LARGEST
    assert not pace.due
    assert pace.note_taken(None) is None


def test_only_a_snapshot_of_this_version_and_run_is_current() -> None:
    data = snapshot(RunState("mine", "r1", SPEC), {})
    assert data is not None
    assert is_current(data, "r1")
    assert not is_current(data, "r2")
    assert not is_current(data.replace(snapshots.VERSION.encode(), b"9.9/9"), "r1")
    assert not is_current(b"{", "r1")


# --- bounds --------------------------------------------------------------------------------------


def long_run(count: int) -> Run:
    """A run with a single turn, of so many calls. Each is shown by a hook and writes a file."""
    run = Run("mine", "r1", SPEC, Holds())
    starting = RunStarting(run="r1", machine="far")
    run.begin(starting, 1)
    number = 0

    def say(line: bytes) -> None:
        nonlocal number
        number += 1
        said = Line(run="r1", number=number, read=read_line(line.rstrip()))
        facts = LineFacts(now=number, rulings={})
        decision = decide_line(State("mine", None, run.state), said, facts)
        collect(decision, lambda event, known, at: run.state.evolve(event, at, known), number)

    say(lines.init())
    for n in range(count):
        call = {"type": "tool_use", "id": f"toolu_{n}", "name": "Write", "input": {}}
        message = {"id": f"m{n}", "model": "claude-opus", "content": [call], "usage": {}}
        say(lines.line(type="assistant", message=message, uuid=f"a{n}"))
        seen = {
            "hook_event_name": "PreToolUse",
            "tool_name": "Write",
            "tool_input": {"file_path": f"/work/{n % 100}"},
            "tool_use_id": f"toolu_{n}",
            "permission_mode": "default",
            "cwd": "/work",
            "agent_id": f"agent-{n}",
            "agent_type": "Explore",
        }
        watch = {"subtype": "hook_callback", "callback_id": "quarterdeck-watch", "input": seen}
        say(lines.requests(f"h{n}", **watch))
        task = {"task_id": f"t{n}", "uuid": f"k{n}"}
        say(lines.line(type="system", subtype="task_started", **task))
        say(lines.line(type="system", subtype="task_notification", status="completed", **task))
        result = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": "done"}
        say(lines.line(type="user", message={"role": "user", "content": [result]}, uuid=f"u{n}"))
    return run


@pytest.mark.no_cover
def test_the_state_of_a_run_does_not_grow_with_its_length() -> None:
    run = long_run(4500)
    data = snapshot(run.state, {})
    assert data is not None
    parts = msgspec.json.decode(data)["state"]
    sizes = {name: len(msgspec.json.encode(part)) for name, part in parts.items()}
    assert sum(sizes.values()) < 700_000, sizes  # 4,096 calls of each kind at most
    assert run.state.meter.tool_calls == 4500


@pytest.mark.no_cover
async def test_of_a_long_run_only_the_last_messages_are_looked_for_in_its_transcript() -> None:
    run = long_run(40)
    short = wanted_of_transcript(run.state, "cli")
    assert len(short.known) == 80
    assert short.since == ()
    run = long_run(3000)
    wanted = wanted_of_transcript(run.state, "cli")
    assert 1024 <= len(wanted.known) <= 1536
    assert {"a2999", "u2999"} <= set(wanted.since) < set(wanted.known)
    assert wanted.prompts == ()
    line = {"type": "user", "message": {"role": "user", "content": "go"}, "uuid": "new"}
    sent = Sent(run="r1", number=9, line=Raw(json.dumps(line).encode()))
    run.state.evolve(sent, 1)
    assert wanted_of_transcript(run.state, "cli").prompts == ("new",), (
        "it may be in the transcript, or not"
    )
