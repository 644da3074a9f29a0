"""Streaming: the answer in pieces, while it is being made."""

from __future__ import annotations

import anyio
import msgspec
import pytest

from quarterdeck import Agent
from quarterdeck.testing import Gate, Text, Thinking, ToolUse, play, reply
from quarterdeck.wire.content import TextBlock, ThinkingBlock, ToolUseBlock
from quarterdeck.wire.messages import Assistant, StreamEvent
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
from quarterdeck.wire.system import Status, WorkingStatus
from quarterdeck.wire.versions import release
from support.scenes import SECONDS, Person, Probe, tool_results, turn
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

ANSWER = reply(
    Thinking("let me look"), Text("a bit ", times=3), ToolUse("Bash", {"command": "echo hi"})
)


async def test_an_answer_comes_in_pieces_and_each_block_whole_before_its_end(seat: Seat) -> None:
    person = Person()
    async with seat.agent(decide=person) as agent:
        messages = await turn(agent, ANSWER, "done")
        await a_question_may_come_before_the_end_of_the_answer(seat, agent, person)
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
    seat.found("Each block as a message of its own, before its end")

    deltas = [
        m.event.delta
        for m in first[:end]
        if isinstance(m, StreamEvent) and isinstance(m.event, ContentBlockDelta)
    ]
    texts = [each.text for each in deltas if isinstance(each, TextDelta)]
    assert texts == ["a bit "] * 3
    assert "".join(m.text for m in first[:end] if isinstance(m, StreamEvent)) == "a bit " * 3
    seat.found("Text while it is written")
    assert [each.thinking for each in deltas if isinstance(each, ThinkingDelta)] == ["let me look"]
    assert len([each for each in deltas if isinstance(each, SignatureDelta)]) == 1
    seat.found("Thinking while it is thought")
    pieces = [each.partial_json for each in deltas if isinstance(each, InputJsonDelta)]
    assert len([piece for piece in pieces if piece]) == 2
    assert msgspec.json.decode("".join(pieces)) == {"command": "echo hi"}
    seat.found("A tool's input while it is written")
    assert tool_results(messages)[0].text == "hi"

    calls = [m for m in messages if isinstance(m, Status) and m.status is WorkingStatus.REQUESTING]
    if seat.version >= release(120):
        assert len(calls) == 2
        seat.found("Says when it asks the model")
    else:
        assert calls == []
        seat.found("Says when it asks the model", "no")


async def a_question_may_come_before_the_end_of_the_answer(
    seat: Seat, agent: Agent, person: Person
) -> None:
    probe = Probe(seat)
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
    assert tool_results(messages)[0].text == "ran asked"
    answer = "yes" if early else "no"
    seat.found("A question before the end of the answer that makes the call", answer)
