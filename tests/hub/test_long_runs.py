"""A hub that starts beside long runs serves at once; each run is restored when it is needed."""

from __future__ import annotations

import anyio
import pytest
from msgspec import Raw

from quarterdeck.domain.errors import Conflict
from quarterdeck.hub import hub as hub_module
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.commands import (
    AllowAnswer,
    AnswerAsk,
    CreateSession,
    DeleteSession,
    SendPrompt,
)
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from quarterdeck.protocol.stored_events import Stored
from support import lines
from support.bounds import SECONDS
from support.hub_machines import TestMachines, hub_with
from support.waiting import until

pytestmark = pytest.mark.anyio


class SlowJournal(MemoryJournal):
    """A journal whose long histories are read only when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.may_read = anyio.Event()
        self.may_read.set()

    async def read(self, session: str, *, after: int = 0, limit: int = 1000) -> list[Stored]:
        if limit > 1:
            await self.may_read.wait()
        return await super().read(session, after=after, limit=limit)


async def first_hub(journal: SlowJournal) -> None:
    """A session in a turn, with an open question."""
    hub, machines = hub_with(journal)
    async with hub.run():
        spec = SessionSpec(directory="/work")
        create = CreateSession(spec=spec, session="mine", prompt=Raw(b'"go"'), by="ada")
        await hub.submit(create)
        run = machines.runs[-1]
        await run.greet()
        await run.take_prompt()
        await run.say(lines.assistant("words", "a1"), lines.asks_permission("q1"))


async def test_the_hub_serves_while_a_long_run_is_restored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub_module, "RESTORED_AT_ONCE", 0)
    monkeypatch.setattr(hub_module, "CLOCK_SECONDS", 0.01)
    journal = SlowJournal()
    await first_hub(journal)
    journal.may_read = anyio.Event()
    hub, machines = hub_with(journal)
    with anyio.fail_after(SECONDS):
        async with hub.run():
            assert (await hub.session("mine")).state is SessionState.WAITING
            (card,) = await hub.asks()
            (run,) = machines.runs
            assert run.acknowledged == (await hub.session("mine")).said, "it is held already"
            assert machines.started == []
            with pytest.raises(Conflict, match="has a process"):
                await hub.submit(DeleteSession(session="mine", by="ada"))
            other = CreateSession(spec=SessionSpec(directory="/work"), by="ada")
            await hub.submit(other)
            assert run.read() == []

            answered = anyio.Event()

            async def answer() -> None:
                answer = AnswerAsk(ask=card.opened.ask, answer=AllowAnswer(), by="ada")
                await hub.submit(answer)
                answered.set()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(answer)
                await anyio.lowlevel.checkpoint()
                assert not answered.is_set()
                journal.may_read.set()
            assert answered.is_set()
            assert run.read()[-1]["response"]["request_id"] == "q1"


async def test_a_long_run_is_restored_although_nobody_needs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub_module, "RESTORED_AT_ONCE", 0)
    journal = SlowJournal()
    await first_hub(journal)
    hub, machines = hub_with(journal)
    with anyio.fail_after(SECONDS):
        async with hub.run():
            await until(lambda: hub._sessions["mine"].run is not None)
            await say_and_prompt(hub, machines)


async def say_and_prompt(hub: hub_module.Hub, machines: TestMachines) -> None:
    (run,) = machines.runs
    prompt = SendPrompt(session="mine", prompt="p2", content=Raw(b'"more"'), by="ada")
    await hub.submit(prompt)
    await run.say(lines.cancels("q1"), lines.result("r1"))
    sent = [line for line in run.read() if line["type"] == "user"]
    assert sent[-1]["message"]["content"] == "more"
