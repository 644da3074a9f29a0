"""Permissions: a tool call is asked about, and what an answer does."""

from __future__ import annotations

import anyio
import pytest

from quarterdeck import Allow, Deny, ToolAsk
from quarterdeck.testing import ToolUse, play, reply
from quarterdeck.wire.permissions import PermissionMode, SetMode
from quarterdeck.wire.requests import DecisionReasonType
from quarterdeck.wire.result import ResultSubtype, TerminalReason
from quarterdeck.wire.states import State
from quarterdeck.wire.versions import release
from support.scenes import (
    SECONDS,
    Decider,
    Person,
    Probe,
    bash,
    read,
    result_of,
    tool_results,
    turn,
    write,
)
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_an_allowed_call_runs_as_it_is_or_changed(seat: Seat) -> None:
    decide, probe = Decider(), Probe(seat)
    made = seat.cwd / "made.txt"
    async with seat.agent(decide=decide) as agent:
        messages = await turn(agent, write(made, "one\n"), "done")
        assert made.read_text() == "one\n"
        assert not tool_results(messages)[0].is_error
        assert result_of(messages).permission_denials == ()
        seat.found("Allow")

        (ask,) = decide.asks
        assert isinstance(ask, ToolAsk)
        assert ask.tool_name == "Write"
        modes = [each.mode for each in ask.suggestions if isinstance(each, SetMode)]
        assert modes == [PermissionMode.ACCEPT_EDITS]
        seat.found("Suggests what would spare the question")
        newer = seat.version >= release(120)
        assert ask.request.display_name == ("Write" if newer else None)
        seat.found("Names the tool for people", "yes" if newer else "no")
        assert ask.request.requires_user_interaction is None

        decide.will(Allow(input={"command": f"{probe.program} changed", "description": "x"}))
        messages = await turn(agent, probe.call("original"), "done")
        assert probe.runs == ["changed"]
        assert tool_results(messages)[0].text == "ran changed"
        said = seat.model.turns[-1].messages
        calls = [block.input for each in said for block in each.blocks if block.name == "Bash"]
        assert [each["command"] for each in calls] == ["./probe.sh original"]
        seat.found("Allow with a changed input")

        decide.will(Allow(input={"description": "no command"}))
        messages = await turn(agent, probe.call("original"), "I see")
        assert tool_results(messages)[0].is_error
        assert result_of(messages).result == "I see"
        assert probe.runs == ["changed"]
        seat.found("Allow with an input that the tool cannot use", "the tool fails")

        outside = seat.home / "outside.txt"
        outside.write_text("far away\n")
        decide.asks.clear()
        messages = await turn(agent, read(outside), "done")
        (ask,) = decide.asks
        assert "far away" in tool_results(messages)[0].text
        if newer:
            assert ask.request.decision_reason_type is DecisionReasonType.WORKING_DIR
            seat.found("Says why it asks", "in words and by kind")
        else:
            assert ask.request.decision_reason_type is None
            seat.found("Says why it asks", "in words")
        assert ask.request.decision_reason


async def test_a_denied_call_does_not_run_and_the_model_goes_on(seat: Seat) -> None:
    def fail(_: object) -> Deny:
        raise ValueError("out of order")

    decide, probe = Decider(Deny("not on a Sunday"), fail), Probe(seat)
    async with seat.agent(decide=decide) as agent:
        messages = await turn(agent, probe.call("one"), "I see")
        (answer,) = tool_results(messages)
        assert answer.is_error
        assert answer.text == "not on a Sunday"
        result = result_of(messages)
        assert not result.failed
        assert result.result == "I see"
        assert [each.tool_use_id for each in result.permission_denials] == [answer.tool_use_id]
        seat.found("Deny with a reason that the model reads")

        messages = await turn(agent, probe.call("two"), "I see")
        (answer,) = tool_results(messages)
        assert answer.is_error
        assert "out of order" in answer.text
        assert not result_of(messages).failed
        seat.found("A permission callback that fails", "denies")
    assert probe.runs == []


