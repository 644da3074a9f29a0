"""Plain turns: what comes, in what order, and how it is accounted for."""

from __future__ import annotations

import anyio
import pytest

from quarterdeck import Agent, Query
from quarterdeck.wire.messages import Assistant, Result
from quarterdeck.wire.outbound import Prompt, text_block
from quarterdeck.wire.states import State
from quarterdeck.wire.system import Init
from quarterdeck.wire.versions import release
from support.scenes import SECONDS, result_of
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_prompts_and_answers_follow_each_other_in_one_session(seat: Seat) -> None:
    async with seat.agent() as agent:
        assert agent.info is not None
        assert agent.info.commands
        assert agent.info.models
        assert (agent.info.pid is not None) is (seat.version >= release(62))
        assert bool(agent.info.agents) is (seat.version >= release(120))
        # Whoever starts the program can ask it first.
        assert agent.version == seat.version
        # The init is no hello: nothing comes before a prompt.
        assert agent.init is None
        assert agent.session_id is None
        first = await a_prompt_gives_init_then_the_answer_then_the_result(seat, agent)
        await a_second_prompt_goes_on_in_the_same_session(seat, agent, first)


async def a_prompt_gives_init_then_the_answer_then_the_result(seat: Seat, agent: Agent) -> Query:
    assert agent.info is not None
    told = agent.info.claude_code_version
    assert told == (str(seat.version) if seat.version >= release(325) else None)
    query = agent.query("one")
    with anyio.fail_after(SECONDS):
        messages = [message async for message in query]
    assert agent.state is State.READY
    assert agent.version == seat.version
    kinds = [type(message) for message in messages]
    assert kinds.index(Init) < kinds.index(Assistant) < kinds.index(Result)
    assert kinds[-1] is Result
    assert [m.text for m in messages if isinstance(m, Assistant)] == ["echo: one"]
    result = result_of(messages)
    assert result.result == "echo: one"
    assert not result.failed
    assert result.stop_reason == ("end_turn" if seat.version >= release(120) else None)
    assert agent.init is not None
    assert {"Bash", "Read", "Task"} <= set(agent.init.tools)
    seat.found("A prompt and its answer")
    seat.found("Says its version", "at the start" if told else "with the first turn")
    seat.found("Says why the model stopped", "yes" if result.stop_reason else "no")
    return query


async def a_second_prompt_goes_on_in_the_same_session(
    seat: Seat, agent: Agent, first: Query
) -> None:
    before = agent.init
    assert before is not None
    blocks = Prompt.of([text_block("two"), text_block("three")])
    second = agent.query(blocks)
    with anyio.fail_after(SECONDS):
        (init,) = [message async for message in second if isinstance(message, Init)]
    assert agent.state is State.READY
    assert agent.session_id == before.session_id == init.session_id
    assert before.uuid != init.uuid
    asked = seat.model.turns[-1]
    assert asked.first_prompt == "one"
    assert asked.last_message.texts == ("two", "three")
    assert first.turn is not None
    assert first.result is not None
    assert second.turn is not None
    assert second.result is not None
    assert first.turn.prompts == (first.uuid,)
    assert second.turn.prompts == (second.uuid,)
    assert second.result.total_cost_usd > first.result.total_cost_usd > 0
    assert second.turn.cost_usd == pytest.approx(
        second.result.total_cost_usd - first.result.total_cost_usd
    )
    assert second.result.num_turns == 1
    seat.found("Several turns in one process")
    seat.found("A prompt of several blocks")
    seat.found("The cost in a result", "total of the process")
