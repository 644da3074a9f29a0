"""Plain turns: what comes, in what order, and how it is accounted for.

Uuids: prompts are known by them.
Environment: variables for the CLI and for the tools that it starts.
Streaming: the answer in pieces, while it is being made.

One session shows it all: its scenes follow each other.
"""

from __future__ import annotations

from uuid import uuid4

import anyio
import msgspec
import pytest

from quarterdeck import Agent, Prompt, Query, User
from quarterdeck.domain.errors import UnsupportedError, UsageError
from quarterdeck.testing import Gate, ResponseHeaders, Text, Thinking, ToolUse, play, reply
from quarterdeck.wire.content import TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from quarterdeck.wire.internal import CommandLifecycle
from quarterdeck.wire.messages import Assistant, Result, StreamEvent
from quarterdeck.wire.outbound import text_block
from quarterdeck.wire.states import State
from quarterdeck.wire.stream import (
    ContentBlockDelta,
    ContentBlockStart,
    ContentBlockStop,
    InputJsonDelta,
    MessageDelta,
    MessageStart,
    MessageStop,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
)
from quarterdeck.wire.system import Init, Status, ThinkingTokens, WorkingStatus
from quarterdeck.wire.versions import environment_reaches_tools, has_command_lifecycle, release
from support.bounds import SECONDS
from support.scenes import Decider, Person, Probe, bash, result_of, tool_results, turn
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

ANSWER = reply(
    ResponseHeaders({"request-id": "req_of_the_api"}),
    Thinking("let me look"),
    Text("a bit ", times=3),
    ToolUse("Bash", {"command": "echo hi"}),
)


async def test_prompts_and_answers_follow_each_other_in_one_session(seat: Seat) -> None:
    decide = Decider()
    async with seat.agent(decide=decide, env={"FROM_START": "early"}) as agent:
        what_it_says_of_itself_depends_on_its_version(seat, agent)
        first = await a_prompt_gives_init_then_the_answer_then_the_result(seat, agent)
        await a_second_prompt_goes_on_in_the_same_session(seat, agent, first)
        seat.theme = "Uuids"
        await a_prompt_is_echoed_under_its_uuid_and_never_sent_twice(seat, agent)
        seat.theme = "Streaming"
        await an_answer_comes_in_pieces_and_each_block_whole_before_its_end(seat, agent)
        await a_question_may_come_before_the_end_of_the_answer(seat, agent, decide)
        seat.theme = "Environment"
        await variables_reach_the_tools(seat, agent)


def what_it_says_of_itself_depends_on_its_version(seat: Seat, agent: Agent) -> None:
    info = agent.info
    assert info is not None
    assert info.commands
    assert info.models
    assert info.available_output_styles
    assert info.account is not None
    assert (info.pid is not None) is (seat.version >= release(62))
    assert info.pid in {None, seat.pid}
    assert bool(info.agents) is (seat.version >= release(120))
    newest = seat.version >= release(325)
    assert (info.current_permission_mode is not None) is newest
    assert (info.session_state is not None) is newest
    assert bool(info.capabilities) is newest
    # Whoever starts the program can ask it first.
    assert agent.version == seat.version
    # The init is no hello: nothing comes before a prompt.
    assert agent.init is None
    assert agent.session_id is None


async def a_prompt_gives_init_then_the_answer_then_the_result(seat: Seat, agent: Agent) -> Query:
    assert agent.info is not None
    told = agent.info.claude_code_version
    newer, newest = seat.version >= release(120), seat.version >= release(325)
    assert told == (str(seat.version) if newest else None)
    query = agent.query("one")
    with anyio.fail_after(SECONDS):
        messages = [message async for message in query]
    assert agent.state is State.READY
    assert agent.version == seat.version
    kinds = [type(message) for message in messages]
    assert kinds.index(Init) < kinds.index(Assistant) < kinds.index(Result)
    assert kinds[-1] is Result
    (said,) = [m for m in messages if isinstance(m, Assistant)]
    assert said.text == "echo: one"
    assert (said.timestamp is not None) is newest
    result = result_of(messages)
    assert result.result == "echo: one"
    assert not result.failed
    assert result.stop_reason == ("end_turn" if newer else None)
    assert (result.terminal_reason is not None) is newer
    assert (result.result_index is not None) is newest
    assert result.usage.output_tokens == 5
    assert agent.init is not None
    check_init(seat, agent.init)
    seat.found("A prompt and its answer")
    seat.found("Says its version", "at the start" if told else "with the first turn")
    seat.found("Says why the model stopped", "yes" if result.stop_reason else "no")
    return query


