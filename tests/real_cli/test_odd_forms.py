"""Odd forms: what a CLI makes of lines that Quarterdeck never sends, which is why it does not.

The agent's lines are changed on their way to the CLI.
"""

from __future__ import annotations

import json
from functools import partial
from uuid import UUID

import anyio
import msgspec
import pytest

from quarterdeck import Agent, Deny, Prompt
from quarterdeck.domain.errors import LinkClosed, RequestTimeout
from quarterdeck.testing import play
from quarterdeck.wire.commands import McpStatus
from quarterdeck.wire.control import ControlResponse
from quarterdeck.wire.messages import Result
from quarterdeck.wire.permissions import PermissionMode
from quarterdeck.wire.states import State
from quarterdeck.wire.versions import initialize_repeatable, needs_updated_input, release
from support.bounds import SECONDS
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
from support.scenes import (
    INPUT_ENDS_WHILE_ASKING,
    Decider,
    Person,
    Probe,
    mode_shown,
    result_of,
    tool_results,
    turn,
)
from support.seats import Seat
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

FAILED = "Tool permission request failed"
OBEYED = ("ignored", "obeyed")


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


@pytest.mark.between("2.1.120 stdio")  # its last part, which ends the input
async def test_lines_in_other_forms_are_taken_or_refused(seat: Seat) -> None:
    meddler, decide = Meddler(), Decider()
    meddler.change("initialize", asking_instead("mcp_status"))
    async with seat.agent(decide=decide, meddler=meddler) as agent:
        await a_prompt_may_come_before_the_greeting(seat, agent, meddler, decide)
        await prompts_may_be_wrong_where_it_does_no_harm(seat, agent, meddler)
        odd = Odd(seat, agent, meddler, Probe(seat, "odd"))
        await answers_in_other_forms_do_not_pass_for_an_allow(seat, odd, decide)
        await updates_that_the_library_keeps_back(seat, odd)
        await modes_that_the_library_keeps_back(seat, agent, meddler)
        seat.theme = "Endings"
        await the_end_of_its_input_denies_what_is_open(seat, agent, meddler, decide)


async def a_prompt_may_come_before_the_greeting(
    seat: Seat, agent: Agent, meddler: Meddler, decide: Decider
) -> None:
    person, probe = Person(), Probe(seat)
    decide.ask_instead(person)
    messages = await turn(agent, "hello")
    assert result_of(messages).result == "hello"
    seat.found("A prompt without initialize")

    await meddler.say({"type": "keep_alive"})
    with anyio.fail_after(SECONDS):
        query = await agent.prompt(play(probe.call("asked"), "done"))
        (ask,) = await person.wait_for(1)
    late = request("late", "initialize", protocolVersion="1.0", features=["none"])
    answer = (await response_to(agent, meddler, late)).response
    assert [each.request_id for each in answer.pending_requests()] == [ask.request_id]
    taken = initialize_repeatable(seat.version)
    assert answer.ok is taken
    assert taken or answer.error == "Already initialized"
    words = "is taken" if taken else "is refused"
    seat.found("Initialize after a prompt", f"{words}, with the open questions")
    with anyio.fail_after(SECONDS):
        person.answer(ask)
        await query.finish()
    assert probe.runs == ["asked"]
    seat.found("A keep-alive from us", "accepted silently")
    decide.ask_instead(None)


async def prompts_may_be_wrong_where_it_does_no_harm(
    seat: Seat, agent: Agent, meddler: Meddler
) -> None:
    for wrong in ("of-another", ""):
        meddler.change("user", partial(for_session, wrong))
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
    assert echoes(meddler).count("no-uuid-at-all") == 2
    seat.found("A prompt that comes twice", "runs once, and is echoed twice")

    known = len(echoes(meddler))
    with anyio.fail_after(SECONDS):
        async with agent.messages() as heard:
            body = {"role": "user", "content": "nameless"}
            await meddler.say({"type": "user", "message": body})
            async for message in heard:
                if isinstance(message, Result):
                    assert message.result == "echo: nameless"
                    break
    (given,) = echoes(meddler)[known:]
    assert str(UUID(given)) == given
    seat.found("A prompt without a uuid", "gets one")

    unasked = msgspec.structs.replace(Prompt.of("by a program"), is_synthetic=True)
    with anyio.fail_after(SECONDS):
        await agent.query(unasked).finish()
    marked = "[MESSAGE FROM NON-USER SOURCE" in seat.model.turns[-1].body.decode()
    assert marked is (seat.version >= release(325))
    seat.found(
        "A prompt without a human author",
        "the model is informed" if marked else "is like any other",
    )


