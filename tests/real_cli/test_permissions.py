"""Permissions: a tool call is asked about, and what an answer does.

The scenes follow each other in one session: none of them leaves anything behind that the next one
would notice.
"""

from __future__ import annotations

import anyio
import pytest

from quarterdeck import Agent, Allow, Deny, ToolAsk
from quarterdeck.domain.errors import LinkClosed, UnsupportedError
from quarterdeck.testing import ToolUse, play, reply
from quarterdeck.wire.base import Message
from quarterdeck.wire.commands import EndSession
from quarterdeck.wire.messages import StreamEvent, User
from quarterdeck.wire.permissions import AddRules, Destination, PermissionMode, SetMode
from quarterdeck.wire.reports import ResultSubtype, TerminalReason
from quarterdeck.wire.requests import DecisionReasonType
from quarterdeck.wire.states import State
from quarterdeck.wire.stream import MessageStop
from quarterdeck.wire.versions import release
from support.bounds import SECONDS
from support.scenes import (
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
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_an_answer_decides_what_becomes_of_a_call(seat: Seat) -> None:
    decide, probe = Decider(), Probe(seat)
    async with seat.agent(decide=decide) as agent:
        await what_is_harmless_or_wrong_is_not_asked_about(seat, agent, decide)
        await an_allowed_call_runs_as_it_is_or_changed(seat, agent, decide, probe)
        await a_denied_call_does_not_run_and_the_model_goes_on(seat, agent, decide, probe)
        await a_denial_that_interrupts_ends_the_turn(seat, agent, decide, probe)
        assert probe.runs == ["changed"]
        await suggestions_say_what_would_spare_the_question(seat, agent, decide)
        person, probe = Person(), Probe(seat, "more")
        decide.ask_instead(person)
        await reads_are_asked_about_at_once(seat, agent, person)
        await commands_are_asked_about_one_after_the_other(seat, agent, person, probe)
        await subagents_ask_at_the_same_time(seat, agent, person, probe)
        seat.theme = "Endings"
        await a_cli_that_is_asked_to_go_goes_by_itself(seat, agent)


async def an_allowed_call_runs_as_it_is_or_changed(
    seat: Seat, agent: Agent, decide: Decider, probe: Probe
) -> None:
    made = seat.cwd / "made.txt"
    messages = await turn(agent, write(made, "one\n"), "done")
    assert made.read_text() == "one\n"
    assert not tool_results(messages)[0].is_error
    assert result_of(messages).permission_denials == ()
    seat.found("Allow")
    # The newest says with the result who decided.
    decided = [bytes(m.tool_result_meta) for m in messages if isinstance(m, User)]
    assert any(b"user_temporary" in each for each in decided) is (seat.version >= release(325))

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
    assert calls[-1]["command"] == "./probe.sh original"
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


def fail(_: object) -> Deny:
    raise ValueError("out of order")


async def a_denied_call_does_not_run_and_the_model_goes_on(
    seat: Seat, agent: Agent, decide: Decider, probe: Probe
) -> None:
    decide.will(Deny("not on a Sunday"), fail)
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
    result = result_of(messages)
    assert not result.failed
    assert [each.tool_use_id for each in result.permission_denials] == [answer.tool_use_id]
    seat.found("A permission callback that fails", "denies")


async def a_denial_that_interrupts_ends_the_turn(
    seat: Seat, agent: Agent, decide: Decider, probe: Probe
) -> None:
    person = Person()
    decide.ask_instead(person)
    asked = len(seat.model.turns)
    script = play(reply(probe.call("one"), probe.call("two")), "never said")
    with anyio.fail_after(SECONDS):
        async with agent.messages() as news:
            query = await agent.prompt(script)
            # 2.1.325 asks as soon as a call is whole, which may be before the answer has ended.
            await anext(aiter(each async for each in news if is_end_of_answer(each)))
        person.answer((await person.wait_for(1))[0], Deny("stop it", interrupt=True))
        messages = [message async for message in query]
    decide.ask_instead(None)
    assert len(seat.model.turns) == asked + 1
    result = result_of(messages)
    assert result.failed
    assert result.subtype is ResultSubtype.ERROR_DURING_EXECUTION
    newer = seat.version >= release(120)
    assert result.is_error is newer
    assert bool(result.errors) is newer
    assert result.terminal_reason is (TerminalReason.ABORTED_TOOLS if newer else None)
    told = [message.text for message in messages if isinstance(message, User)]
    assert "[Request interrupted by user for tool use]" in told
    seat.found("Deny and interrupt", "the turn ends")
    seat.found("Marks an interrupted turn as an error", "yes" if newer else "no")
    shown = tool_results(messages)[0].text
    if seat.version >= release(325):
        assert "The user doesn't want to proceed" in shown
        assert "stop it" not in shown
    else:
        assert shown == "stop it"
    seat.found("Keeps the reason of such a denial", "yes" if shown == "stop it" else "no")
    # The second call of the same answer is neither asked about nor withdrawn.
    assert len(person.asks) == 1
    seat.found("The other calls of that answer", "are not asked about")

    messages = await turn(agent, "still here")
    assert result_of(messages).result == "still here"


def is_end_of_answer(message: Message) -> bool:
    return isinstance(message, StreamEvent) and isinstance(message.event, MessageStop)


async def what_is_harmless_or_wrong_is_not_asked_about(
    seat: Seat, agent: Agent, decide: Decider
) -> None:
    there = seat.cwd / "there.txt"
    there.write_text("old\n")
    messages = await turn(agent, bash("ls there.txt"), "done")
    assert tool_results(messages)[0].text == "there.txt"
    messages = await turn(agent, read(there), "done")
    assert "old" in tool_results(messages)[0].text
    blocked = seat.version >= release(325)
    messages = await turn(agent, bash("sleep 30" if blocked else "sleep 0.01"), "done")
    assert tool_results(messages)[0].is_error is blocked
    assert decide.asked() == 0
    seat.found("A command or tool that only reads", "not asked about")
    seat.found("A command that only waits", "refused" if blocked else "not asked about")

    change = {"file_path": str(there), "old_string": "not in it", "new_string": "new"}
    messages = await turn(agent, ToolUse("Edit", {**change}), "done")
    assert tool_results(messages)[0].is_error
    assert there.read_text() == "old\n"
    assert decide.asked() == 0
    seat.found("A call that cannot work", "fails, not asked about")


async def suggestions_say_what_would_spare_the_question(
    seat: Seat, agent: Agent, decide: Decider
) -> None:
    async def suggested(call: ToolUse) -> ToolAsk:
        decide.asks.clear()
        decide.will(Deny("not now"))
        await turn(agent, call, "I see")
        (ask,) = decide.asks
        assert isinstance(ask, ToolAsk)
        return ask

    def rules(ask: ToolAsk) -> list[tuple[str, str | None, Destination]]:
        return [
            (rule.tool_name, rule.rule_content, each.destination)
            for each in ask.suggestions
            if isinstance(each, AddRules)
            for rule in each.rules
        ]

    ask = await suggested(read(seat.home / "outside.txt"))
    assert rules(ask) == [("Read", f"/{seat.home}/**", Destination.SESSION)]
    ask = await suggested(bash("./nosuch.sh now"))
    ((tool, rule, destination),) = rules(ask)
    assert (tool, destination) == ("Bash", Destination.LOCAL_SETTINGS)
    assert rule is not None
    assert rule.startswith("./nosuch.sh")
    page = ToolUse("WebFetch", {"url": "http://example.invalid/a", "prompt": "what is it"})
    ((_, rule, _),) = rules(await suggested(page))
    assert rule == "domain:example.invalid"
    # A file that a command writes is named. To allow edits is one way, the newest knows another.
    ask = await suggested(bash("touch new.txt"))
    assert ask.request.blocked_path == str(seat.cwd / "new.txt")
    assert [each.mode for each in ask.suggestions if isinstance(each, SetMode)] == [
        PermissionMode.ACCEPT_EDITS
    ]
    assert bool(rules(ask)) is (seat.version >= release(325))


async def reads_are_asked_about_at_once(seat: Seat, agent: Agent, person: Person) -> None:
    files = [seat.home / "a.txt", seat.home / "b.txt"]
    for each in files:
        each.write_text(f"text of {each.name}\n")
    with anyio.fail_after(SECONDS):
        query = await agent.prompt(play(reply(*map(read, files)), "done"))
        first, second = await person.wait_for(2)
        state = agent.state
        assert state is State.WAITING
        # However long it takes: nothing is asked twice, and nothing given up.
        await agent.mcp_status()
        with anyio.move_on_after(0.5):
            await person.wait_for(3)
        assert person.withdrawn == []
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


async def commands_are_asked_about_one_after_the_other(
    seat: Seat, agent: Agent, person: Person, probe: Probe
) -> None:
    before = len(person.asks)
    with anyio.fail_after(SECONDS):
        query = await agent.prompt(play(reply(probe.call("one"), probe.call("two")), "done"))
        first = (await person.wait_for(before + 1))[-1]
        assert len(agent.asks) == 1
        person.answer(first)
        second = (await person.wait_for(before + 2))[-1]
        # The second is asked about when the first has run.
        assert probe.runs == ["one"]
        person.answer(second)
        await query.finish()
    assert probe.runs == ["one", "two"]
    seat.found("Several commands in one answer", "asked one after the other")


async def subagents_ask_at_the_same_time(
    seat: Seat, agent: Agent, person: Person, probe: Probe
) -> None:
    before = len(person.asks)

    def task(name: str) -> ToolUse:
        script = play(probe.call(name), f"{name} is done")
        fields = {"description": name, "prompt": script, "subagent_type": "general-purpose"}
        # The newest version runs them in the background unless it is told not to.
        return ToolUse("Task", {**fields, "run_in_background": False})

    with anyio.fail_after(SECONDS):
        query = await agent.prompt(play(reply(task("left"), task("right")), "both"))
        asks = (await person.wait_for(before + 2))[before:]
        assert len({ask.request.agent_id for ask in asks} - {None}) == 2
        for ask in reversed(asks):
            person.answer(ask)
        messages = [message async for message in query]
    assert result_of(messages).result == "both"
    assert sorted(probe.runs[-2:]) == ["left", "right"]
    seat.found("Several questions open at once (subagents)")


async def a_cli_that_is_asked_to_go_goes_by_itself(seat: Seat, agent: Agent) -> None:
    with anyio.fail_after(SECONDS):
        if seat.version < release(92):
            with pytest.raises(UnsupportedError, match="end_session"):
                await agent.request(EndSession())
            seat.found("Ask the CLI to end", "no")
            return
        await agent.request(EndSession())
        await until(lambda: agent.state is State.CLOSED)
        with pytest.raises(LinkClosed) as caught:
            await agent.query("anybody there?").finish()
    assert caught.value.exit_code == 0
    seat.found("Ask the CLI to end")