def check_init(seat: Seat, init: Init) -> None:
    """What every version says when a turn begins, and what only newer ones say."""
    assert {"Bash", "Read", "Task"} <= set(init.tools)
    assert init.cwd == str(seat.cwd)
    assert init.claude_code_version == str(seat.version)
    assert init.api_key_source
    assert init.output_style == "default"
    assert init.agents
    assert (init.fast_mode_state is not None) is (seat.version >= release(62))
    assert (init.memory_paths is not None) is (seat.version >= release(120))
    newest = seat.version >= release(325)
    assert bool(init.terminal_slash_commands) is newest
    # A place where other sessions of this machine reach it.
    socket = init.messaging_socket_path
    assert (socket is not None) is newest
    assert socket is None or socket.endswith(f"/{seat.pid}.sock")
    seat.found("Opens a socket for other sessions", "yes" if newest else "no")


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
    (usage,) = second.result.model_usage.values()
    assert (usage.output_tokens, second.result.usage.output_tokens) == (10, 5)
    seat.found("Several turns in one process")
    seat.found("A prompt of several blocks")
    seat.found("The cost in a result", "total of the process")


async def a_prompt_is_echoed_under_its_uuid_and_never_sent_twice(seat: Seat, agent: Agent) -> None:
    asked = len(seat.model.turns)
    prompt = Prompt.of("once", uuid=str(uuid4()))
    with anyio.fail_after(SECONDS):
        messages = [message async for message in agent.query(prompt)]
        # The CLI would drop it without a word, and its turn would never end.
        with pytest.raises(UsageError, match="was sent before"):
            await agent.query(prompt).finish()
        await agent.query("twice").finish()
    echoes = [m.uuid for m in messages if isinstance(m, User) and m.is_replay]
    assert echoes == [prompt.uuid]
    assert len(seat.model.turns) == asked + 2
    seat.found("Prompts are echoed under their uuid")
    # The newest says of each message for which prompt it was said.
    answered = {uuid for m in messages if isinstance(m, Assistant) for uuid in _prompts_of(m)}
    assert answered == ({prompt.uuid} if seat.version >= release(325) else set())
    reports = [
        m.state
        for m in messages
        if isinstance(m, CommandLifecycle) and m.command_uuid == prompt.uuid
    ]
    assert reports == (["queued", "started"] if has_command_lifecycle(seat.version) else [])
    answer = "yes" if has_command_lifecycle(seat.version) else "no"
    seat.found("Reports on what becomes of a prompt", answer)


