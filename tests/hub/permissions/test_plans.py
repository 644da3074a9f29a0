"""Plans: where their text comes from, and how one begins afresh whatever is killed meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from msgspec import Raw

from quarterdeck.hub.hub import Hub
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.commands import AnswerAsk, CreateSession, PlanAnswer
from quarterdeck.protocol.events import Event, StartAfresh
from quarterdeck.protocol.sessions import Origin, SessionSpec, SessionState
from quarterdeck.protocol.stored_events import Stored
from support import lines
from support.bounds import SECONDS
from support.hub_machines import TestMachines, TestRun, hub_with

pytestmark = pytest.mark.anyio
FRESH = PlanAnswer(choice="fresh")
PROMPT = "Implement the following plan:\n\nbuild it"


async def planning(
    hub: Hub, machines: TestMachines, version: str = "2.1.325"
) -> tuple[str, TestRun]:
    command = CreateSession(
        spec=SessionSpec(directory="/work", mode="plan"), prompt=Raw(b'"plan it"'), by="ada"
    )
    session = (await hub.submit(command)).session
    (run,) = machines.runs
    await run.greet(version)
    await run.take_prompt()
    return session, run


def calls_exit(id_: str, **tool_input: object) -> bytes:
    block = {"type": "tool_use", "id": id_, "name": "ExitPlanMode", "input": tool_input}
    message = {"id": "m", "role": "assistant", "model": "x", "content": [block]}
    return lines.line(
        type="assistant",
        message=message,
        parent_tool_use_id=None,
        session_id=lines.SESSION,
        uuid=f"call-{id_}",
    )


def asks_plan(request_id: str, **tool_input: object) -> bytes:
    request = {
        "subtype": "can_use_tool",
        "tool_name": "ExitPlanMode",
        "input": tool_input,
        "tool_use_id": f"toolu_{request_id}",
    }
    return lines.line(type="control_request", request_id=request_id, request=request)


# --- the text ------------------------------------------------------------------------------------


async def test_a_plan_that_the_request_leaves_out_is_taken_from_the_call(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    _, run = await planning(hub, machines)
    await run.say(calls_exit("toolu_q1", plan="build it"), asks_plan("q1"))
    (card,) = await hub.asks()
    assert card.opened.plan == "build it"
    assert run.read() == []


async def test_a_plan_that_nobody_has_told_is_asked_for_before_its_card_opens(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    _, run = await planning(hub, machines)
    await run.say(asks_plan("q1"))
    assert await hub.asks() == []
    (request,) = run.read()
    assert request["request"] == {"subtype": "get_plan"}
    plan = {"exists": True, "content": "build it", "path": "/p.md"}
    await run.say(lines.success_answer(request["request_id"], plan))
    (card,) = await hub.asks()
    assert card.opened.plan == "build it"


@pytest.mark.parametrize("version", ["2.1.37", "2.1.120"])
async def test_a_version_that_cannot_be_asked_gets_its_card_at_once(
    deck: tuple[Hub, TestMachines], version: str
) -> None:
    hub, machines = deck
    command = CreateSession(spec=SessionSpec(directory="/work"), prompt=Raw(b'"plan it"'), by="ada")
    await hub.submit(command)
    (run,) = machines.runs
    await run.greet(version)
    run.read()
    await run.say(asks_plan("q1"))
    (card,) = await hub.asks()
    assert card.opened.plan is None
    assert run.read() == []


async def test_a_card_does_not_wait_for_a_text_that_does_not_come(
    journal: MemoryJournal,
) -> None:
    hub, machines = hub_with(journal)
    async with hub.run():
        _, run = await planning(hub, machines)
        await run.say(asks_plan("q1"))
        run.read()
        assert await hub.asks() == []
    # The hub was killed before the answer came: the next one does not know when it was asked.
    hub, machines = hub_with(journal)
    async with hub.run():
        with anyio.fail_after(SECONDS):
            while not (asks := await hub.asks()):  # noqa: ASYNC110 - the hub's clock ticks
                await anyio.sleep(0.02)
        assert asks[0].opened.plan is None
        await machines.runs[0].say(lines.cancels("q1"))
        assert await hub.asks() == []


async def test_a_plan_that_is_withdrawn_before_its_text_came_has_no_card(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    _, run = await planning(hub, machines)
    await run.say(asks_plan("q1"))
    (request,) = run.read()
    await run.say(lines.cancels("q1"), lines.success_answer(request["request_id"], {}))
    assert await hub.asks() == []


# --- a new conversation --------------------------------------------------------------------------


async def answered_fresh(hub: Hub, run: TestRun) -> None:
    """Answer, and let the CLI take its leave."""
    (card,) = await hub.asks()

    async def leave() -> None:
        while True:
            for line in run.read():
                if line["type"] == "control_request":
                    await run.say(lines.success_answer(line["request_id"]))
                    if line["request"]["subtype"] == "end_session":
                        return
            await run.wait_for_write()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(leave)
        await hub.submit(AnswerAsk(ask=card.opened.ask, answer=FRESH, by="ada"))


async def implements(machines: TestMachines) -> None:
    """The newest run begins a conversation, with the plan."""
    spec, origin = machines.started[-1]
    assert (spec.mode, origin) == ("acceptEdits", Origin())
    await machines.runs[-1].greet()
    (prompt,) = machines.runs[-1].read()
    assert prompt["message"]["content"] == PROMPT


async def test_a_hub_killed_right_after_the_answer_still_begins_afresh(
    journal: MemoryJournal,
) -> None:
    hub, machines = hub_with(journal)
    async with hub.run():
        session, run = await planning(hub, machines)
        await run.say(asks_plan("q1", plan="build it"))
        await answered_fresh(hub, run)
        kept = [stored.event for stored in await hub.events(session)]
        assert StartAfresh(run=run.run, by="ada") in kept
    hub, machines = hub_with(journal)
    async with hub.run():
        (run,) = machines.runs
        assert run.stops == [False], "the old run is sent away, again"
        await run.say(lines.result("r1", is_error=True))
        assert PROMPT not in [
            line["message"]["content"] for line in run.read() if "message" in line
        ]
        await run.end()
        await implements(machines)
        view = await hub.session(session)
        assert (view.afresh, view.cli_session) == (False, None)


class Cuts(MemoryJournal):
    """Knows after which events a hub can have been killed: an append is stored whole."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[int] = []

    async def append(
        self,
        session: str,
        events: Sequence[Event],
        *,
        snapshot: bytes | None = None,
        **conditions: Any,
    ) -> list[Stored]:
        stored = await super().append(session, events, snapshot=snapshot, **conditions)
        self.ends += [stored[-1].seq] if stored else []
        return stored


