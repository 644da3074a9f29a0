"""Sessions that nothing needs leave the hub's memory, and come back as they were."""

from __future__ import annotations

import gc
import weakref
from collections.abc import AsyncIterator

import anyio
import pytest
from msgspec import Raw

from quarterdeck.hub import hub as hub_module
from quarterdeck.hub.hub import Hub
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.commands import CreateSession, RenameSession, SendPrompt
from quarterdeck.protocol.sessions import SessionSpec, SessionState
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
    async with hub.running():
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
