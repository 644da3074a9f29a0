"""A session whose journal cannot always be written: memory never says more than the journal."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import pytest
from msgspec import Raw

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import Conflict, JournalError, NotFound
from quarterdeck.hub.decisions import lines as decisions
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.ports import RunEnd
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.commands import (
    AllowAnswer,
    AnswerAsk,
    CreateSession,
    Interrupt,
    RenameSession,
    SendPrompt,
    StopSession,
)
from quarterdeck.protocol.events import AskAnswered, AskOpened, Event, RunEnded, Said, Sent
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from quarterdeck.protocol.stored_events import Stored
from support import lines
from support.hub_machines import TestMachines, TestRun, hub_with

pytestmark = pytest.mark.anyio

P1 = "00000000-0000-4000-8000-000000000001"
CREATE = CreateSession(
    spec=SessionSpec(directory="/work"),
    session="mine",
    prompt=Raw(b'"hello"'),
    prompt_id=P1,
    by="ada",
)


class FullJournal(MemoryJournal):
    """A journal whose disk can be full."""

    full = False
    held: anyio.Event | None = None

    async def append(
        self,
        session: str,
        events: Sequence[Event],
        *,
        snapshot: bytes | None = None,
        **conditions: Any,
    ) -> list[Stored]:
        if self.full and events:
            raise JournalError("there is no room", code="full")
        if self.held is not None:
            stored = await super().append(session, events, snapshot=snapshot, **conditions)
            await self.held.wait()
            return stored
        return await super().append(session, events, snapshot=snapshot, **conditions)


@pytest.fixture
def journal() -> FullJournal:
    return FullJournal()


@pytest.fixture
async def deck(journal: FullJournal) -> AsyncIterator[tuple[Hub, TestMachines]]:
    hub, machines = hub_with(journal)
    async with hub.run():
        yield hub, machines


async def working(hub: Hub, machines: TestMachines) -> TestRun:
    """A session in a turn."""
    await hub.submit(CREATE)
    run = machines.runs[-1]
    await run.greet()
    await run.take_prompt()
    return run


async def test_a_line_that_was_not_journalled_is_not_acknowledged_and_is_taken_when_it_comes_again(
    deck: tuple[Hub, TestMachines], journal: FullJournal
) -> None:
    hub, machines = deck
    run = await working(hub, machines)
    had = run.acknowledged
    lost = [line.rstrip() for line in (lines.asks_permission("q1"), lines.assistant("hi", "a"))]
    journal.full = True
    for _ in range(2):
        with pytest.raises(JournalError):
            await run.owner.run_said(run.run, had + 1, lost)
    assert run.acknowledged == had
    journal.full = False
    await run.owner.run_said(run.run, had + 1, lost)
    assert run.acknowledged == had + 2
    events = [stored.event for stored in await hub.events("mine")]
    assert [bytes(e.line) for e in events if isinstance(e, Said)][-2:] == lost
    assert sum(isinstance(e, AskOpened) for e in events) == 1


async def test_an_answer_that_was_not_journalled_was_not_given(
    deck: tuple[Hub, TestMachines], journal: FullJournal
) -> None:
    hub, machines = deck
    run = await working(hub, machines)
    await run.say(lines.asks_permission("q1"))
    (card,) = await hub.asks()
    command = AnswerAsk(ask=card.opened.ask, answer=AllowAnswer(), by="ada")
    journal.full = True
    with pytest.raises(JournalError):
        await hub.submit(command)
    assert run.read() == []
    journal.full = False
    await hub.submit(command)
    (given,) = run.read()
    assert given["response"]["request_id"] == "q1"
    with pytest.raises(Conflict):
        await hub.submit(command)


async def test_an_answer_whose_giver_went_away_is_given_once(
    deck: tuple[Hub, TestMachines], journal: FullJournal
) -> None:
    hub, machines = deck
    run = await working(hub, machines)
    await run.say(lines.asks_permission("q1"))
    (card,) = await hub.asks()
    command = AnswerAsk(ask=card.opened.ask, answer=AllowAnswer(), by="ada")
    journal.held = anyio.Event()
    with anyio.move_on_after(0.05):
        await hub.submit(command)
    journal.held = None
    assert run.read() == []
    with pytest.raises(Conflict, match="already answered by ada"):
        await hub.submit(command)
    (given,) = run.read()
    assert given["response"]["request_id"] == "q1"


async def test_a_session_that_was_not_journalled_is_not_there_and_can_be_made_again(
    deck: tuple[Hub, TestMachines], journal: FullJournal
) -> None:
    hub, machines = deck
    journal.full = True
    with pytest.raises(JournalError):
        await hub.submit(CREATE)
    with pytest.raises(NotFound):
        await hub.session("mine")
    assert machines.runs == []
    journal.full = False
    assert not (await hub.submit(CREATE)).repeated
    assert len(machines.runs) == 1


async def test_an_end_that_was_not_journalled_is_told_again(
    deck: tuple[Hub, TestMachines], journal: FullJournal
) -> None:
    hub, machines = deck
    run = await working(hub, machines)
    journal.full = True
    with pytest.raises(JournalError):
        await run.owner.run_ended(run.run, RunEnd(number=run.said + 1, reason="It exited."))
    assert run.acknowledged <= run.said
    journal.full = False
    await run.end()
    assert run.forgotten
    assert (await hub.session("mine")).state is SessionState.ENDED


async def test_a_full_disk_does_not_keep_anybody_from_stopping_an_agent(
    deck: tuple[Hub, TestMachines], journal: FullJournal
) -> None:
    hub, machines = deck
    run = await working(hub, machines)
    journal.full = True
    await hub.submit(StopSession(session="mine", by="ada"))
    assert run.stops == [False]


async def test_two_who_make_the_same_session_at_once_make_one(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    outcomes: list[bool] = []

    async def create() -> None:
        outcomes.append((await hub.submit(CREATE)).repeated)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(create)
    assert sorted(outcomes) == [False, True, True, True, True]
    assert len(machines.runs) == 1


async def test_a_cli_is_greeted_although_somebody_asked_it_for_something_before(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    await hub.submit(CREATE)
    (run,) = machines.runs
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hub.submit, Interrupt(session="mine", by="ada"))
        await run.wait_for_write()
        (interrupt,) = run.read()
        await run.greet()
        await run.say(lines.success_answer(interrupt["request_id"]))
    assert await run.take_prompt() == P1


async def test_a_run_that_its_machine_may_not_have_heard_of_is_asked_for_again(
    journal: FullJournal,
) -> None:
    first, machines = hub_with(journal)
    async with first.run():
        await first.submit(CREATE)
    (unheard,) = machines.runs
    second, machines = hub_with(journal)
    async with second.run():
        (run,) = machines.runs
        assert run.run == unheard.run
        assert len(machines.started) == 1
        await run.greet()
        assert await run.take_prompt() == P1
    third, machines = hub_with(journal)
    async with third.run():
        assert machines.started == []  # it runs: it is not asked for a third time


async def test_a_stale_card_is_answered_once_however_often_the_session_ends(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    run = await working(hub, machines)
    await run.say(lines.asks_permission("q1"))
    (card,) = await hub.asks()
    await run.end()
    command = AnswerAsk(ask=card.opened.ask, answer=AllowAnswer(), by="ada")
    await hub.submit(command)
    await machines.runs[1].greet()
    await machines.runs[1].end()
    with pytest.raises(Conflict, match="already answered by ada"):
        await hub.submit(command)
    events = [stored.event for stored in await hub.events("mine")]
    assert sum(isinstance(event, AskAnswered) for event in events) == 1


async def test_a_session_on_a_machine_that_nobody_knows_has_ended_and_says_why() -> None:
    journal = MemoryJournal()
    hub = Hub(journal, lambda token: None)
    async with hub.run():
        spec = SessionSpec(directory="/work", machine="nowhere")
        with pytest.raises(NotFound):
            await hub.submit(CreateSession(spec=spec, session="mine", by="ada"))
        view = await hub.session("mine")
        assert view.state is SessionState.ENDED
        assert isinstance(view.ended, RunEnded)
        assert "nowhere" in view.detail


async def test_text_of_a_message_that_died_with_its_process_is_not_shown_for_ever(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    run = await working(hub, machines)
    await run.say(lines.delta("half a mess", "d1"))
    assert hub.so_far("mine")
    await run.end()
    assert hub.so_far("mine") == ()


async def test_lines_for_the_cli_are_numbered_in_a_row_after_a_failure(
    deck: tuple[Hub, TestMachines], journal: FullJournal
) -> None:
    hub, machines = deck
    run = await working(hub, machines)
    for turn in range(3):
        journal.full = True
        with pytest.raises(JournalError):
            await run.owner.run_said(run.run, run.said + 1, [lines.requests(f"h{turn}").rstrip()])
        journal.full = False
        await run.say(lines.requests(f"h{turn}", subtype="no_such_thing"))
    events = [stored.event for stored in await hub.events("mine")]
    numbers = [event.number for event in events if isinstance(event, Sent)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert [line["response"]["request_id"] for line in run.read()] == ["h0", "h1", "h2"]


async def test_a_run_that_was_lost_before_it_had_started_is_found_when_it_starts(
    journal: FullJournal,
) -> None:
    first, machines = hub_with(journal)
    async with first.run():
        await first.submit(CREATE)
        (run,) = machines.runs
        await run.owner.run_lost(run.run, CodedText(code=TextCode.MACHINE_LOST))
        assert (await first.session("mine")).state is SessionState.DISCONNECTED
    second, machines = hub_with(journal)
    async with second.run():
        await machines.runs[0].greet()
        assert await machines.runs[0].take_prompt() == P1
        assert (await second.session("mine")).state is SessionState.WORKING


async def test_an_operation_that_fails_halfway_leaves_nothing_in_memory(
    deck: tuple[Hub, TestMachines], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub, machines = deck
    run = await working(hub, machines)
    line = lines.assistant("words", "a1").rstrip()
    with monkeypatch.context() as broken:
        broken.setattr(decisions, "hints", _fail)
        with pytest.raises(RuntimeError):
            await run.owner.run_said(run.run, run.said + 1, [line])
    await hub.submit(RenameSession(session="mine", name="other", by="ada"))
    events = [stored.event for stored in await hub.events("mine")]
    assert not [e for e in events if isinstance(e, Said) and bytes(e.line) == line]
    await run.say(line)
    events = [stored.event for stored in await hub.events("mine")]
    assert sum(isinstance(e, Said) and bytes(e.line) == line for e in events) == 1


def _fail(*_: object) -> None:
    raise RuntimeError("a fault of ours")


@pytest.mark.parametrize("idle", [True, False])
async def test_a_prompt_whose_id_is_the_uuid_of_a_message_is_sent_under_another_uuid(
    deck: tuple[Hub, TestMachines], idle: bool
) -> None:
    hub, machines = deck
    run = await working(hub, machines)
    used = "00000000-0000-4000-8000-000000000009"
    await run.say(lines.assistant("words", used))
    if idle:
        await run.say(lines.result("r1"))
    prompt = SendPrompt(session="mine", prompt=used, content=Raw(b'"more"'), by="ada")
    await hub.submit(prompt)
    if not idle:
        await run.say(lines.result("r1"))
    (sent,) = run.read()
    assert (sent["message"]["content"], sent["uuid"] != used) == ("more", True)
    await run.say(lines.echo(sent["uuid"]), lines.result("r2"))
    assert (await hub.session("mine")).turns == 2
    assert (await hub.session("mine")).unsent == ()


async def test_who_makes_a_session_that_another_fails_to_make_makes_it(
    deck: tuple[Hub, TestMachines], journal: FullJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told that the session is there, while the first one was still about to fail."""
    hub, machines = deck
    append, begun, go_on = journal.append, anyio.Event(), anyio.Event()

    async def fail(*given: Any, **more: Any) -> list[Stored]:
        if not given[1]:
            return await append(*given, **more)
        monkeypatch.setattr(journal, "append", append)
        begun.set()
        await go_on.wait()
        raise JournalError("full", code="full")

    async def first() -> None:
        with pytest.raises(JournalError):
            await hub.submit(CREATE)

    outcomes: list[bool] = []

    async def second() -> None:
        outcomes.append((await hub.submit(CREATE)).repeated)

    monkeypatch.setattr(journal, "append", fail)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        await begun.wait()
        for _ in range(2):
            tasks.start_soon(second)
        await anyio.wait_all_tasks_blocked()
        assert outcomes == []
        go_on.set()
    assert sorted(outcomes) == [False, True]
    assert (await hub.session("mine")).run is not None
    assert len(machines.runs) == 1
    assert hub.view("mine") is not None