async def test_a_hub_killed_after_any_append_from_the_answer_on_begins_afresh() -> None:
    cuts = Cuts()
    hub, machines = hub_with(cuts)
    async with hub.run():
        session, run = await planning(hub, machines)
        await run.say(asks_plan("q1", plan="build it"))
        asked = (await hub.session(session)).head
        await answered_fresh(hub, run)
        await run.say(lines.result("r1", is_error=True))
        await run.end()
        stored = await hub.events(session)
    ends = [end for end in cuts.ends if end > asked]
    assert len(ends) > 3
    for end in ends:
        journal = MemoryJournal()
        await journal.append(session, [one.event for one in stored[:end]])
        after, others = hub_with(journal)
        async with after.run():
            view = await after.session(session)
            assert view.run is not None, f"after event {end} nothing runs, and nothing would"
            if view.afresh:
                await others.runs[-1].end()
            await implements(others)


async def test_a_stale_plan_may_be_done_in_a_new_conversation_too(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, run = await planning(hub, machines)
    await run.say(asks_plan("q1", plan="build it"))
    (card,) = await hub.asks()
    await run.end()
    assert (await hub.session(session)).state is SessionState.ENDED
    await hub.submit(AnswerAsk(ask=card.opened.ask, answer=FRESH, by="ada"))
    await implements(machines)