def for_session(session: str, line: Line) -> list[Line]:
    """A change: a prompt that names another session."""
    return [{**line, "session_id": session}]


def echoes(meddler: Meddler) -> list[str]:
    """The uuids of all echoes so far."""
    whole, _, _ = bytes(meddler.heard).rpartition(b"\n")
    lines = [json.loads(line) for line in whole.splitlines()]
    return [line["uuid"] for line in lines if line["type"] == "user" and line.get("isReplay")]


class Odd:
    """A tool call whose answer is changed on its way."""

    def __init__(self, seat: Seat, agent: Agent, meddler: Meddler, probe: Probe) -> None:
        self.agent = agent
        self.probe = probe
        self._meddler = meddler

    async def answered(self, name: str, change: Change) -> str:
        """The tool's result for an answer that was changed so; the turn goes on."""
        self._meddler.change("answer", change)
        messages = await turn(self.agent, self.probe.call(name), "I see")
        assert result_of(messages).result == "I see"
        return tool_results(messages)[0].text


async def answers_in_other_forms_do_not_pass_for_an_allow(
    seat: Seat, odd: Odd, decide: Decider
) -> None:
    text = await odd.answered("bare", answering({"behavior": "allow"}))
    refused = needs_updated_input(seat.version)
    assert text.startswith(f"{FAILED}: ZodError") if refused else text == "ran bare"
    seat.found("An allow without the input", "refused" if refused else "runs")

    text = await odd.answered("empty", answering({"behavior": "allow", "updatedInput": {}}))
    emptied = seat.version < release(120)
    assert ("undefined" in text) if emptied else (text == "ran empty")
    seat.found("An allow with an empty input", "runs with nothing" if emptied else "runs")

    assert await odd.answered("id", adding(toolUseID="toolu_of_another")) == "ran id"
    assert await odd.answered("more", adding(unknown={"a": 1})) == "ran more"
    seat.found("Unknown members in an allow", "ignored")

    assert await odd.answered("twice", twice) == "ran twice"
    assert odd.probe.runs.count("twice") == 1
    seat.found("A second answer to one question", "ignored")

    decide.will(Deny("no"))
    text = await odd.answered("wordless", answering({"behavior": "deny"}))
    newest = seat.version >= release(325)
    assert ("invalid permission result" if newest else f"{FAILED}: ZodError") in text
    seat.found("A denial without a message", "denies, with words of its own")

    assert await odd.answered("error", refusing("broken")) == f"{FAILED}: Error: broken"
    seat.found("An error in place of an answer", "denies")
    ran = {"bare": not refused, "empty": not emptied, "id": 1, "more": 1, "twice": 1}
    assert sorted(odd.probe.runs) == sorted(name for name, did in ran.items() if did)


async def updates_that_the_library_keeps_back(seat: Seat, odd: Odd) -> None:
    strict = seat.version < release(120)
    text = await odd.answered("update", adding(updatedPermissions=[{"type": "nonsense"}]))
    assert text.startswith(f"{FAILED}: ZodError") if strict else text == "ran update"
    seat.found("An allow with an update of an unknown kind", "refused" if strict else "runs")

    bypass = {"type": "setMode", "mode": "bypassPermissions", "destination": "session"}
    assert await odd.answered("mode", adding(updatedPermissions=[bypass])) == "ran mode"
    obeyed = await mode_shown(odd.agent) is PermissionMode.BYPASS_PERMISSIONS
    assert obeyed is strict
    seat.found("An allow that sets bypassPermissions, without permission", OBEYED[obeyed])
    with anyio.fail_after(SECONDS):
        await odd.agent.set_permission_mode("default")


