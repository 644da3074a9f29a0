"""Queued prompts: each query ends with the turn that took its prompt.

Interrupting: what ends, what is kept, what is withdrawn, and what continues.

One session shows it all: its scenes follow each other.
"""

from __future__ import annotations

import os
from contextlib import suppress

import anyio
import pytest

from quarterdeck import Agent, Assistant, Prompt, Query
from quarterdeck.domain.errors import LinkClosed, RequestTimeout, TurnFailed, UnsupportedError
from quarterdeck.testing import Gate, Text, play, reply
from quarterdeck.wire.commands import McpStatus
from quarterdeck.wire.control import ControlCancel
from quarterdeck.wire.messages import Result, StreamEvent, User
from quarterdeck.wire.outbound import Priority
from quarterdeck.wire.reports import ResultSubtype, TerminalReason
from quarterdeck.wire.states import State
from quarterdeck.wire.turns import Turn
from quarterdeck.wire.versions import joins_queued_prompts, release
from support.bounds import SECONDS
from support.scenes import Person, Probe, bash, result_of, tool_results, turn
from support.seats import Seat
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


SLOWLY = Text("word ", times=500, delay=0.05)


async def finish(*queries: Query) -> list[Turn]:
    """Read several queries to their ends, at once."""
    turns: dict[str, Turn] = {}

    async def read(query: Query) -> None:
        turns[query.uuid] = await query.finish()

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            for query in queries:
                tasks.start_soon(read, query)
    return [turns[query.uuid] for query in queries]


async def has_read(agent: Agent) -> None:
    """Wait until the CLI has read all that was sent before: it answers in order."""
    with anyio.fail_after(SECONDS):
        await agent.mcp_status()


async def test_every_prompt_ends_with_the_turn_that_took_it(seat: Seat) -> None:
    person = Person()
    async with seat.agent(decide=person) as agent:
        await prompts_behind_a_text_run_each_or_joined(seat, agent)
        await prompts_sent_while_a_tool_runs_are_folded_in(seat, agent, person)
        await a_queued_prompt_can_be_taken_back(seat, agent)
        await an_urgent_prompt_breaks_off_the_turn(seat, agent)
        seat.theme = "Interrupting"
        await a_text_is_cut_short_and_what_was_queued_runs_next(seat, agent)
        await between_turns_nothing_happens(seat, agent)
        await a_running_command_is_killed(seat, agent, person)
        await an_open_question_is_withdrawn(seat, agent, person)
        await a_request_of_ours_can_be_given_up(seat, agent)
        seat.theme = "Endings"
        query = await leave_with_a_question_open(seat, agent, person)
    await the_question_was_withdrawn(seat, person, query)


async def prompts_behind_a_text_run_each_or_joined(seat: Seat, agent: Agent) -> None:
    first = await agent.prompt(play(reply("so ", Gate("queue"), "so")))
    await seat.model.wait_at_gate("queue")
    queued = [await agent.prompt(f"queued {n}") for n in range(3)]
    await has_read(agent)
    seat.model.release("queue")
    with anyio.fail_after(SECONDS):
        ours = [message.text async for message in first if isinstance(message, Assistant)]
    others = await finish(*queued)
    assert agent.state is State.READY
    taken = first.turn
    assert taken is not None
    assert taken.prompts == (first.uuid,)
    # What the others said is not in the first one's messages.
    assert ours == ["so ", "so"]
    uuids = tuple(query.uuid for query in queued)
    if joins_queued_prompts(seat.version):
        assert [other.prompts for other in others] == [uuids] * 3
        last = seat.model.turns[-1].last_message
        assert "queued 0\nqueued 1\nqueued 2" in "\n".join(last.texts)
        seat.found("Prompts queued while the model speaks", "joined in one turn")
    else:
        assert [other.prompts for other in others] == [(uuid,) for uuid in uuids]
        texts = [other.result.result for other in others if other.result]
        assert texts == ["echo: queued 0", "echo: queued 1", "echo: queued 2"]
        seat.found("Prompts queued while the model speaks", "a turn each")
    # Each turn's cost is its own, and together they are the total.
    last_result = others[-1].result
    assert last_result is not None
    own = {other.result.uuid: other.cost_usd for other in [taken, *others] if other.result}
    assert sum(own.values()) == pytest.approx(last_result.total_cost_usd)


async def prompts_sent_while_a_tool_runs_are_folded_in(
    seat: Seat, agent: Agent, person: Person
) -> None:
    first = await agent.prompt(play(bash("touch made"), "all done"))
    (ask,) = await person.wait_for(1)
    folded = [await agent.prompt(f"also {n}") for n in range(2)]
    await has_read(agent)
    assert len(agent.asks) == 1
    person.answer(ask)
    turns = await finish(first, *folded)
    assert agent.state is State.READY
    assert (seat.cwd / "made").exists()
    assert turns[0].prompts == (first.uuid, *(query.uuid for query in folded))
    assert turns == [turns[0]] * 3
    assert "also 0" in seat.model.turns[-1].body.decode()
    assert "also 1" in seat.model.turns[-1].body.decode()
    seat.found("Prompts sent while a tool runs", "folded into the turn")