async def test_a_denial_that_interrupts_ends_the_turn_but_not_the_session(seat: Seat) -> None:
    decide, probe = Decider(Deny("stop it", interrupt=True)), Probe(seat)
    async with seat.agent(decide=decide) as agent:
        messages = await turn(agent, probe.call("one"), "never said")
        assert not any(each.last_message.has_tool_result for each in seat.model.turns)
        result = result_of(messages)
        assert result.failed
        assert result.subtype is ResultSubtype.ERROR_DURING_EXECUTION
        newer = seat.version >= release(120)
        assert result.is_error is newer
        assert result.terminal_reason is (TerminalReason.ABORTED_TOOLS if newer else None)
        seat.found("Deny and interrupt", "the turn ends")
        seat.found("Marks an interrupted turn as an error", "yes" if newer else "no")
        shown = tool_results(messages)[0].text
        if seat.version >= release(325):
            assert "The user doesn't want to proceed" in shown
            assert "stop it" not in shown
        else:
            assert shown == "stop it"
        seat.found("Keeps the reason of such a denial", "yes" if shown == "stop it" else "no")

        messages = await turn(agent, "still here")
        assert result_of(messages).result == "still here"
    assert probe.runs == []


async def test_questions_of_one_answer_come_at_once_or_one_after_the_other(seat: Seat) -> None:
    person, probe = Person(), Probe(seat)
    files = [seat.home / "a.txt", seat.home / "b.txt"]
    for each in files:
        each.write_text(f"text of {each.name}\n")
    async with seat.agent(decide=person) as agent:
        with anyio.fail_after(SECONDS):
            query = await agent.prompt(play(reply(*map(read, files)), "done"))
            first, second = await person.wait_for(2)
            state = agent.state
            assert state is State.WAITING
            assert [ask.request_id for ask in agent.asks] == [first.request_id, second.request_id]
            # The other way round: an answer finds its question by its id.
            person.answer(second)
            person.answer(first, Deny("not this one"))
            messages = [message async for message in query]
        assert agent.state is State.READY
        unanswered = agent.asks
        assert unanswered == ()
        results = {each.tool_use_id: each for each in tool_results(messages)}
        assert results[first.request.tool_use_id].text == "not this one"
        assert "text of" in results[second.request.tool_use_id].text
        seat.found("Several questions open at once (reads)")

        with anyio.fail_after(SECONDS):
            query = await agent.prompt(play(reply(probe.call("one"), probe.call("two")), "done"))
            third = (await person.wait_for(3))[2]
            assert len(agent.asks) == 1
            person.answer(third)
            fourth = (await person.wait_for(4))[3]
            # The second is asked about when the first has run.
            assert probe.runs == ["one"]
            person.answer(fourth)
            await query.finish()
        assert probe.runs == ["one", "two"]
        seat.found("Several commands in one answer", "asked one after the other")


async def test_subagents_ask_at_the_same_time_and_say_who_they_are(seat: Seat) -> None:
    person, probe = Person(), Probe(seat)

    def task(name: str) -> ToolUse:
        script = play(probe.call(name), f"{name} is done")
        fields = {"description": name, "prompt": script, "subagent_type": "general-purpose"}
        # The newest version runs them in the background unless it is told not to.
        return ToolUse("Task", {**fields, "run_in_background": False})

    async with seat.agent(decide=person) as agent:
        with anyio.fail_after(SECONDS):
            query = await agent.prompt(play(reply(task("left"), task("right")), "both"))
            asks = await person.wait_for(2)
            assert len({ask.request.agent_id for ask in asks} - {None}) == 2
            for ask in reversed(asks):
                person.answer(ask)
            messages = [message async for message in query]
    assert result_of(messages).result == "both"
    assert sorted(probe.runs) == ["left", "right"]
    seat.found("Several questions open at once (subagents)")


async def test_what_is_harmless_or_wrong_is_not_asked_about(seat: Seat) -> None:
    decide = Decider()
    there = seat.cwd / "there.txt"
    there.write_text("old\n")
    async with seat.agent(decide=decide) as agent:
        messages = await turn(agent, bash("ls"), "done")
        assert tool_results(messages)[0].text == "there.txt"
        messages = await turn(agent, read(there), "done")
        assert "old" in tool_results(messages)[0].text
        assert decide.asked() == 0
        seat.found("A command or tool that only reads", "not asked about")

        change = {"file_path": str(there), "old_string": "not in it", "new_string": "new"}
        messages = await turn(agent, ToolUse("Edit", {**change}), "done")
        assert tool_results(messages)[0].is_error
        assert there.read_text() == "old\n"
        assert decide.asked() == 0
        seat.found("A call that cannot work", "fails, not asked about")
