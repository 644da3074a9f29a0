"""Budgets: they end a turn in its midst, hold prompts back, and outlive the hub and the run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec import Raw

from quarterdeck.domain.errors import Conflict, UsageError
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.supervision.budgets import (
    Limit,
    Limits,
    Spending,
    Spent,
    reached_limits,
    sentence,
)
from quarterdeck.hub.supervision.meter import MOST_REMEMBERED, Meter, Prices
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.commands import ChangeSession, CreateSession, ResumeSession, SendPrompt
from quarterdeck.protocol.events import BudgetFreed, BudgetReached, Event, Metered, ModelTokens
from quarterdeck.protocol.sessions import Budget, SessionSpec, SessionState
from quarterdeck.wire.codec import from_cli
from support import lines
from support.guarded import Clock, tick
from support.hub_machines import TestMachines, TestRun, hub_with

pytestmark = pytest.mark.anyio

P1, P2, P3 = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2, 3))
DAY = 24 * 3600


@asynccontextmanager
async def deck(
    journal: MemoryJournal, clock: Clock, limits: Limits | None = None
) -> AsyncIterator[tuple[Hub, TestMachines]]:
    hub, machines = hub_with(journal, now=clock, limits=limits)
    async with hub.run():
        yield hub, machines


async def working(
    hub: Hub, machines: TestMachines, budget: Budget | None = None, directory: str = "/work"
) -> tuple[str, TestRun]:
    """A session in a turn."""
    spec = SessionSpec(directory=directory, budget=budget)
    command = CreateSession(spec=spec, prompt=Raw(b'"hello"'), prompt_id=P1, by="ada")
    session = (await hub.submit(command)).session
    run = machines.runs[-1]
    await run.greet()
    await run.take_prompt()
    return session, run


def stream(event: dict[str, object], uuid: str) -> bytes:
    return lines.line(
        type="stream_event",
        event=event,
        parent_tool_use_id=None,
        session_id=lines.SESSION,
        uuid=uuid,
    )


def response(number: int, *, given: int, taken: int, model: str = "claude-opus-4") -> list[bytes]:
    """A response of the model, as it is streamed, that calls a tool; and the tool's result."""
    usage = {"input_tokens": taken, "output_tokens": 1}
    message = {"id": f"m{number}", "type": "message", "role": "assistant", "model": model}
    call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {}}
    whole = {**message, "content": [call], "usage": usage}
    done = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "done"}
    return [
        stream(
            {"type": "message_start", "message": {**message, "content": [], "usage": usage}},
            f"s{number}",
        ),
        lines.line(type="assistant", message=whole, session_id=lines.SESSION, uuid=f"a{number}"),
        stream(
            {"type": "message_delta", "delta": {}, "usage": {"output_tokens": given}}, f"d{number}"
        ),
        lines.line(
            type="user",
            message={"role": "user", "content": [done]},
            session_id=lines.SESSION,
            uuid=f"u{number}",
        ),
    ]


def result(uuid: str, cost: float, given: int, taken: int = 0, **more: object) -> bytes:
    usage = {"inputTokens": taken, "outputTokens": given, "costUSD": cost}
    return lines.result(uuid, cost=cost, modelUsage={"claude-opus-4": usage}, **more)


async def happened(hub: Hub, session: str, *kinds: type[Event]) -> list[Event]:
    events = [stored.event for stored in await hub.events(session, limit=5000)]
    return [event for event in events if isinstance(event, kinds)]


def interrupts(run: TestRun) -> int:
    asked = [line.get("request", {}).get("subtype") for line in run.read()]
    return asked.count("interrupt")


async def send(hub: Hub, session: str, prompt: str) -> None:
    await hub.submit(SendPrompt(session=session, prompt=prompt, content=Raw(b'"more"')))


async def test_a_turn_is_interrupted_in_its_midst_and_that_is_told_once() -> None:
    clock = Clock()
    async with deck(MemoryJournal(clock=clock), clock) as (hub, machines):
        session, run = await working(hub, machines, Budget(run_tokens=1000))
        await run.say(*response(1, given=100, taken=300))
        assert interrupts(run) == 0
        (metered,) = await happened(hub, session, Metered)
        assert isinstance(metered, Metered)
        assert (metered.models[0].output, metered.tool_calls) == (100, 1)
        await run.say(*response(2, given=300, taken=310)[:3])
        assert interrupts(run) == 1
        await run.say(*response(2, given=300, taken=310)[3:], *response(3, given=1, taken=1))
        assert interrupts(run) == 0
        (told,) = await happened(hub, session, BudgetReached)
        assert isinstance(told, BudgetReached)
        assert (told.scope, told.unit, told.limit, told.spent) == ("run", "tokens", 1000, 1010)
        await run.say(result("r", 0.02, given=401, taken=611, subtype="error_during_execution"))
        view = await hub.session(session)
        assert view.state is SessionState.IDLE
        assert (view.account.tokens, view.account.run_tokens) == (1012, 1012)
        assert (view.cost_usd, view.account.estimated_usd) == (0.02, 0.0)
        assert list(view.account.budgets) == ["run.tokens"]


