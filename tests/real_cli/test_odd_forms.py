"""Odd forms: what a CLI makes of lines that Quarterdeck never sends, which is why it does not.

The agent's lines are changed on their way to the CLI.
"""

from __future__ import annotations

import anyio
import pytest

from quarterdeck import Agent, Deny, Prompt
from quarterdeck.domain.errors import LinkClosed, RequestTimeout
from quarterdeck.testing import play
from quarterdeck.wire.commands import McpStatus
from quarterdeck.wire.control import ControlResponse
from quarterdeck.wire.versions import initialize_repeatable, needs_updated_input, release
from support.meddling import (
    Change,
    Line,
    Meddler,
    adding,
    answering,
    asking_instead,
    refusing,
    request,
    twice,
)
from support.scenes import SECONDS, Decider, Person, Probe, result_of, tool_results, turn
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

FAILED = "Tool permission request failed"


async def response_to(agent: Agent, meddler: Meddler, line: Line) -> ControlResponse:
    """Send a request that the agent knows nothing of, and wait for its answer."""
    wanted = line["request_id"]
    with anyio.fail_after(SECONDS):
        async with agent.messages() as messages:
            await meddler.say(line)
            async for message in messages:
                match message:
                    case ControlResponse(response=answer) if answer.request_id == wanted:
                        return message
                    case _:
                        pass
    raise AssertionError("the CLI ended before it answered")


async def test_answers_in_other_forms_do_not_pass_for_an_allow(seat: Seat) -> None:
    meddler, decide, probe = Meddler(), Decider(), Probe(seat)
    async with seat.agent(decide=decide, meddler=meddler) as agent:

        async def answered(name: str, change: Change) -> str:
            """The tool's result for an answer that was changed so; the turn goes on."""
            meddler.change("answer", change)
            messages = await turn(agent, probe.call(name), "I see")
            assert result_of(messages).result == "I see"
            return tool_results(messages)[0].text

        text = await answered("bare", answering({"behavior": "allow"}))
        refused = needs_updated_input(seat.version)
        assert text.startswith(f"{FAILED}: ZodError") if refused else text == "ran bare"
        seat.found("An allow without the input", "refused" if refused else "runs")

        text = await answered("empty", answering({"behavior": "allow", "updatedInput": {}}))
        emptied = seat.version < release(120)
        assert ("undefined" in text) if emptied else (text == "ran empty")
        seat.found("An allow with an empty input", "runs with nothing" if emptied else "runs")

        assert await answered("id", adding(toolUseID="toolu_of_another")) == "ran id"
        assert await answered("more", adding(unknown={"a": 1})) == "ran more"
        seat.found("Members that nobody knows in an allow", "ignored")

        assert await answered("twice", twice) == "ran twice"
        assert probe.runs.count("twice") == 1
        seat.found("A second answer to one question", "ignored")

        decide.will(Deny("no"))
        text = await answered("wordless", answering({"behavior": "deny"}))
        newest = seat.version >= release(325)
        assert ("invalid permission result" if newest else f"{FAILED}: ZodError") in text
        seat.found("A denial without a message", "denies, with words of its own")

        assert await answered("error", refusing("broken")) == f"{FAILED}: Error: broken"
        seat.found("An error in place of an answer", "denies")
    ran = {"bare": not refused, "empty": not emptied, "id": 1, "more": 1, "twice": 1}
    assert sorted(probe.runs) == sorted(name for name, did in ran.items() if did)


async def test_a_prompt_may_come_before_the_greeting(seat: Seat) -> None:
    meddler, person, probe = Meddler(), Person(), Probe(seat)
    meddler.change("initialize", asking_instead("mcp_status"))
    async with seat.agent(decide=person, meddler=meddler) as agent:
        messages = await turn(agent, "hello")
        assert result_of(messages).result == "hello"
        seat.found("A prompt without initialize")

        await meddler.say({"type": "keep_alive"})
        with anyio.fail_after(SECONDS):
            query = await agent.prompt(play(probe.call("asked"), "done"))
            (ask,) = await person.wait_for(1)
        answer = (await response_to(agent, meddler, request("late", "initialize"))).response
        assert [each.request_id for each in answer.pending()] == [ask.request_id]
        late = initialize_repeatable(seat.version)
        assert answer.ok is late
        assert late or answer.error == "Already initialized"
        words = "is taken" if late else "is refused"
        seat.found("Initialize after a prompt", f"{words}, with the open questions")
        with anyio.fail_after(SECONDS):
            person.answer(ask)
            await query.finish()
        assert probe.runs == ["asked"]
        seat.found("A sign of life from us", "taken, without a word")

        # What is wrong in a prompt and does no harm: whose session it is, and its uuid.
        meddler.change("user", lambda line: [{**line, "session_id": "of-another"}])
        messages = await turn(agent, "in this one")
        assert result_of(messages).result == "in this one"
        assert result_of(messages).session_id == agent.session_id
        seat.found("A prompt for another session", "taken for this one")

        named = Prompt.of(play("named"), uuid="no-uuid-at-all")
        meddler.change("user", twice)
        with anyio.fail_after(SECONDS):
            assert await agent.query(named).text() == "named"
            asked = len(seat.model.turns)
            assert await agent.query(play("after")).text() == "after"
        assert len(seat.model.turns) == asked + 1
        seat.found("A prompt that comes twice", "runs once")


async def test_a_greeting_of_the_wrong_shape_deafens_old_versions(seat: Seat) -> None:
    meddler = Meddler()
    meddler.change("initialize", asking_instead("mcp_status"))
    wrong = request("wrong", "initialize", hooks={"PreToolUse": "not a list"})
    async with seat.agent(meddler=meddler) as agent:
        if seat.version >= release(325):
            refused = (await response_to(agent, meddler, wrong)).response
            assert "hooks must map" in (refused.error or "")
            assert result_of(await turn(agent, "still here")).result == "still here"
            seat.found("Hooks of the wrong shape", "a clear error")
        else:
            await meddler.say(wrong)
            # It answered a moment ago, and never will again. A CLI that nothing keeps busy any
            # more may end, which over stdio is a matter of time.
            gone = (RequestTimeout, LinkClosed) if seat.transport == "stdio" else RequestTimeout
            with pytest.raises(gone):
                await agent.request(McpStatus(), timeout=1)
            answer = "deafen or end the CLI" if seat.transport == "stdio" else "deafen the CLI"
            seat.found("Hooks of the wrong shape", answer)
