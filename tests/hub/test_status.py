"""Limits of the account as a state of the session, and links that come and go."""

from __future__ import annotations

import time

import anyio
import pytest
from msgspec import Raw

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.hub.hub import Hub
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.coded_texts import with_texts
from quarterdeck.protocol.commands import CreateSession, Interrupt, SendPrompt
from quarterdeck.protocol.events import AnyEvent, LinkFound, LinkLost, RateLimited, StateChanged
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from support import lines
from support.hub_machines import TestMachines, TestRun, hub_with

pytestmark = pytest.mark.anyio
SOON = 4_000_000_000


def limit(uuid: str, status: str, **more: object) -> bytes:
    info = {"status": status, "rateLimitType": "five_hour", "resetsAt": SOON, **more}
    return lines.line(
        type="rate_limit_event", rate_limit_info=info, uuid=uuid, session_id=lines.SESSION
    )


async def working(hub: Hub, machines: TestMachines) -> tuple[str, TestRun]:
    command = CreateSession(spec=SessionSpec(directory="/work"), prompt=Raw(b'"hello"'), by="ada")
    session = (await hub.submit(command)).session
    (run,) = machines.runs
    await run.greet()
    await run.take_prompt()
    return session, run


async def events(hub: Hub, session: str) -> list[AnyEvent]:
    return [stored.event for stored in await hub.events(session)]


