"""Options: what can be switched off, and what the model knows from the start."""

from __future__ import annotations

import anyio
import pytest

from quarterdeck import Agent, User
from quarterdeck.testing import Gate, ResponseHeaders, Text, Thinking, ToolUse, play, reply
from quarterdeck.wire.content import TextBlock, ThinkingBlock, ToolUseBlock
from quarterdeck.wire.messages import Assistant, RateLimitEvent, StreamEvent
from quarterdeck.wire.states import State
from quarterdeck.wire.versions import joins_queued_prompts, release
from support.bounds import SECONDS
from support.scenes import Decider, Probe, result_of, tool_results, turn
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


def limits(status: str) -> ResponseHeaders:
    """What the API tells a subscriber of the limits."""
    words = {
        "status": status,
        "reset": "4102444800",
        "representative-claim": "five_hour",
        "5h-utilization": "0.92",
        "5h-reset": "4102444800",
        "5h-surpassed-threshold": "0.9",
    }
    return ResponseHeaders(
        {f"anthropic-ratelimit-unified-{name}": word for name, word in words.items()}
    )


@pytest.mark.transports_differ
async def test_an_agent_does_without_what_was_switched_off(seat: Seat) -> None:
    decide = Decider()
    async with seat.agent(
        decide=decide,
        # Made up, and never seen by anybody but the scripted model.
        env={"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-made-up"},
        permission_prompts=False,
        include_partial_messages=False,
        replay_user_messages=False,
        system_prompt="You are an actor.",
        append_system_prompt="Mind the step.",
    ) as agent:
        await a_tool_is_denied_unless_the_cli_dialled(seat, agent, decide)
        await only_whole_messages_come(seat, agent)
        await turns_end_without_echoes_too(seat, agent)
        seat.theme = "API errors"
        await the_limits_of_a_subscription_are_told(seat, agent)
    seat.theme = ""
    for request in seat.model.turns:
        assert "You are an actor." in request.system
        assert "Mind the step." in request.system
    seat.found("A system prompt of one's own, and more behind it")


async def a_tool_is_denied_unless_the_cli_dialled(
    seat: Seat, agent: Agent, decide: Decider
) -> None:
    probe = Probe(seat)
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


async def only_whole_messages_come(seat: Seat, agent: Agent) -> None:
    look = ToolUse("Bash", {"command": "echo hi"})
    answer = reply(Thinking("let me look"), Text("a bit ", times=3), look)
    messages = await turn(agent, answer, "done")
    assert not any(isinstance(message, StreamEvent) for message in messages)
    said = [m for m in messages if isinstance(m, Assistant)]
    assert [type(block) for m in said for block in m.message.content] == [
        ThinkingBlock,
        TextBlock,
        ToolUseBlock,
        TextBlock,
    ]
    seat.found("Streaming can be switched off")


async def turns_end_without_echoes_too(seat: Seat, agent: Agent) -> None:
    asked = len(seat.model.turns)
    with anyio.fail_after(SECONDS):
        messages = [message async for message in agent.query("plain")]
        assert not any(isinstance(m, User) and m.is_replay for m in messages)
        assert not (await agent.query("/cost").finish()).failed
        first = await agent.prompt(play(reply("on ", Gate(), "and on")))
        await seat.model.wait_at_gate()
        second = await agent.prompt("second")
        await agent.mcp_status()  # answered in order: the prompt has been read
        seat.model.release()
        one, two = await first.finish(), await second.finish()
    assert agent.state is State.READY
    assert one.prompts == (first.uuid,)
    assert two.prompts == (second.uuid,)
    assert two.result is not None
    assert two.result.result == "echo: second"
    assert joins_queued_prompts(seat.version) or len(seat.model.turns) == asked + 3
    seat.found("Turns are distinguished without echoes")


async def the_limits_of_a_subscription_are_told(seat: Seat, agent: Agent) -> None:
    messages = await turn(agent, reply(limits("allowed_warning"), "nearly"))
    assert result_of(messages).result == "nearly"
    told = [message for message in messages if isinstance(message, RateLimitEvent)]
    if seat.version < release(62):
        assert told == []
        seat.found("Tells the limits of a subscription", "no")
        return
    info = told[-1].rate_limit_info
    assert (info.status, info.rate_limit_type) == ("allowed_warning", "five_hour")
    assert info.utilization == pytest.approx(0.92)
    assert info.resets_at == 4102444800
    seat.found("Tells the limits of a subscription")
