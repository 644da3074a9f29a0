"""Endings: whatever an agent was doing, nothing that it started is left.

Most of them are at the end of other scenes, in the other modules.
"""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from quarterdeck import Agent
from quarterdeck.domain.errors import LinkClosed
from quarterdeck.testing import ToolUse, play
from quarterdeck.wire.states import State
from quarterdeck.wire.versions import release
from support.bounds import SECONDS
from support.meddling import Meddler
from support.scenes import (
    INPUT_ENDS_WHILE_ASKING,
    INPUT_ENDS_WHILE_SPEAKING,
    Decider,
    Probe,
    bash,
    result_of,
    running,
    tool_results,
)
from support.seats import Seat
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

CANNOT = "not applicable"
BUSY = "The end of its input while a command runs"
LATE = "A question after the end of its input"
BEHIND = "The end of its input while a command runs in the background"


@pytest.mark.transports_differ
async def test_the_end_of_its_input_ends_the_cli_after_the_turn(seat: Seat) -> None:
    if seat.transport == "ws":
        for name in (BUSY, LATE, BEHIND, INPUT_ENDS_WHILE_ASKING, INPUT_ENDS_WHILE_SPEAKING):
            seat.found(name, CANNOT)
        return
    meddler, decide, probe = Meddler(), Decider(), Probe(seat)
    front, behind = seat.cwd / "front", seat.cwd / "behind"
    async with seat.agent(meddler=meddler, decide=decide) as agent:
        with anyio.fail_after(SECONDS):
            in_background = {**wait_for(behind).input, "run_in_background": True}
            await agent.query(play(ToolUse("Bash", in_background), "it runs")).finish()
            decide.asks.clear()
            query = await agent.prompt(play(wait_for(front), probe.call("late"), "and on"))
            await until(lambda: bool(running(str(front))))
            await meddler.end_input()
            front.touch()
            messages = [message async for message in query]
            waited, late = tool_results(messages)
            assert not waited.is_error
            assert result_of(messages).result == "and on"
            seat.found(BUSY, "the turn is finished first")
            assert "stream closed" in late.text.lower()
            assert [ask for ask in decide.asks if b"probe.sh" in bytes(ask.input)] == []
            assert probe.runs == []
            seat.found(LATE, "denied without asking")
            if seat.version < release(62):
                # It may be left running: then it is for the library to end it.
                closed = await refusal(agent)
                seat.found(BEHIND, "is not waited for")
            else:
                with anyio.move_on_after(0.5):
                    await until(lambda: agent.state is State.CLOSED)
                assert agent.state is not State.CLOSED
                behind.touch()
                closed = await refusal(agent)
                seat.found(BEHIND, "is waited for")
    assert closed.exit_code == 0
    assert running(str(behind)) == []


def wait_for(file: Path) -> ToolUse:
    """A command that runs until there is such a file."""
    return bash(f"while [ ! -e {file} ]; do sleep 0.05; done")


async def refusal(agent: Agent) -> LinkClosed:
    """What an agent says when its CLI has gone."""
    await until(lambda: agent.state is State.CLOSED)
    with pytest.raises(LinkClosed) as caught:
        await agent.query("anybody there?").finish()
    return caught.value