async def test_a_rejected_session_is_rate_limited_until_it_is_allowed_again(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, run = await working(hub, machines)
    await run.say(limit("l1", "allowed_warning", utilization=0.9))
    assert (await hub.session(session)).state is SessionState.WORKING
    await run.say(limit("l2", "rejected", utilization=1), limit("l3", "rejected", utilization=1))
    view = await hub.session(session)
    assert view.state is SessionState.LIMITED
    assert view.detail == "the five hour limit is reached, until 2096-10-02 07:06 UTC"
    told = [event for event in await events(hub, session) if isinstance(event, RateLimited)]
    assert [event.status for event in told] == ["allowed_warning", "rejected"]
    assert told[-1] == RateLimited(
        status="rejected", limit="five_hour", resets_at=SOON * 1000, used=1.0
    )
    await run.say(lines.result("r1", is_error=True))
    assert (await hub.session(session)).state is SessionState.LIMITED
    await run.say(limit("l4", "allowed"))
    assert (await hub.session(session)).state is SessionState.IDLE


async def test_a_turn_that_goes_on_is_limited_no_more(deck: tuple[Hub, TestMachines]) -> None:
    hub, machines = deck
    session, run = await working(hub, machines)
    await run.say(limit("l1", "rejected"))
    refusal = {"id": "m", "role": "assistant", "model": "<synthetic>", "content": []}
    await run.say(
        lines.line(
            type="assistant",
            message=refusal,
            error="rate_limit",
            parent_tool_use_id=None,
            session_id=lines.SESSION,
            uuid="a1",
        )
    )
    assert (await hub.session(session)).state is SessionState.LIMITED
    await run.say(lines.asks_permission("q1"))
    assert (await hub.session(session)).state is SessionState.WAITING
    await run.say(lines.cancels("q1"))
    assert (await hub.session(session)).state is SessionState.LIMITED
    await run.say(lines.assistant("on we go", "a2"))
    assert (await hub.session(session)).state is SessionState.WORKING


async def test_what_is_paid_for_beyond_the_limit_is_not_held_up(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, run = await working(hub, machines)
    await run.say(limit("l1", "rejected", isUsingOverage=True))
    assert (await hub.session(session)).state is SessionState.WORKING


async def test_a_limit_ends_with_its_time_also_for_the_next_hub(journal: MemoryJournal) -> None:
    hub, machines = hub_with(journal)
    async with hub.run():
        session, run = await working(hub, machines)
        await run.say(limit("l1", "rejected", resetsAt=time.time() + 0.3), lines.result("r1"))
        assert (await hub.session(session)).state is SessionState.LIMITED
    hub, machines = hub_with(journal)
    async with hub.run():
        assert (await hub.session(session)).state is SessionState.LIMITED
        follower = hub.follow({session: (await hub.session(session)).head})
        async for told, *_ in follower:
            assert told.event == StateChanged(state=SessionState.IDLE)
            break


async def test_a_time_that_no_calendar_has_is_no_time(deck: tuple[Hub, TestMachines]) -> None:
    hub, machines = deck
    session, run = await working(hub, machines)
    await run.say(limit("l1", "rejected", resetsAt=1e300, rateLimitType=None))
    view = await hub.session(session)
    assert (view.state, view.detail) == (SessionState.LIMITED, "the account limit is reached")


async def test_a_link_that_comes_and_goes_is_told_in_two_events(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, run = await working(hub, machines)
    before = len(await events(hub, session))
    await run.owner.run_lost(run.run, CodedText(code=TextCode.MACHINE_LOST))
    assert (await hub.session(session)).state is SessionState.DISCONNECTED
    await run.owner.run_found(run.run)
    assert (await hub.session(session)).state is SessionState.WORKING
    told = (await events(hub, session))[before:]
    assert told == [
        LinkLost(run=run.run, reason="", coded=CodedText(code=TextCode.MACHINE_LOST)),
        LinkFound(run=run.run),
    ]


async def test_a_link_that_the_journal_never_missed_is_not_found_again(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, run = await working(hub, machines)
    before = await events(hub, session)
    await run.owner.run_found(run.run)
    assert await events(hub, session) == before


def refusal(uuid: str, error: str) -> bytes:
    message = {"id": "m", "role": "assistant", "model": "<synthetic>", "content": []}
    return lines.line(
        type="assistant",
        message=message,
        error=error,
        parent_tool_use_id=None,
        session_id=lines.SESSION,
        uuid=uuid,
    )


async def test_a_view_has_how_the_last_turn_ended_and_why(deck: tuple[Hub, TestMachines]) -> None:
    hub, machines = deck
    session, run = await working(hub, machines)
    began = await hub.session(session)
    assert began.last_turn is None
    await run.say(
        refusal("a1", "authentication_failed"),
        lines.result("r1", is_error=True, result="Please run /login"),
    )
    view = await hub.session(session)
    assert view.state is SessionState.IDLE
    assert view.since >= began.since > 0
    last = view.last_turn
    assert last is not None
    assert (last.failed, last.problem, last.at) == (True, "authentication_failed", view.since)

    send = SendPrompt(session=session, prompt="p2", content=Raw(b'"again"'), by="ada")
    await hub.submit(send)
    await run.take_prompt()
    await run.say(lines.assistant("on we go", "a2"), lines.result("r2"))
    last = (await hub.session(session)).last_turn
    assert last is not None
    assert (last.failed, last.problem) == (False, "")


async def test_a_turn_that_somebody_ends_is_interrupted_and_the_next_is_not(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, run = await working(hub, machines)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hub.submit, Interrupt(session=session, by="ada"))
        await run.wait_for_write()
        (interrupt,) = run.read()
        await run.say(lines.success_answer(interrupt["request_id"]))
    await run.say(lines.result("r1", subtype="error_during_execution", is_error=True))
    last = (await hub.session(session)).last_turn
    assert last is not None
    assert (last.failed, last.problem) == (True, "interrupted")

    await hub.submit(SendPrompt(session=session, prompt="p2", content=Raw(b'"on"'), by="ada"))
    await run.take_prompt()
    await run.say(lines.result("r2", subtype="error_during_execution", is_error=True))
    last = (await hub.session(session)).last_turn
    assert last is not None
    assert (last.failed, last.problem) == (True, "")


async def test_each_retry_is_told_with_its_number(deck: tuple[Hub, TestMachines]) -> None:
    hub, machines = deck
    session, run = await working(hub, machines)
    for number in (1, 2, 2):
        await run.say(
            lines.line(
                type="system",
                subtype="api_retry",
                attempt=number,
                max_retries=10,
                retry_delay_ms=500,
                error_status=529,
                error="overloaded",
                session_id=lines.SESSION,
                uuid=f"t{number}",
            )
        )
    view = await hub.session(session)
    assert (view.state, view.detail) == (SessionState.RETRYING, "overloaded (2 of 10)")
    told = [
        with_texts(one).detail
        for one in await events(hub, session)
        if isinstance(one, StateChanged)
    ]
    assert told[-2:] == ["overloaded (1 of 10)", "overloaded (2 of 10)"]