async def test_a_prompt_is_refused_with_the_reason_until_somebody_raises_the_budget() -> None:
    clock = Clock()
    async with deck(MemoryJournal(clock=clock), clock) as (hub, machines):
        session, run = await working(hub, machines, Budget(session_usd=1.0))
        await send(hub, session, P2)  # while the turn runs: it is queued
        await run.say(result("r", 1.25, given=10))
        assert run.read() == []
        with pytest.raises(Conflict, match=r"budget of \$1.00 for the session is used up \(\$1.25"):
            await send(hub, session, P3)
        assert [one.prompt for one in (await hub.session(session)).queued] == [P2]
        await hub.submit(ChangeSession(session=session, budget=Budget(session_usd=2.0)))
        assert await run.take_prompt() == P2
        assert await happened(hub, session, BudgetFreed) == [
            BudgetFreed(scope="session", unit="usd")
        ]
        assert (await hub.session(session)).account.budgets == {}
        await run.say(result("r2", 2.5, given=20))
        reached_again = await happened(hub, session, BudgetReached)
        assert [each.limit for each in reached_again if isinstance(each, BudgetReached)] == [1, 2]


async def test_what_was_spent_and_the_refusal_outlive_the_hub_and_the_run() -> None:
    clock = Clock()
    journal = MemoryJournal(clock=clock)
    async with deck(journal, clock) as (hub, machines):
        session, run = await working(hub, machines, Budget(session_usd=3.0, run_usd=2.0))
        await run.say(result("r", 1.5, given=300))
        await run.end("It crashed.", exit_code=1)
        await send(hub, session, P2)  # the CLI is resumed, and counts from nothing
        run = machines.runs[-1]
        await run.greet()
        await run.take_prompt()
        await run.say(*response(1, given=100, taken=300))
        before = (await hub.session(session)).account
    async with deck(journal, clock) as (hub, machines):
        run = machines.runs[-1]
        assert (await hub.session(session)).account == before
        assert before.usd > 1.5
        await run.say(result("r2", 1.5, given=100, taken=300))
        view = await hub.session(session)
        assert (view.cost_usd, view.account.run_usd) == (3.0, 1.5)
        assert list(view.account.budgets) == ["session.usd"]
    async with deck(journal, clock) as (hub, machines):
        with pytest.raises(Conflict, match="is used up"):
            await send(hub, session, P3)


async def test_a_run_s_limit_holds_for_the_run_and_the_next_one_begins_with_nothing() -> None:
    clock = Clock()
    async with deck(MemoryJournal(clock=clock), clock) as (hub, machines):
        session, run = await working(hub, machines, Budget(run_usd=1.0))
        await run.say(result("r", 1.0, given=10))
        with pytest.raises(Conflict):
            await send(hub, session, P2)
        await run.end("It was stopped.", exit_code=0)
        await hub.submit(ResumeSession(session=session))
        await machines.runs[-1].greet()
        await tick(hub)
        await send(hub, session, P2)
        assert (await hub.session(session)).account.budgets == {}


async def test_a_day_s_limit_is_for_all_sessions_and_another_day_begins_with_nothing() -> None:
    clock = Clock()
    journal = MemoryJournal(clock=clock)
    limits = Limits(day=Limit(usd=2.0))
    async with deck(journal, clock, limits) as (hub, machines):
        first, run = await working(hub, machines)
        await run.say(result("r", 1.5, given=10))
        second, other = await working(hub, machines)
        await send(hub, second, P2)
        await other.say(result("r", 0.75, given=10))
        for session in (first, second):
            with pytest.raises(Conflict, match="for today, over all sessions"):
                await send(hub, session, P3)
    async with deck(journal, clock, limits) as (hub, machines):
        with pytest.raises(Conflict, match=r"\$2.25"):
            await send(hub, first, P3)
        other = machines.runs[-1] if machines.runs[-1].session == second else machines.runs[-2]
        other.read()
        clock.move(DAY)
        await tick(hub)
        assert await other.take_prompt() == P2  # it was queued, and goes by itself
        await send(hub, first, P3)


async def test_a_project_s_limit_is_for_its_sessions_and_can_be_raised_while_the_hub_runs() -> None:
    clock = Clock()
    limits = Limits(projects={"/deck": Limit(tokens=100)})
    async with deck(MemoryJournal(clock=clock), clock, limits) as (hub, machines):
        mine, run = await working(hub, machines, directory="/deck")
        await run.say(result("r", 0.1, given=60, taken=50))
        free, other = await working(hub, machines, directory="/other")
        await other.say(result("r", 0.1, given=60, taken=50))
        await send(hub, free, P2)
        with pytest.raises(Conflict, match="100 tokens for the project"):
            await send(hub, mine, P2)
        hub.change(limits=Limits(projects={"/deck": Limit(tokens=1000)}))
        await send(hub, mine, P2)
        await tick(hub)
        assert (await hub.session(mine)).account.budgets == {}


