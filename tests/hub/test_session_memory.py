"""Sessions that nothing needs leave the hub's memory, and come back as they were."""

from __future__ import annotations

import gc
import weakref
from collections.abc import AsyncIterator

import anyio
import pytest
from msgspec import Raw

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import Conflict
from quarterdeck.hub import hub as hub_module
from quarterdeck.hub import session as session_module
from quarterdeck.hub.hub import Hub
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.commands import (
    AllowAnswer,
    AnswerAsk,
    CreateSession,
    DeleteSession,
    RenameSession,
    SendPrompt,
)
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from quarterdeck.wire.exchange import Lost
from support import lines
from support.bounds import SECONDS
from support.hub_machines import TestMachines, TestRun, hub_with
from support.waiting import until

pytestmark = pytest.mark.anyio

COUNT = 20


@pytest.fixture
async def deck(
    journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Hub, TestMachines]]:
    """A hub whose clock ticks fast."""
    monkeypatch.setattr(hub_module, "CLOCK_SECONDS", 0.01)
    hub, machines = hub_with(journal)
    async with hub.run():
        yield hub, machines


async def create(hub: Hub, machines: TestMachines, session: str) -> TestRun:
    spec = SessionSpec(directory="/work")
    prompt = Raw(b'"hello"')
    await hub.submit(CreateSession(spec=spec, session=session, prompt=prompt, by="ada"))
    run = machines.runs[-1]
    await run.greet()
    await run.take_prompt()
    return run


async def test_ended_sessions_leave_memory_and_running_ones_stay(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    objects: list[weakref.ref[object]] = []
    for number in range(COUNT):
        run = await create(hub, machines, f"s{number}")
        objects.append(weakref.ref(run.owner.session))
        if number:
            await run.end()
    await until(lambda: len(hub._sessions) == 1)
    gc.collect()
    assert [number for number, each in enumerate(objects) if each() is not None] == [0]
    views = await hub.sessions(limit=COUNT)
    assert len(views) == COUNT
    assert (await hub.session("s0")).state is SessionState.WORKING


async def test_a_session_comes_back_as_it_was_when_somebody_needs_it(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    run = await create(hub, machines, "mine")
    await run.end()
    await until(lambda: len(hub._sessions) == 0)
    gc.collect()
    assert hub._sessions.get("mine") is None
    await hub.submit(RenameSession(session="mine", name="again", by="ada"))
    prompt = SendPrompt(session="mine", prompt="p2", content=Raw(b'"more"'), by="ada")
    await hub.submit(prompt)
    assert (await hub.submit(prompt)).repeated
    await machines.runs[-1].greet()
    sent = [line for line in machines.runs[-1].read() if line["type"] == "user"]
    assert [line["message"]["content"] for line in sent] == ["hello", "more"][-len(sent) :]
    view = await hub.session("mine")
    assert (view.name, view.run) == ("again", machines.runs[-1].run)


async def test_two_who_need_a_released_session_get_one_object(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    await (await create(hub, machines, "mine")).end()
    held = await hub._find("mine")
    await until(lambda: len(hub._sessions) == 0)
    found: list[object] = []

    async def find() -> None:
        found.append(await hub._find("mine"))

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(find)
    assert all(each is held for each in found)


async def test_the_state_of_an_idle_run_leaves_memory_and_comes_back_when_it_is_needed(
    deck: tuple[Hub, TestMachines], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "REST_SECONDS", 0.0)
    hub, machines = deck
    run = await create(hub, machines, "mine")
    session = hub._sessions["mine"]
    await hub.submit(SendPrompt(session="mine", prompt="p2", content=Raw(b'"2"'), by="ada"))
    await run.say(lines.asks_permission("q1"))
    assert session.run is not None, "it works"
    (card,) = await hub.asks()
    await hub.submit(AnswerAsk(ask=card.opened.ask, answer=AllowAnswer(), by="ada"))
    await run.say(lines.result("r1"))
    await run.take_prompt()
    await run.say(lines.result("r2"))
    with anyio.fail_after(SECONDS):
        await until(lambda: session.run is None)
    assert session.running, "its process goes on"
    view = await hub.session("mine")
    assert (view.state, view.turns) == (SessionState.IDLE, 2)
    with pytest.raises(Conflict, match="has a process"):
        await hub.submit(DeleteSession(session="mine", by="ada"))
    with anyio.fail_after(SECONDS):
        await hub.submit(SendPrompt(session="mine", prompt="p3", content=Raw(b'"3"'), by="ada"))
    await run.take_prompt()
    await run.say(lines.assistant("again", "a3"), lines.result("r3"))
    view = await hub.session("mine")
    assert (view.turns, view.unsent) == (3, ())
    assert sorted(run.written) == list(range(1, len(run.written) + 1)), "each line was sent once"
    await run.end(clean=True)
    assert (await hub.session("mine")).state is SessionState.ENDED


async def test_what_a_run_needs_memory_for_keeps_it_there(
    journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_module, "CLOCK_SECONDS", 3600.0)
    hub, machines = hub_with(journal)
    async with hub.run():
        run = await create(hub, machines, "mine")
        session = hub._sessions["mine"]
        await run.say(lines.result("r1"))
        session.rest()
        assert session.run is not None, "it is idle for a moment only"
        monkeypatch.setattr(session_module, "REST_SECONDS", -1.0)
        async with session.in_order():
            session.rest()
            assert session.run is not None, "somebody is at it"
        waiter = session.waiters.expect("q", "x")
        session.rest()
        assert session.run is not None, "somebody waits"
        waiter.end(Lost("gone"))
        session.waiters.forget("q")
        await run.owner.run_lost(run.run, CodedText(code=TextCode.MACHINE_LOST))
        session.rest()
        assert session.run is not None, "its machine is away"
        await run.owner.run_found(run.run)
        session.rest()
        assert session.run is None
