"""Faults that were found with CLIs outside of the matrix, each on versions where it was found.

tests/README.md says where those are that are not here.
"""

from __future__ import annotations

import anyio
import msgspec
import pytest

from quarterdeck import Agent, Hook, TurnFailed, UnsupportedError
from quarterdeck.agent.hooks import ask_about_call, block
from quarterdeck.testing import ApiError, Gate, ToolUse, play, reply
from quarterdeck.wire.hook_outputs import PostToolUseOutput, SyncOutput
from quarterdeck.wire.hooks import (
    HookEvent,
    HookInput,
    PostToolUseInput,
    PreToolUseInput,
    StopInput,
    UnknownHook,
)
from quarterdeck.wire.rawjson import dump
from quarterdeck.wire.states import State
from quarterdeck.wire.versions import release
from support.bounds import SECONDS
from support.clis import conversation
from support.processes import Processes
from support.scenes import Decider
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

SEATS = ("2.1.52 stdio", "2.1.92 stdio", "2.1.120 stdio", "2.1.200 stdio", "2.1.325 stdio")


class Weather(msgspec.Struct):
    """What a model is asked for, and forgets."""

    city: str


def asks_about_looks(call: HookInput | UnknownHook) -> SyncOutput | None:
    assert isinstance(call, PreToolUseInput)
    return ask_about_call("look") if b"echo asked" in bytes(call.tool_input) else None


def hides_secrets(call: HookInput | UnknownHook) -> SyncOutput | None:
    assert isinstance(call, PostToolUseInput)
    if b"echo secret" in bytes(call.tool_input):
        other = {"stdout": "hidden", "stderr": "", "interrupted": False, "isImage": False}
        return SyncOutput(specific=PostToolUseOutput(updated_tool_output=dump(other)))
    return None


class Stops:
    """A Stop hook that makes the model go on once, when it is told to."""

    def __init__(self) -> None:
        self.go_on = False

    def __call__(self, call: HookInput | UnknownHook) -> SyncOutput | None:
        assert isinstance(call, StopInput)
        go_on, self.go_on = self.go_on, False
        return block("go on") if go_on else None


def look(command: str) -> ToolUse:
    return ToolUse("Bash", {"command": command})


@pytest.mark.between(*SEATS, only=True)
async def test_r9_r10_r11_r14_hooks_and_ends_of_turns(seat: Seat) -> None:
    decide, stops = Decider(), Stops()
    hooks = [
        Hook(event=HookEvent.PRE_TOOL_USE, matcher="Bash", function=asks_about_looks),
        Hook(event=HookEvent.POST_TOOL_USE, matcher="Bash", function=hides_secrets),
        Hook(event=HookEvent.STOP, function=stops),
    ]
    async with seat.agent(decide=decide, hooks=hooks) as agent:
        with anyio.fail_after(SECONDS):
            await r10_another_output_of_a_tool_is_shown_from_2_1_200_on(seat, agent)
            await r11_a_call_that_would_pass_is_asked_about_from_2_1_92_on(seat, agent, decide)
            await r14_an_api_error_is_called_one(agent)
            await r9_an_interrupt_after_a_stop_hook_is_a_failed_turn(seat, agent, stops)


async def r10_another_output_of_a_tool_is_shown_from_2_1_200_on(seat: Seat, agent: Agent) -> None:
    await agent.query(play(look("echo secret"), "done")).finish()
    shown = "secret" not in str(seat.model.turns[-1].messages[-1])
    assert shown is (seat.version >= release(200))


async def r11_a_call_that_would_pass_is_asked_about_from_2_1_92_on(
    seat: Seat, agent: Agent, decide: Decider
) -> None:
    await agent.query(play(look("echo asked"), "done")).finish()
    assert bool(decide.asks) is (seat.version >= release(92))


async def r14_an_api_error_is_called_one(agent: Agent) -> None:
    turn = await agent.query(play(ApiError(400, "no", times=9))).finish()
    assert turn.failed
    assert turn.result is not None
    assert turn.result.outcome == "api_error"


async def r9_an_interrupt_after_a_stop_hook_is_a_failed_turn(
    seat: Seat, agent: Agent, stops: Stops
) -> None:
    stops.go_on = True
    seat.model.enqueue("done", reply("more ", Gate(), "and more"))
    query = await agent.prompt("go")
    await seat.model.wait_at_gate()
    await agent.interrupt()
    turn = await query.finish()
    seat.model.release()
    assert turn.failed
    assert turn.result is not None
    assert turn.result.interrupted
    with pytest.raises(TurnFailed):
        query.check(turn)
    assert agent.state is State.READY


@pytest.mark.between("2.1.52 stdio", "2.1.92 stdio", "2.1.120 stdio", "2.1.200 stdio", only=True)
async def test_r12_structured_output_that_is_forgotten_ends_at_the_budget(seat: Seat) -> None:
    """Up to 2.1.92 a limit of turns does not end it."""
    async with seat.agent(output_type=Weather, max_budget_usd=0.002) as agent:
        with anyio.fail_after(SECONDS), pytest.raises(TurnFailed):
            await agent.query("only words").output(Weather)
    assert len(seat.model.turns) < 50


@pytest.mark.between("2.1.52 stdio", "2.1.92 stdio", "2.1.200 stdio", only=True)
async def test_r8_continue_is_refused_where_it_begins_a_new_conversation(
    seat: Seat, processes: Processes
) -> None:
    async def continues() -> bool:
        """What the CLI itself does, if it was started by a program."""
        command, asked = (*seat.cli.command, "--continue"), len(seat.model.turns)
        entry = {"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}
        async with conversation(command, seat.home, seat.model.url, processes, **entry) as cli:
            await cli.ask("and now?")
        (request,) = seat.model.turns[asked:]
        return "remember this" in str(request.messages)

    folder = seat.home / "work"
    folder.mkdir()
    async with seat.agent(cwd=folder) as agent:
        with anyio.fail_after(SECONDS):
            await agent.query("remember this").finish()
    if await continues():
        async with seat.agent(cwd=folder, continue_=True) as agent:
            with anyio.fail_after(SECONDS):
                await agent.query("again").finish()
        assert "remember this" in str(seat.model.turns[-1].messages)
        assert seat.cli.version != "2.1.92"
    else:
        with pytest.raises(UnsupportedError, match="continue_"):
            async with seat.agent(cwd=folder, continue_=True):
                pass
        assert seat.cli.version == "2.1.92"
