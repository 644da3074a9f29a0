"""Switches: another model, mode or amount of thinking while the session runs."""

from __future__ import annotations

import anyio
import pytest

from quarterdeck import Agent
from quarterdeck.domain.errors import UnsupportedError, UsageError
from quarterdeck.testing import play
from quarterdeck.wire.permissions import PermissionMode
from quarterdeck.wire.system import Init, Status
from quarterdeck.wire.versions import release
from support.bounds import SECONDS
from support.scenes import Decider, Person, Probe, mode_shown, turn, write
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_the_model_thinking_and_mode_change_with_the_next_call(seat: Seat) -> None:
    decide = Decider()
    async with seat.agent(decide=decide, allow_dangerously_skip_permissions=True) as agent:
        await the_model_changes(seat, agent)
        await thinking_changes(seat, agent)
        await the_mode_changes_what_is_asked(seat, agent, decide)
        await with_leave_nothing_is_asked_but_an_open_question_stays_open(seat, agent, decide)


async def the_model_changes(seat: Seat, agent: Agent) -> None:
    async def model_used() -> str:
        await turn(agent, "look")
        return seat.model.turns[-1].model

    usual = await model_used()
    with anyio.fail_after(SECONDS):
        await agent.set_model("claude-haiku-4-5")
    assert await model_used() == "claude-haiku-4-5"
    seat.found("Change the model: by its name")
    with anyio.fail_after(SECONDS):
        await agent.set_model("opus")
    assert (await model_used()).startswith("claude-opus-")
    seat.found("Change the model: by an alias")
    with anyio.fail_after(SECONDS):
        await agent.set_model("no-such-model")
    assert await model_used() == "no-such-model"
    seat.found("Change the model: an unknown name", "used as it is")
    for default in ("default", None):
        with anyio.fail_after(SECONDS):
            await agent.set_model("no-such-model")
            await agent.set_model(default)
        assert await model_used() == usual
    seat.found("Change the model: back to the default")


async def thinking_changes(seat: Seat, agent: Agent) -> None:
    async def thinking(tokens: int | None) -> tuple[str, int | None]:
        with anyio.fail_after(SECONDS):
            await agent.set_thinking(tokens)
        await turn(agent, "look")
        config = seat.model.turns[-1].thinking
        return (config.type, config.budget_tokens) if config else ("off", None)

    seen = [await thinking(tokens) for tokens in (0, 2000, None)]
    if seat.version >= release(325):
        assert seen == [("adaptive", None)] * 3
        seat.found("Change how much the model thinks", "no effect")
    elif seat.version >= release(62):
        assert seen == [("off", None), ("adaptive", None), ("adaptive", None)]
        seat.found("Change how much the model thinks", "on or off")
    else:
        assert seen == [("off", None), ("enabled", 2000), ("off", None)]
        seat.found("Change how much the model thinks", "by tokens")


async def the_mode_changes_what_is_asked(seat: Seat, agent: Agent, decide: Decider) -> None:
    probe = Probe(seat)
    heard = agent.messages()
    assert await mode_shown(agent) is PermissionMode.DEFAULT
    for mode in (PermissionMode.PLAN, PermissionMode.DONT_ASK, PermissionMode.ACCEPT_EDITS):
        with anyio.fail_after(SECONDS):
            await agent.set_permission_mode(mode)
        assert await mode_shown(agent) is mode
    await turn(agent, write(seat.cwd / "made.txt"), probe.call("1"), "done")
    assert [ask.tool_name for ask in decide.asks] == ["Bash"]
    assert (seat.cwd / "made.txt").exists()
    seat.found("Change the mode")

    with pytest.raises(UsageError):
        await agent.set_permission_mode("nonsense")
    seat.found("Change the mode to an invalid word", "refused by Quarterdeck")
    if seat.version >= release(120):
        with anyio.fail_after(SECONDS):
            await agent.set_permission_mode("auto")
        assert await mode_shown(agent) is PermissionMode.AUTO
        seat.found("Change the mode to auto")
    else:
        with pytest.raises(UnsupportedError):
            await agent.set_permission_mode("auto")
        assert await mode_shown(agent) is PermissionMode.ACCEPT_EDITS
        seat.found("Change the mode to auto", "no")
    told: list[PermissionMode | None] = []
    async with heard:
        async for message in heard:
            match message:
                case Status(permission_mode=announced):
                    told.append(announced)
                case Init(permission_mode=PermissionMode.ACCEPT_EDITS):
                    break  # the change to dontAsk lies behind
    if seat.version >= release(120):
        assert PermissionMode.DONT_ASK in told
        seat.found("Announces a change of the mode")
    else:
        assert PermissionMode.DONT_ASK not in told
        seat.found("Announces a change of the mode", "with the next turn")


async def with_leave_nothing_is_asked_but_an_open_question_stays_open(
    seat: Seat, agent: Agent, decide: Decider
) -> None:
    person, probe = Person(), Probe(seat, "more")
    decide.ask_instead(person)
    with anyio.fail_after(SECONDS):
        await agent.set_permission_mode("default")
        query = await agent.prompt(play(probe.call("1"), probe.call("2"), "done"))
        (ask,) = await person.wait_for(1)
        await agent.set_permission_mode("bypassPermissions")
        assert [each.request_id for each in agent.asks] == [ask.request_id]
        assert probe.runs == []
        person.answer(ask)
        await query.finish()
    assert len(person.asks) == 1
    assert probe.runs == ["1", "2"]
    assert await mode_shown(agent) is PermissionMode.BYPASS_PERMISSIONS
    seat.found("Change the mode to bypassPermissions, with permission")
    seat.found("A question that is open when the mode changes", "stays open")
