"""Queued prompts: each query ends with the turn that took its prompt."""

from __future__ import annotations

import anyio
import pytest

from quarterdeck import Agent, Assistant, Prompt, Query
from quarterdeck.domain.errors import TurnFailed, UnsupportedError
from quarterdeck.testing import Gate, Text, play, reply
from quarterdeck.wire.outbound import Priority
from quarterdeck.wire.states import State
from quarterdeck.wire.turns import Turn
from quarterdeck.wire.versions import joins_queued_prompts, release
from support.scenes import SECONDS, Person, bash
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


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
    turn = first.turn
    assert turn is not None
    assert turn.prompts == (first.uuid,)
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
    own = {other.result.uuid: other.cost_usd for other in [turn, *others] if other.result}
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
    turn, after, last = await finish(first, urgent, later)
    assert agent.state is State.READY
    assert turn.prompts == (first.uuid,)
    said = turn.result.result if turn.result else None
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