async def an_answer_comes_in_pieces_and_each_block_whole_before_its_end(
    seat: Seat, agent: Agent
) -> None:
    messages = await turn(agent, ANSWER, "done")
    first = [m for m in messages if isinstance(m, StreamEvent | Assistant)]
    end = next(
        at
        for at, m in enumerate(first)
        if isinstance(m, StreamEvent) and isinstance(m.event, MessageStop)
    )
    order = [type(m.event) if isinstance(m, StreamEvent) else Assistant for m in first[: end + 1]]
    block = [ContentBlockStart, ContentBlockDelta, Assistant, ContentBlockStop]
    assert [kind for at, kind in enumerate(order) if at == 0 or kind is not order[at - 1]] == [
        MessageStart,
        *block * 3,
        MessageDelta,
        MessageStop,
    ]
    whole = [m for m in first[:end] if isinstance(m, Assistant)]
    kinds = [[type(each) for each in m.message.content] for m in whole]
    assert kinds == [[ThinkingBlock], [TextBlock], [ToolUseBlock]]
    assert len({m.message.id for m in whole}) == 1
    assert len({m.uuid for m in whole}) == 3
    assert [m.message.stop_reason for m in whole] == [None] * 3
    told = "req_of_the_api" if seat.version >= release(325) else None
    assert {m.request_id for m in whole} == {told}
    seat.found("Each block as a message of its own, before its end")
    check_deltas(seat, [m.event for m in first[:end] if isinstance(m, StreamEvent)])
    assert "".join(m.text for m in first[:end] if isinstance(m, StreamEvent)) == "a bit " * 3
    # What a tool gave is never said to be the model's.
    assert tool_results(messages)[0].text == "hi"
    said = [block for m in messages if isinstance(m, Assistant) for block in m.blocks]
    assert not any(isinstance(block, ToolResultBlock) for block in said)

    newer = seat.version >= release(120)
    timed = [m.ttft_ms is not None for m in first if isinstance(m, StreamEvent)]
    assert (timed[0], any(timed)) == (newer, newer)
    calls = [m for m in messages if isinstance(m, Status) and m.status is WorkingStatus.REQUESTING]
    assert len(calls) == (2 if newer else 0)
    seat.found("Says when it asks the model", "yes" if newer else "no")
    counted = any(isinstance(m, ThinkingTokens) for m in messages)
    assert counted is (seat.version >= release(325))
    seat.found("Counts what is thought", "yes" if counted else "no")


def check_deltas(seat: Seat, events: list[object]) -> None:
    deltas = [each.delta for each in events if isinstance(each, ContentBlockDelta)]
    texts = [each.text for each in deltas if isinstance(each, TextDelta)]
    assert texts == ["a bit "] * 3
    seat.found("Text while it is written")
    assert [each.thinking for each in deltas if isinstance(each, ThinkingDelta)] == ["let me look"]
    assert len([each for each in deltas if isinstance(each, SignatureDelta)]) == 1
    seat.found("Thinking while it is thought")
    pieces = [each.partial_json for each in deltas if isinstance(each, InputJsonDelta)]
    assert len([piece for piece in pieces if piece]) == 2
    assert msgspec.json.decode("".join(pieces)) == {"command": "echo hi"}
    seat.found("A tool's input while it is written")


async def a_question_may_come_before_the_end_of_the_answer(
    seat: Seat, agent: Agent, decide: Decider
) -> None:
    probe, person = Probe(seat), Person()
    decide.ask_instead(person)
    early = seat.version >= release(325)
    with anyio.fail_after(SECONDS):
        # The gate stands between the call and the end of the answer.
        query = await agent.prompt(play(reply(probe.call("asked"), Gate()), "done"))
        await seat.model.wait_at_gate()
        if early:
            await person.wait_for(1)
        else:
            await agent.mcp_status()  # answered in order: all that was said before has come
            assert person.asks == []
        seat.model.release()
        (ask,) = await person.wait_for(1)
        person.answer(ask)
        messages = [message async for message in query]
    decide.ask_instead(None)
    assert tool_results(messages)[0].text == "ran asked"
    answer = "yes" if early else "no"
    seat.found("A question before the end of the answer that makes the call", answer)


async def variables_reach_the_tools(seat: Seat, agent: Agent) -> None:
    async def seen() -> str:
        (shown,) = tool_results(await turn(agent, bash("echo $FROM_START-$SET_LATER"), "seen"))
        return shown.text

    assert await seen() == "early-"
    seat.found("Variables given at the start reach the tools")
    name = "Variables set later reach the tools"
    if not environment_reaches_tools(seat.version):
        with pytest.raises(UnsupportedError, match="environment"):
            await agent.set_environment({"SET_LATER": "late"})
        seat.found(name, "no")
        return
    await agent.set_environment({"SET_LATER": "late"})
    assert await seen() == "early-late"
    seat.found(name)


def _prompts_of(message: Assistant) -> set[str]:
    named = {message.user_message_uuid} if message.user_message_uuid else set()
    return named | set(message.user_message_uuids)