async def test_a_cli_that_goes_on_after_its_interrupt_is_ended() -> None:
    clock = Clock()
    async with deck(MemoryJournal(clock=clock), clock) as (hub, machines):
        session, run = await working(hub, machines, Budget(run_tokens=10))
        await run.say(*response(1, given=100, taken=300))
        clock.move(29)
        await tick(hub)
        assert run.stops == []
        clock.move(2)
        await run.say(lines.assistant("on and on", "x"))
        await tick(hub)
        assert run.stops == [False]
        assert "unstoppable" in (await hub.session(session)).account.alarms


async def test_a_turn_that_began_by_itself_is_interrupted_too() -> None:
    clock = Clock()
    async with deck(MemoryJournal(clock=clock), clock) as (hub, machines):
        session, run = await working(hub, machines, Budget(run_tokens=10))
        await run.say(*response(1, given=100, taken=300), result("r", 0.1, given=100))
        run.read()
        await run.say(lines.init(uuid="i2"), *response(2, given=5, taken=5))
        assert interrupts(run) == 1
        assert len(await happened(hub, session, BudgetReached)) == 1


async def test_what_a_killed_turn_had_used_stays_counted_as_an_estimate() -> None:
    clock = Clock()
    async with deck(MemoryJournal(clock=clock), clock) as (hub, machines):
        session, run = await working(hub, machines)
        await run.say(*response(1, given=1000, taken=0)[:3])
        await run.end("It was killed.", signal=9)
        view = await hub.session(session)
        assert view.account.tokens == 1000
        assert view.cost_usd == view.account.estimated_usd == pytest.approx(1000 * 5 * 5e-6)


# --- the parts -----------------------------------------------------------------------------------


def test_prices_are_those_that_the_totals_came_to() -> None:
    prices = Prices()
    used = ModelTokens(model="claude-opus-4", input=100, output=20, cache_read=1000)
    guess = prices.cost(used)
    assert guess == pytest.approx(300 * 5e-6)
    prices.learn([ModelTokens(model="claude-opus-4", cost_usd=0.6, input=100, output=100)])
    assert prices.cost(used) == pytest.approx(0.3)
    assert prices.cost(ModelTokens(model="who-knows", input=1)) == 15e-6


def test_a_response_counts_once_however_often_it_is_told() -> None:
    meter = Meter()
    for line in (*response(1, given=50, taken=10), *response(1, given=50, taken=10)):
        meter.receive(from_cli(line.rstrip()))
    (used,) = meter.models(Prices())
    assert (used.input, used.output, meter.tool_calls) == (10, 50, 1)
    meter.receive(from_cli(result("r", 0.1, given=50).rstrip()))
    assert not meter.used
    assert meter.models(Prices()) == ()


def test_a_turn_of_any_length_is_metered_exactly_with_little_memory() -> None:
    meter = Meter()
    count = 3 * MOST_REMEMBERED
    for number in range(1, count + 1):
        for line in response(number, given=2, taken=1):
            meter.receive(from_cli(line.rstrip()))
        if number % 5 == 0:
            meter.evolve(meter.metered_event("r", Prices()))
        (used,) = meter.models(Prices())
        assert (used.input, used.output, meter.tool_calls) == (number, 2 * number, number)
    assert len(meter._responses) == len(meter._calls) == MOST_REMEMBERED
    assert len(meter._in_base) <= MOST_REMEMBERED


def test_what_was_written_down_is_gone_on_from_after_a_restart() -> None:
    live = Meter()
    for line in response(1, given=50, taken=10):
        live.receive(from_cli(line.rstrip()))
    metered = live.metered_event("r", Prices())
    live.evolve(metered)
    restored = Meter()
    for line in response(1, given=50, taken=10):
        if b"stream_event" not in line:  # those are not journalled
            restored.receive(from_cli(line.rstrip()))
    restored.evolve(metered)
    for meter in (live, restored):
        for line in response(2, given=7, taken=3):
            meter.receive(from_cli(line.rstrip()))
    assert restored.models(Prices()) == live.models(Prices())
    assert restored.tool_calls == live.tool_calls == 2


def test_every_limit_that_is_reached_is_named() -> None:
    spent = Spent(usd=2.0, tokens=50)
    spending = Spending(run=spent, session=spent, day=spent, project=spent)
    budget = Budget(run_usd=2.0, run_tokens=51, session_usd=5.0, session_tokens=50)
    limits = Limits(day=Limit(usd=1.0), projects={"/x": Limit(tokens=1)})
    found = reached_limits(budget, limits, "/x", spending)
    assert [(one.scope, one.unit) for one in found] == [
        ("run", "usd"),
        ("session", "tokens"),
        ("day", "usd"),
        ("project", "tokens"),
    ]
    assert sentence(found[1]).startswith("the budget of 50 tokens for the session is used up (50)")
    assert reached_limits(None, Limits(), "/x", spending) == []


def test_a_limit_that_nothing_could_keep_is_refused() -> None:
    for wrong in (0, -1.0, float("nan"), float("inf")):
        with pytest.raises(UsageError):
            Limit(usd=wrong)
        with pytest.raises(UsageError):
            Budget(session_usd=wrong)
