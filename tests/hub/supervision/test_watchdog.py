"""Whether a run is alive: over restarts of the hub, and by the clock of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.coded import AlarmAct, CodedText, TextCode
from quarterdeck.domain.exits import RUNNER_KILLED
from quarterdeck.hub.decisions.inputs import AskCli
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.shell import handle
from quarterdeck.hub.supervision.crashes import (
    PAUSES_MS,
    TRIES,
    alarms_at_end,
    loop_alarm,
    restart_at,
)
from quarterdeck.hub.supervision.watchdog import Timeouts, Watch
from quarterdeck.journal.accounts import HEALTHY_MS
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.accounts import Account, AlarmView
from quarterdeck.protocol.coded_texts import with_texts
from quarterdeck.protocol.commands import CreateSession, ResumeSession, StopSession
from quarterdeck.protocol.events import Alarmed, Noted, RunEnded, RunStopping
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import RestartRule, SessionSpec
from quarterdeck.wire.codec import from_cli
from quarterdeck.wire.commands import Interrupt
from support import lines
from support.guarded import Clock, tick
from support.hub_machines import TestMachines, hub_with

pytestmark = pytest.mark.anyio

PROMPT = "00000000-0000-4000-8000-000000000001"


@asynccontextmanager
async def deck(
    journal: MemoryJournal, clock: Clock, timeouts: Timeouts | None = None
) -> AsyncIterator[tuple[Hub, TestMachines]]:
    hub, machines = hub_with(journal, now=clock, timeouts=timeouts)
    async with hub.run():
        yield hub, machines


async def create(hub: Hub, *, restart: RestartRule | bool = False) -> str:
    made = SessionSpec(directory="/work", restart=restart)
    command = CreateSession(spec=made, prompt=Raw(b'"hello"'), prompt_id=PROMPT, by="ada")
    return (await hub.submit(command)).session


async def alarms(journal: MemoryJournal, session: str) -> list[str]:
    events = [stored.event for stored in await journal.read(session, limit=5000)]
    return [event.act for event in events if isinstance(event, Alarmed)]


async def test_the_next_hub_goes_on_at_the_step_that_was_next() -> None:
    clock = Clock()
    journal = MemoryJournal(clock=clock)
    async with deck(journal, clock) as (hub, machines):
        session = await create(hub)
        run = machines.runs[-1]
        await run.greet()
        await run.take_prompt()
        clock.move(901)
        await tick(hub)
    said = run.said
    async with deck(journal, clock) as (hub, machines):
        run = machines.runs[-1]
        assert run.said == said
        assert "no_result" in (await hub.session(session)).account.alarms
        run.read()
        clock.move(1801)
        await tick(hub)
        assert await alarms(journal, session) == ["", "turn_interrupted"]
        (interrupt,) = run.read()
        assert interrupt["request"]["subtype"] == "interrupt"
        await run.say(lines.result("r"))
        clock.move(1)
        await run.say(lines.line(type="keep_alive"))
        assert (await hub.session(session)).account.alarms == {}


async def test_a_stop_outlives_the_hub_and_what_does_not_end_is_killed() -> None:
    clock = Clock()
    journal = MemoryJournal(clock=clock)
    async with deck(journal, clock) as (hub, machines):
        session = await create(hub)
        run = machines.runs[-1]
        await run.greet()
        await journal.append(session, [RunStopping(run=run.run, by="ada")])
    async with deck(journal, clock) as (hub, machines):
        run = machines.runs[-1]
        assert run.stops == [False]
        clock.move(59)
        await tick(hub)
        assert run.stops == [False]
        clock.move(2)
        await tick(hub)
        await tick(hub)
        assert run.stops == [False, True]
        assert await alarms(journal, session) == ["run_killed"]


async def test_a_run_that_cannot_be_heard_is_not_judged() -> None:
    clock = Clock()
    journal = MemoryJournal(clock=clock)
    async with deck(journal, clock) as (hub, machines):
        session = await create(hub)
        run = machines.runs[-1]
        await run.greet()
        await run.take_prompt()
        await run.owner.run_lost(run.run, CodedText(code=TextCode.MACHINE_LOST))
        clock.move(5000)
        await tick(hub)
        await run.owner.run_found(run.run)
        clock.move(800)
        await tick(hub)
        assert await alarms(journal, session) == []


async def test_without_recovery_an_alarm_only_rings() -> None:
    clock = Clock()
    journal = MemoryJournal(clock=clock)
    async with deck(journal, clock, Timeouts(result=10, recover=False)) as (hub, machines):
        session = await create(hub)
        run = machines.runs[-1]
        await run.greet()
        await run.take_prompt()
        for _ in range(5):
            clock.move(11)
            await tick(hub)
        assert await alarms(journal, session) == [""]
        assert run.read() == []
        hub.change(timeouts=Timeouts(result=10))
        clock.move(11)
        await tick(hub)
        assert await alarms(journal, session) == ["", "turn_interrupted"]


async def test_a_crash_is_resumed_with_its_conversation_if_that_is_wished() -> None:
    clock = Clock()
    journal = MemoryJournal(clock=clock)
    async with deck(journal, clock) as (hub, machines):
        session = await create(hub, restart=True)
        run = machines.runs[-1]
        await run.greet()
        await run.take_prompt()
        await run.say(lines.assistant("hi", "a"))
        clock.move(3600)
        await run.end("It crashed.", exit_code=139)
        await tick(hub)
        assert len(machines.runs) == 1
        clock.move(PAUSES_MS[0] / 1000)
        await tick(hub)
        assert len(machines.runs) == 2
        assert machines.started[-1][1].cli_session == lines.SESSION
        assert (await hub.session(session)).account.crashes == 1


@pytest.mark.parametrize("taken", [True, False], ids=["cut off", "queued"])
async def test_work_that_a_killed_runner_left_is_resumed_and_that_is_said(*, taken: bool) -> None:
    clock = Clock()
    journal = MemoryJournal(clock=clock)
    async with deck(journal, clock) as (hub, machines):
        session = await create(hub, restart="faults")
        run = machines.runs[-1]
        await run.greet()
        if taken:
            await run.take_prompt()
            await run.say(lines.assistant("hi", "a"))
        else:
            await run.say(lines.init())
        clock.move(3600)
        await run.end("The runner was killed.", fault=RUNNER_KILLED)
        clock.move(PAUSES_MS[0] / 1000)
        await tick(hub)
        assert len(machines.runs) == 2
        assert machines.started[-1][1].cli_session == lines.SESSION
        noted = [one.event for one in await journal.read(session, limit=5000)]
        assert [with_texts(each).text for each in noted if isinstance(each, Noted)] == [
            "It is resumed automatically. The runner was killed."
        ]


async def test_who_stops_a_session_that_waits_for_its_restart_is_heeded() -> None:
    clock = Clock()
    journal = MemoryJournal(clock=clock)
    async with deck(journal, clock) as (hub, machines):
        session = await create(hub, restart="faults")
        run = machines.runs[-1]
        await run.greet()
        await run.take_prompt()
        await run.end("The runner was killed.", fault=RUNNER_KILLED)
        stopped = await hub.submit(StopSession(session=session, by="ada"))
        assert not stopped.repeated
        clock.move(3600)
        await tick(hub)
        assert len(machines.runs) == 1
        again = await hub.submit(StopSession(session=session, by="ada"))
        assert again.repeated
    async with deck(journal, clock) as (hub, machines):
        await tick(hub)
        assert machines.runs == []
        await hub.submit(ResumeSession(session=session, by="ada"))
        assert len(machines.runs) == 1


@pytest.mark.parametrize(
    ("rule", "fault", "cut_off"),
    [
        ("never", RUNNER_KILLED, True),
        (False, RUNNER_KILLED, True),
        ("faults", "", True),
        ("faults", RUNNER_KILLED, False),
    ],
)
async def test_a_session_is_left_alone_where_nobody_wants_it_back(
    rule: RestartRule | bool, fault: str, *, cut_off: bool
) -> None:
    clock = Clock()
    journal = MemoryJournal(clock=clock)
    async with deck(journal, clock) as (hub, machines):
        await create(hub, restart=rule)
        run = machines.runs[-1]
        await run.greet()
        await run.take_prompt()
        await run.say(lines.assistant("hi", "a"))
        if not cut_off:
            await run.say(lines.result("r"))
        clock.move(3600)
        await run.end("It died.", exit_code=None if fault else 139, fault=fault)
        clock.move(3600)
        await tick(hub)
        assert len(machines.runs) == 1


@pytest.mark.parametrize("by", ["stderr", "result"])
async def test_a_conversation_that_was_never_written_begins_anew_with_what_is_queued(
    by: str,
) -> None:
    clock = Clock()
    journal = MemoryJournal(clock=clock)
    async with deck(journal, clock) as (hub, machines):
        session = await create(hub, restart="faults")
        first = machines.runs[-1]
        await first.greet()
        await first.say(lines.init())
        await first.end("The runner was killed.", fault=RUNNER_KILLED)
        clock.move(30)
        await tick(hub)
        resumed = machines.runs[-1]
        origins = [each[1].cli_session for each in machines.started]
        assert origins[-1] == lines.SESSION
        unknown = f"No conversation found with session ID: {lines.SESSION}"
        if by == "result":
            await resumed.say(
                lines.result(
                    "r1",
                    subtype="error_during_execution",
                    is_error=True,
                    num_turns=0,
                    errors=[unknown],
                )
            )
        await resumed.end("It exited.", exit_code=1, stderr=(unknown,) if by == "stderr" else ())
        assert len(machines.runs) == 3
        assert [each[1].cli_session for each in machines.started][-1] is None
        await machines.runs[-1].greet()
        assert await machines.runs[-1].take_prompt()
        assert "empty_resume" not in (await hub.session(session)).account.alarms


def heard(watch: Watch, *said: bytes, at: int) -> None:
    for line in said:
        watch.receive(from_cli(line.rstrip()), at)


def check(watch: Watch, seconds: int, account: Account | None = None) -> list[tuple[str, AlarmAct]]:
    found = watch.check(
        seconds * 1000, Timeouts(), account or Account(), in_turn=True, asking=False
    )
    return [(finding.alarm, finding.act) for finding in found]


def test_an_allowed_tool_that_may_run_for_hours_is_given_hours() -> None:
    watch = Watch()
    call = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]
    said = {"id": "m", "role": "assistant", "content": call}
    heard(watch, lines.line(type="assistant", message=said, uuid="a"), at=0)
    watch.note_settled("q1", "Bash", 0, allowed=True)
    assert check(watch, 100_000) == []
    watch.note_settled("q1", "Bash", 0, allowed=False)
    assert check(watch, 61) == [("no_reaction", AlarmAct.ANSWER_REPEATED)]


def test_each_step_is_taken_once() -> None:
    watch = Watch()
    heard(watch, lines.init(), at=0)
    rung = AlarmView(text="", action="", at=900_000)
    stopped = AlarmView(text="", action="", at=1_800_000, act=AlarmAct.TURN_INTERRUPTED)
    assert check(watch, 1000, Account(alarms={"no_result": rung})) == []
    steps = Account(alarms={"no_result": rung})
    assert check(watch, 1801, steps) == [("no_result", AlarmAct.TURN_INTERRUPTED)]
    steps = Account(alarms={"no_result": stopped})
    assert check(watch, 2699, steps) == []
    assert check(watch, 2701, steps) == [("no_result", AlarmAct.RUN_ENDED)]
    assert watch.ended_alarms(steps) == []
    heard(watch, lines.line(type="keep_alive"), at=1_800_001)
    assert watch.ended_alarms(steps) == ["no_result"]


async def test_a_resumed_turn_that_failed_with_words_or_was_broken_off_is_no_empty_resume() -> None:
    clock = Clock()
    journal = MemoryJournal(clock=clock)
    failed = lines.result("r", subtype="error_during_execution", is_error=True, result="")
    async with deck(journal, clock) as (hub, machines):
        for number in range(3):
            spec = SessionSpec(directory="/work")
            made = CreateSession(
                spec=spec, prompt=Raw(b'"go on"'), cli_session=f"{lines.SESSION[:-1]}{number}"
            )
            session = (await hub.submit(made)).session
            run = machines.runs[-1]
            await run.greet()
            (prompt,) = run.read()
            if number == 0:
                await run.say(lines.assistant("the API failed", "a"))
            elif number == 1:
                await handle(run.owner.session, AskCli(command=Interrupt()))
            await run.say(lines.echo(prompt["uuid"]), failed)
            wanted = ["not_tried_again"] if number == 2 else []
            assert await alarms(journal, session) == wanted


def crashed(account: Account) -> SessionView:
    spec = SessionSpec(directory="/work", restart=True)
    return SessionView(session="s", spec=spec, account=account)


def after(crashes: int, **alarms: AlarmView) -> SessionView:
    return crashed(Account(crashes=crashes, up_since=1, ended_at=HEALTHY_MS, alarms=alarms))


def test_each_try_waits_longer_and_the_fourth_is_not_made() -> None:
    assert [restart_at(after(number)) for number in range(5)] == [
        None,
        *(HEALTHY_MS + pause for pause in PAUSES_MS),
        None,
    ]
    empty = AlarmView(text="", action="", at=0)
    assert restart_at(after(1, empty_resume=empty)) is None


def test_a_runner_that_dies_again_and_again_is_not_followed_for_ever() -> None:
    ended = RunEnded(run="r", reason="It died.", fault=RUNNER_KILLED, cut_off=True)
    spec = SessionSpec(directory="/work")
    views = [replace(after(number), spec=spec, ended=ended) for number in range(5)]
    assert [restart_at(view) is not None for view in views] == [False, True, True, True, False]
    assert loop_alarm(views[TRIES]) is None
    assert loop_alarm(views[TRIES + 1]) is not None


def test_a_resume_that_somebody_stopped_or_that_had_nothing_to_do_is_no_alarm() -> None:
    ended = RunEnded(run="r", reason="It exited.", exit_code=0)
    idle = Account(up_since=1, resumed=True)
    assert alarms_at_end(crashed(idle), ended, answered=False) == []
    stopped = Account(up_since=1, resumed=True, run_turns=1, stopping=5)
    assert alarms_at_end(crashed(stopped), ended, answered=False) == []