async def modes_that_the_library_keeps_back(seat: Seat, agent: Agent, meddler: Meddler) -> None:
    async def asked(mode: str) -> tuple[str | None, PermissionMode]:
        line = request(f"to {mode}", "set_permission_mode", mode=mode)
        answer = (await response_to(agent, meddler, line)).response
        shown = await mode_shown(agent)
        with anyio.fail_after(SECONDS):
            await agent.set_permission_mode("default")
        return answer.error, shown

    error, shown = await asked("nonsense")
    checked = seat.version >= release(325)
    assert (error is not None and "must be one of" in error) is checked
    assert shown.value == ("default" if checked else "nonsense")
    seat.found("An invalid mode", "a clear error" if checked else "is accepted and shown")

    error, shown = await asked("bypassPermissions")
    guarded = seat.version >= release(120)
    assert (error is not None and "was not launched with" in error) is guarded
    assert (shown is PermissionMode.BYPASS_PERMISSIONS) is not guarded
    seat.found(
        "Sets bypassPermissions, without permission", "a clear error" if guarded else OBEYED[1]
    )

    nothing = await response_to(agent, meddler, request("to none", "set_permission_mode"))
    assert nothing.response.ok is not checked
    with anyio.fail_after(SECONDS):
        await agent.set_permission_mode("default")
    count = bytes(meddler.heard).count(b'"request_id":"to none"')
    assert count == (1 if seat.version >= release(62) else 2)
    word = {True: "a clear error", False: "taken" if count == 1 else "taken, and answered twice"}
    seat.found("A change of the mode without one", word[checked])


async def the_end_of_its_input_denies_what_is_open(
    seat: Seat, agent: Agent, meddler: Meddler, decide: Decider
) -> None:
    if seat.transport == "ws":
        return  # not applicable: see `test_endings`
    person, probe = Person(), Probe(seat, "open")
    decide.ask_instead(person)
    with anyio.fail_after(SECONDS):
        query = await agent.prompt(play(probe.call("one"), "goes on"))
        await person.wait_for(1)
        await meddler.end_input()
        messages = [message async for message in query]
        await until(lambda: agent.state is State.CLOSED)
        with pytest.raises(LinkClosed) as caught:
            await agent.query("anybody there?").finish()
    assert "stream closed" in tool_results(messages)[0].text.lower()
    assert result_of(messages).result == "goes on"
    assert probe.runs == []
    assert caught.value.exit_code == 0
    seat.found(INPUT_ENDS_WHILE_ASKING, "denied, and the turn is finished")


@pytest.mark.transports_differ
async def test_a_cancelled_request_ends_the_oldest_version(seat: Seat) -> None:
    meddler = Meddler()
    ends = seat.version < release(62)
    meddler.change("initialize", asking_instead("mcp_status"))
    async with seat.agent(meddler=meddler) as agent:
        await meddler.say({"type": "control_cancel_request", "request_id": "of nobody"})
        with anyio.fail_after(SECONDS):
            if ends:
                await until(lambda: agent.state is State.CLOSED)
                with pytest.raises(LinkClosed) as caught:
                    await agent.query("anybody there?").finish()
                assert caught.value.exit_code == 1
                assert "Expected message type" in str(caught.value)
            else:
                await a_greeting_of_the_wrong_shape_deafens_old_versions(seat, agent, meddler)
    seat.found("A request of ours that is cancelled", "ends the CLI" if ends else "no effect")
    if ends:
        meddler.change("initialize", asking_instead("mcp_status"))
        async with seat.agent(meddler=meddler) as agent:
            await a_greeting_of_the_wrong_shape_deafens_old_versions(seat, agent, meddler)


async def a_greeting_of_the_wrong_shape_deafens_old_versions(
    seat: Seat, agent: Agent, meddler: Meddler
) -> None:
    wrong = request("wrong", "initialize", hooks={"PreToolUse": "not a list"})
    if seat.version >= release(325):
        refused = (await response_to(agent, meddler, wrong)).response
        assert "hooks must map" in (refused.error or "")
        assert result_of(await turn(agent, "still here")).result == "still here"
        seat.found("Hooks of the wrong shape", "a clear error")
        return
    await agent.mcp_status()
    await meddler.say(wrong)
    # It answered a moment ago, and never will again. A CLI that nothing keeps busy any more may
    # end, which over stdio is a matter of time.
    gone = (RequestTimeout, LinkClosed) if seat.transport == "stdio" else RequestTimeout
    with pytest.raises(gone):
        await agent.request(McpStatus(), timeout=1)
    answer = "deafen or end the CLI" if seat.transport == "stdio" else "deafen the CLI"
    seat.found("Hooks of the wrong shape", answer)