async def a_queued_prompt_can_be_taken_back(seat: Seat, agent: Agent) -> None:
    with anyio.fail_after(SECONDS):
        long = await agent.prompt(play(reply("on ", Gate("long"), "and on")))
        await seat.model.wait_at_gate("long")
        unwanted = await agent.prompt("unwanted")
        if seat.version >= release(92):
            assert await agent.cancel_prompt(unwanted.uuid)
            with pytest.raises(TurnFailed, match="cancelled"):
                await unwanted.finish()
            assert unwanted.cancelled
            assert not await agent.cancel_prompt(unwanted.uuid)
            seat.model.release("long")
            await long.finish()
        else:
            with pytest.raises(UnsupportedError, match="cancel_async_message"):
                await agent.cancel_prompt(unwanted.uuid)
            seat.model.release("long")
            await finish(long, unwanted)
        after = await agent.query("after").finish()
    assert len(after.prompts) == 1
    assert agent.state is State.READY
    asked = any(request.last_text == "unwanted" for request in seat.model.turns)
    assert asked is (seat.version < release(92))
    seat.found("Cancel a queued prompt", "no" if asked else "yes")


async def an_urgent_prompt_breaks_off_the_turn(seat: Seat, agent: Agent) -> None:
    first = await agent.prompt(play(reply(Text("partial"), Gate("urgent"), "whole")))
    await seat.model.wait_at_gate("urgent")
    later = await agent.prompt(Prompt.of("later", priority=Priority.LATER))
    urgent = await agent.prompt(Prompt.of("urgent", priority=Priority.NOW))
    if seat.version < release(120):
        # Old ones ignore it: the turn goes on until the model is done.
        await has_read(agent)
        seat.model.release("urgent")
    broken, after, last = await finish(first, urgent, later)
    assert agent.state is State.READY
    assert broken.prompts == (first.uuid,)
    said = broken.result.result if broken.result else None
    assert after.result is not None
    assert last.result is not None
    ran = list(dict.fromkeys([after.result.result, last.result.result]))
    if seat.version >= release(120):
        assert said != "whole"
        seat.found("An urgent prompt breaks off the turn")
        joined = seat.version < release(325)
        assert ran == (["echo: urgent\nlater"] if joined else ["echo: urgent", "echo: later"])
        order = "joined in their order" if joined else "yes"
        seat.found("Prompts run in the order of their priority", order)
    else:
        assert said == "whole"
        seat.found("An urgent prompt breaks off the turn", "no")
        assert ran == ["echo: urgent", "echo: later"]
        assert [each.last_text for each in seat.model.turns[-2:]] == ["later", "urgent"]
        seat.found("Prompts run in the order of their priority", "no")


def check_interrupted(seat: Seat, result: Result | None, reason: TerminalReason) -> None:
    assert result is not None
    assert result.failed
    assert result.subtype is ResultSubtype.ERROR_DURING_EXECUTION
    newer = seat.version >= release(120)
    assert result.is_error is newer
    assert result.terminal_reason is (reason if newer else None)


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
        assert kept[0].aborted is (seat.version >= release(325))
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
    started, asked = seat.cwd / "started", len(seat.model.turns)
    loop = f"echo $$ > {started}; while true; do sleep 1; done"
    with anyio.fail_after(SECONDS):
        query = await agent.prompt(play(bash(loop), "never said"))
        person.answer((await person.wait_for(len(person.asks) + 1))[-1])
        await until(lambda: started.exists() and started.read_text().endswith("\n"))
        shell = int(started.read_text())
        os.kill(shell, 0)
        await agent.interrupt()
        messages = [message async for message in query]
        await until(lambda: not alive(shell))
    check_interrupted(seat, query.result, TerminalReason.ABORTED_TOOLS)
    (answer,) = tool_results(messages)
    assert answer.is_error
    assert not any(each.last_message.has_tool_result for each in seat.model.turns[asked:])
    assert agent.state is State.READY
    seat.found("Interrupt while a command runs", "kills it")


async def an_open_question_is_withdrawn(seat: Seat, agent: Agent, person: Person) -> None:
    probe = Probe(seat)
    heard = agent.messages()
    with anyio.fail_after(SECONDS):
        query = await agent.prompt(play(probe.call("one"), "never said"))
        ask = (await person.wait_for(len(person.asks) + 1))[-1]
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


async def leave_with_a_question_open(seat: Seat, agent: Agent, person: Person) -> Query:
    with anyio.fail_after(SECONDS):
        query = await agent.prompt(play(Probe(seat, "left").call("one"), "never said"))
        await person.wait_for(len(person.asks) + 1)
    return query


async def the_question_was_withdrawn(seat: Seat, person: Person, query: Query) -> None:
    # Whoever thinks about it is stopped. Some CLIs have the time to say how the turn ended.
    assert person.withdrawn[-1] is person.asks[-1]
    with anyio.fail_after(SECONDS), suppress(LinkClosed):
        assert (await query.finish()).failed
    assert not (seat.cwd / "left.log").exists()
    seat.found("End an agent while a question is open")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
