"""The watchdog against a CLI that plays each fault; and against one that is only slow."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import Raw

from quarterdeck.domain.coded import AlarmAct, CodedText, TextCode
from quarterdeck.protocol.commands import (
    AllowAnswer,
    Answer,
    AnswerAsk,
    Control,
    DenyAnswer,
    ResumeSession,
    StopSession,
)
from quarterdeck.protocol.events import AlarmEnded, RunStarting
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.testing import fake
from quarterdeck.testing.fake import Step
from support.guarded import Clock, Guarded, guarded

pytestmark = [pytest.mark.anyio, pytest.mark.process]

CONVERSATION = "11111111-2222-4333-8444-555555555555"
BASH = fake.tool_use("Bash", {"command": "make"})
READ = fake.tool_use("Read", {"file_path": "/x"})
INIT = fake.say({"type": "system", "subtype": "init", "session_id": "$session_id", "uuid": "$uuid"})
BEGIN: list[Step] = [fake.Initialize(), fake.Expect("user"), INIT]
TOOL: list[Step] = [
    *BEGIN,
    fake.say(fake.assistant(BASH), fake.tool_result("done")),
]
ON_INTERRUPT: list[Step] = [
    fake.Expect("control_request", "interrupt"),
    fake.say(fake.answer(), fake.result("stopped", subtype="error_during_execution")),
    fake.Serve(),
]


async def test_silence_after_a_tool_s_result_rings_and_then_the_turn_is_interrupted(
    tmp_path: Path,
) -> None:
    async with guarded(tmp_path, Clock()) as deck:
        session = await deck.new([*TOOL, *ON_INTERRUPT])
        await deck.said(session, b"tool_result")
        await deck.pass_time(599)
        assert await deck.alarms(session) == []
        await deck.pass_time(2)
        assert await deck.alarms(session) == [("silent_after_tool", "")]
        shown = (await deck.hub.session(session)).account.alarms["silent_after_tool"]
        assert shown.coded == CodedText(code=TextCode.SILENT_AFTER_TOOL, seconds=601)
        await deck.pass_time(600)
        view = await deck.until(session, lambda view: view.state is SessionState.IDLE)
        assert view.turns == 1
        assert await deck.alarms(session) == [
            ("silent_after_tool", ""),
            ("silent_after_tool", AlarmAct.TURN_INTERRUPTED),
        ]


async def test_a_cli_that_does_not_even_take_an_interrupt_is_ended_and_can_be_resumed(
    tmp_path: Path,
) -> None:
    async with guarded(tmp_path, Clock()) as deck:
        session = await deck.new([*TOOL, fake.Hang()])
        await deck.said(session, b"tool_result")
        for _ in range(3):
            await deck.pass_time(601)
        view = await deck.until(session, lambda view: view.state is SessionState.ENDED)
        assert [act for _, act in await deck.alarms(session)][-1] == AlarmAct.RUN_ENDED
        assert "silent_after_tool" in view.account.alarms  # shown until the next run begins
        await deck.hub.submit(ResumeSession(session=session))
        assert (await deck.hub.session(session)).account.alarms == {}


async def test_an_alarm_ends_when_the_cli_is_heard_again(
    tmp_path: Path,
) -> None:
    clock = Clock()
    async with guarded(tmp_path, clock) as deck:
        script = [
            *TOOL,
            fake.Expect("control_request", "interrupt"),
            fake.say(fake.assistant("there I am")),
            fake.Hang(),
        ]
        session = await deck.new(script)
        await deck.said(session, b"tool_result")
        await deck.pass_time(601)
        await deck.pass_time(601)
        clock.move(1)
        await deck.until(session, lambda view: not view.account.alarms)
        assert AlarmEnded(alarm="silent_after_tool") in await deck.events(session)


async def test_a_turn_without_a_result_rings(tmp_path: Path) -> None:
    async with guarded(tmp_path, Clock()) as deck:
        session = await deck.new([*BEGIN, fake.say(fake.assistant("all done")), *ON_INTERRUPT])
        await deck.said(session, b"all done")
        await deck.pass_time(899)
        assert await deck.alarms(session) == []
        await deck.pass_time(2)
        assert await deck.alarms(session) == [("no_result", "")]
        await deck.pass_time(900)
        await deck.until(session, lambda view: view.state is SessionState.IDLE)
        assert len(await deck.alarms(session)) == 2


@pytest.mark.parametrize("answer", [AllowAnswer(), DenyAnswer(message="no")])
async def test_a_permission_that_was_answered_without_a_reaction_is_answered_again(
    tmp_path: Path, answer: Answer
) -> None:
    async with guarded(tmp_path, Clock()) as deck:
        script = [
            *BEGIN,
            fake.say(fake.assistant(READ), fake.can_use_tool("Read", {"file_path": "/x"})),
            fake.Expect("control_response"),
            fake.Expect("control_response"),
            fake.say(fake.tool_result("contents"), fake.result("done")),
            fake.Serve(),
        ]
        session = await deck.new(script)
        card = await deck.ask(session)
        await deck.pass_time(5000)
        assert await deck.alarms(session) == []
        await deck.hub.submit(AnswerAsk(ask=card.opened.ask, answer=answer, by="ada"))
        await deck.pass_time(59)
        assert await deck.alarms(session) == []
        await deck.pass_time(2)
        assert await deck.alarms(session) == [("no_reaction", AlarmAct.ANSWER_REPEATED)]
        await deck.until(session, lambda view: view.turns == 1)


async def test_a_cli_that_closed_its_output_is_ended_and_that_is_told(tmp_path: Path) -> None:
    async with guarded(tmp_path, Clock()) as deck:
        session = await deck.new([*BEGIN, fake.CloseOutput(), fake.Hang()])
        view = await deck.until(session, lambda view: view.state is SessionState.ENDED)
        assert [alarm for alarm, _ in await deck.alarms(session)] == ["output_closed"]
        coded = view.account.alarms["output_closed"].coded
        assert coded == CodedText(code=TextCode.RUNS_WITHOUT_OUTPUT)


async def test_a_cli_that_does_not_leave_when_told_to_is_ended_and_that_is_told(
    tmp_path: Path,
) -> None:
    async with guarded(tmp_path, Clock()) as deck:
        script = [
            *BEGIN,
            fake.say(fake.result("done")),
            fake.Expect("control_request", "end_session"),
            fake.say(fake.answer()),
            fake.IgnoreTerm(),
            fake.Hang(),
        ]
        session = await deck.new(script)
        await deck.until(session, lambda view: view.turns == 1)
        await deck.hub.submit(StopSession(session=session, by="ada"))
        view = await deck.until(session, lambda view: view.state is SessionState.ENDED)
        assert list(view.account.alarms) == ["no_exit"]
        assert view.account.crashes == 0  # somebody wanted it to end


async def test_a_resume_that_comes_to_nothing_is_told_and_not_tried_again(tmp_path: Path) -> None:
    async with guarded(tmp_path, Clock()) as deck:
        lost = fake.result(
            "",
            subtype="error_during_execution",
            is_error=True,
            num_turns=0,
            errors=["No conversation found with session ID: x"],
        )
        script = [fake.Initialize(), fake.Expect("user"), fake.say(lost), fake.Exit(1)]
        session = await deck.new(script, resumes=CONVERSATION, restart=True)
        view = await deck.until(session, lambda view: view.state is SessionState.ENDED)
        assert [alarm for alarm, _ in await deck.alarms(session)] == ["empty_resume"]
        await deck.pass_time(3600)
        view = await deck.hub.session(session)
        assert (view.run, len(view.ended_runs)) == (None, 1)


async def test_a_crash_loop_ends_after_a_few_tries_over_a_restart_of_the_hub_too(
    tmp_path: Path,
) -> None:
    clock = Clock()
    script = [fake.Initialize(), fake.Expect("user"), INIT, fake.say(fake.assistant("ah"))]
    async with guarded(tmp_path, clock) as deck:
        session = await deck.new([*script, fake.Exit(3, "boom")], restart=True)
        await deck.until(session, lambda view: view.account.crashes == 1)
        await deck.pass_time(2)
        await deck.until(session, lambda view: view.account.crashes == 2)
    async with guarded(tmp_path, clock) as deck:
        await deck.pass_time(6)
        await deck.until(session, lambda view: view.account.crashes == 3)
        await deck.pass_time(21)
        view = await deck.until(session, lambda view: "crash_loop" in view.account.alarms)
        coded = view.account.alarms["crash_loop"].coded
        assert coded is not None
        assert (coded.code, coded.count) == (TextCode.CRASH_LOOP, 4)
        await deck.pass_time(3600)
        started = [e for e in await deck.events(session) if isinstance(e, RunStarting)]
        assert len(started) == 4


async def test_without_the_wish_for_it_nothing_is_started_again(tmp_path: Path) -> None:
    async with guarded(tmp_path, Clock()) as deck:
        session = await deck.new([fake.Initialize(), fake.Exit(3, "boom")])
        await deck.until(session, lambda view: view.state is SessionState.ENDED)
        await deck.pass_time(60)
        assert (await deck.hub.session(session)).run is None


# --- what explains silence -----------------------------------------------------------------------


def task(subtype: str, **more: object) -> fake.Line:
    base: fake.Line = {"type": "system", "subtype": subtype, "task_id": "t1"}
    return base | {"session_id": "$session_id", "uuid": "$uuid"} | more


LIMITED: fake.Line = {
    "type": "rate_limit_event",
    "rate_limit_info": {
        "status": "rejected",
        "resetsAt": 1_800_000_000 + 20_000,
        "rateLimitType": "five_hour",
    },
    "session_id": "$session_id",
    "uuid": "$uuid",
}
RETRY = task("api_retry", attempt=3, max_retries=10, retry_delay_ms=20_000_000, error="rate_limit")
EXPLAINED: dict[str, list[fake.Line]] = {
    "a tool that runs for hours": [fake.assistant(BASH)],
    "one of two tools that still runs": [
        fake.assistant(BASH, fake.tool_use("Bash", {"command": "x"}, "toolu_2")),
        fake.tool_result("done"),
    ],
    "a background task": [fake.assistant(BASH), task("task_started"), fake.tool_result("runs")],
    "a limit of the account": [fake.assistant("so"), LIMITED],
    "a retry of the API": [fake.assistant("so"), RETRY],
    "a person who is asked": [
        fake.assistant(BASH),
        fake.can_use_tool("Bash", {"command": "make"}),
    ],
}


@pytest.mark.parametrize("why", EXPLAINED)
async def test_silence_is_no_alarm_while_something_explains_it(tmp_path: Path, why: str) -> None:
    async with guarded(tmp_path, Clock()) as deck:
        session = await deck.new([*BEGIN, fake.say(*EXPLAINED[why], fake_end()), fake.Hang()])
        await deck.said(session, b"the end of it")
        for _ in range(4):
            await deck.pass_time(4000)
        assert await deck.alarms(session) == []
        assert (await deck.hub.session(session)).run is not None


async def test_a_session_that_is_only_slow_or_idle_gives_no_alarm(tmp_path: Path) -> None:
    async with guarded(tmp_path, Clock()) as deck:
        script: list[Step] = [*BEGIN]
        for number in range(4):
            script += [
                fake.Expect("control_request", "mcp_status"),
                fake.say(fake.answer()),
                fake.say({"type": "keep_alive"}) if number % 2 else fake.Stream(1),
            ]
        session = await deck.new([*script, fake.say(fake.result("slow")), fake.Serve()])
        await deck.said(session, b"init")
        for _ in range(4):
            await deck.pass_time(850)
            await poke(deck, session)
        await deck.until(session, lambda view: view.turns == 1)
        await deck.pass_time(100_000)
        assert await deck.alarms(session) == []


async def poke(deck: Guarded, session: str) -> None:
    """Have the CLI say something more."""
    request = Raw(b'{"subtype":"mcp_status"}')
    await deck.hub.submit(Control(session=session, request=request, timeout=20))


def fake_end() -> fake.Line:
    """A line that says nothing, and is journalled."""
    return {"type": "quarterdeck_test", "text": "the end of it"}
