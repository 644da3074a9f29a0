"""Plain turns: what comes, in what order, and how it is accounted for."""

from __future__ import annotations

import anyio
import pytest

from quarterdeck.wire.messages import Assistant, Result
from quarterdeck.wire.outbound import Prompt, text_block
from quarterdeck.wire.states import State
from quarterdeck.wire.system import Init
from quarterdeck.wire.versions import release
from support.scenes import SECONDS, Decider, Probe, result_of, tool_results, turn
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_a_prompt_gives_init_then_the_answer_then_the_result(seat: Seat) -> None:
    async with seat.agent() as agent:
        assert agent.info is not None
        assert agent.info.commands
        assert agent.info.models
        assert (agent.info.pid is not None) is (seat.version >= release(62))
        assert bool(agent.info.agents) is (seat.version >= release(120))
        told = agent.info.claude_code_version
        assert told == (str(seat.version) if seat.version >= release(325) else None)
        assert agent.init is None
        assert agent.session_id is None
        with anyio.fail_after(SECONDS):
            messages = [message async for message in agent.query("hello")]
        assert agent.state is State.READY
        assert agent.version == seat.version
    kinds = [type(message) for message in messages]
    assert kinds.index(Init) < kinds.index(Assistant) < kinds.index(Result)
    assert kinds[-1] is Result
    assert [m.text for m in messages if isinstance(m, Assistant)] == ["echo: hello"]
    result = result_of(messages)
    assert result.result == "echo: hello"
    assert not result.failed
    assert result.stop_reason == ("end_turn" if seat.version >= release(120) else None)
    seat.found("A prompt and its answer")
    seat.found("Says its version", "at the start" if told else "with the first turn")
    seat.found("Says why the model stopped", "yes" if result.stop_reason else "no")


async def test_a_second_prompt_goes_on_in_the_same_session(seat: Seat) -> None:
    async with seat.agent() as agent:
        with anyio.fail_after(SECONDS):
            first = agent.query("one")
            inits = [message async for message in first if isinstance(message, Init)]
            blocks = Prompt.of([text_block("two"), text_block("three")])
            second = agent.query(blocks)
            inits += [message async for message in second if isinstance(message, Init)]
        assert agent.state is State.READY
        assert agent.session_id == inits[0].session_id
    assert len(inits) == 2
    assert inits[0].session_id == inits[1].session_id
    assert inits[0].uuid != inits[1].uuid
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


async def test_without_permission_prompts_a_tool_is_denied_unless_the_cli_dialled(
    seat: Seat,
) -> None:
    probe, decide = Probe(seat), Decider()
    async with seat.agent(decide=decide, permission_prompts=False) as agent:
        messages = await turn(agent, probe.call("one"))
    denied = result_of(messages).permission_denials
    if seat.transport == "stdio":
        assert decide.asks == []
        assert probe.runs == []
        assert tool_results(messages)[0].is_error
        assert [each.tool_name for each in denied] == ["Bash"]
        seat.found("A tool call with permission prompts off", "denied")
    else:
        assert [ask.tool_name for ask in decide.asks] == ["Bash"]
        assert probe.runs == ["one"]
        assert denied == ()
        seat.found("A tool call with permission prompts off", "asked all the same")
