"""Interrupting: what ends, what is kept, what is withdrawn, and what goes on."""

from __future__ import annotations

import os

import anyio
import pytest

from quarterdeck import Agent
from quarterdeck.domain.errors import RequestTimeout
from quarterdeck.testing import Text, play
from quarterdeck.wire.commands import McpStatus
from quarterdeck.wire.control import ControlCancel
from quarterdeck.wire.messages import Assistant, Result, StreamEvent, User
from quarterdeck.wire.result import ResultSubtype, TerminalReason
from quarterdeck.wire.states import State
from quarterdeck.wire.versions import release
from support.scenes import SECONDS, Person, Probe, bash, result_of, tool_results, turn
from support.seats import Seat
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

SLOWLY = Text("word ", times=500, delay=0.05)


def check_interrupted(seat: Seat, result: Result | None, reason: TerminalReason) -> None:
    assert result is not None
    assert result.failed
    assert result.subtype is ResultSubtype.ERROR_DURING_EXECUTION
    newer = seat.version >= release(120)
    assert result.is_error is newer
    assert result.terminal_reason is (reason if newer else None)


async def test_an_interrupt_ends_what_runs_and_nothing_else(seat: Seat) -> None:
    person = Person()
    async with seat.agent(decide=person) as agent:
        await a_text_is_cut_short_and_what_was_queued_runs_next(seat, agent)
        await between_turns_nothing_happens(seat, agent)
        await a_running_command_is_killed(seat, agent, person)
        await an_open_question_is_withdrawn(seat, agent, person)
        await a_request_of_ours_can_be_given_up(seat, agent)


async def a_text_is_cut_short_and_what_was_queued_runs_next(seat: Seat, agent: Agent) -> None:
    with anyio.fail_after(SECONDS):
        query = await agent.prompt(play(SLOWLY))
        async for message in query:
            if isinstance(message, StreamEvent) and message.text:
                break
        queued = await agent.prompt("next, please")
        receipt = await agent.interrupt()
        rest = [message async for message in query]
        after = [message async for message in queued]
    check_interrupted(seat, query.result, TerminalReason.ABORTED_STREAMING)
    assert any(
        isinstance(each, User) and each.text == "[Request interrupted by user]" for each in rest
    )
    seat.found("Interrupt while the model speaks")
    kept = [each for each in rest if isinstance(each, Assistant)]
    if seat.version >= release(120):
        assert len(kept) == 1
        assert kept[0].text.startswith("word ")
        seat.found("The text before an interrupt", "comes as a message")
    else:
        assert kept == []
        seat.found("The text before an interrupt", "only as deltas")

    assert result_of(after).result == "echo: next, please"
    assert queued.turn is not None
    assert queued.turn.prompts == (queued.uuid,)
    assert agent.state is State.READY
    seat.found("A prompt queued before an interrupt", "runs next")
    told = receipt.still_queued == (queued.uuid,)
    assert told is (seat.version >= release(325))
    seat.found("Says what is still queued", "yes" if told else "no")


async def between_turns_nothing_happens(seat: Seat, agent: Agent) -> None:
    with anyio.fail_after(SECONDS):
        await agent.interrupt()
    assert agent.state is State.READY
    messages = await turn(agent, "still here")
    assert result_of(messages).result == "still here"
    seat.found("Interrupt between turns", "does nothing")


async def a_running_command_is_killed(seat: Seat, agent: Agent, person: Person) -> None:
    started = seat.cwd / "started"
    loop = f"echo $$ > {started}; while true; do sleep 1; done"
    with anyio.fail_after(SECONDS):
        query = await agent.prompt(play(bash(loop), "never said"))
        person.answer((await person.wait_for(1))[-1])
        await until(lambda: started.exists() and started.read_text().endswith("\n"))
        shell = int(started.read_text())
        os.kill(shell, 0)
        await agent.interrupt()
        messages = [message async for message in query]
        await until(lambda: not alive(shell))
    check_interrupted(seat, query.result, TerminalReason.ABORTED_TOOLS)
    (answer,) = tool_results(messages)
    assert answer.is_error
    assert not any(each.last_message.has_tool_result for each in seat.model.turns)
    assert agent.state is State.READY
    seat.found("Interrupt while a command runs", "kills it")


async def an_open_question_is_withdrawn(seat: Seat, agent: Agent, person: Person) -> None:
    probe = Probe(seat)
    heard = agent.messages()
    with anyio.fail_after(SECONDS):
        query = await agent.prompt(play(probe.call("one"), "never said"))
        ask = (await person.wait_for(2))[-1]
        assert [each.request_id for each in agent.asks] == [ask.request_id]
        await agent.interrupt()
        messages = [message async for message in query]
        await until(lambda: person.withdrawn == [ask])
        async with heard:
            async for message in heard:
                if isinstance(message, ControlCancel):
                    assert message.request_id == ask.request_id
                    break
    check_interrupted(seat, query.result, TerminalReason.ABORTED_TOOLS)
    assert tool_results(messages)[0].is_error
    assert agent.asks == ()
    assert agent.state is State.READY
    # Too late: nobody waits for it any more, and it must not reach the CLI.
    person.answer(ask)
    messages = await turn(agent, "still here")
    assert result_of(messages).result == "still here"
    assert probe.runs == []
    seat.found("Interrupt while a question is open", "withdraws it")


async def a_request_of_ours_can_be_given_up(seat: Seat, agent: Agent) -> None:
    # We stop waiting for an answer. The oldest would end if we told it so.
    with pytest.raises(RequestTimeout):
        await agent.request(McpStatus(), timeout=0)
    assert result_of(await turn(agent, "still here")).result == "still here"
    assert agent.state is State.READY
    seat.found("A request of ours can be given up")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
