"""Endings: whatever an agent was doing, nothing that it started is left."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import anyio
import pytest

from quarterdeck import Agent, Allow
from quarterdeck.agent.asks import AnyAsk
from quarterdeck.domain.errors import LinkClosed, UnsupportedError
from quarterdeck.testing import Gate, ToolUse, play, reply
from quarterdeck.wire.commands import EndSession
from quarterdeck.wire.states import State
from quarterdeck.wire.versions import release
from support.meddling import Meddler
from support.scenes import SECONDS, result_of, running
from support.seats import Seat
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def leave_by_an_error(seat: Seat, script: str, commands: list[str]) -> None:
    """Leave an agent's block with an error as soon as all these commands run."""
    async with seat.agent(decide=lambda _: Allow()) as agent:
        await agent.prompt(script)
        with anyio.fail_after(SECONDS):
            await until(lambda: all(running(command) for command in commands))
        raise ZeroDivisionError


async def test_leaving_in_the_midst_of_a_turn_leaves_no_process_behind(seat: Seat) -> None:
    front, behind = (f"tail -f {seat.cwd / name}" for name in ("front", "behind"))
    for name in ("front", "behind"):
        (seat.cwd / name).touch()
    in_background: dict[str, object] = {"command": behind, "run_in_background": True}
    script = play(
        ToolUse("Bash", in_background), ToolUse("Bash", {"command": f"{front}; true"}), "never"
    )
    with pytest.raises(ZeroDivisionError):
        await leave_by_an_error(seat, script, [front, behind])
    assert running(front) == []
    assert running(behind) == []
    seat.found("Orphans after the end", "none")


async def test_an_agent_ends_whatever_it_is_doing(seat: Seat) -> None:
    waiting = anyio.Event()

    async def decide(_: AnyAsk) -> Allow:
        waiting.set()
        await anyio.sleep_forever()
        return Allow()

    # While a question is open: whoever thinks about it is stopped.
    with anyio.fail_after(SECONDS):
        async with seat.agent(decide=decide) as agent:
            query = await agent.prompt(play(ToolUse("Bash", {"command": "touch made"}), "ok"))
            await waiting.wait()
        # Some have the time to say how the turn ended.
        with suppress(LinkClosed):
            assert (await query.finish()).failed
    assert not (seat.cwd / "made").exists()
    # While the model speaks.
    with anyio.fail_after(SECONDS):
        async with seat.agent() as agent:
            await agent.prompt(play(reply("on ", Gate(), "and on")))
            await seat.model.wait_at_gate()
    seat.found("End an agent in the midst of a turn")
    await end_politely(seat)


async def end_politely(seat: Seat) -> None:
    """A CLI that is asked to go goes by itself, where it can be asked."""
    async with seat.agent() as agent:
        with anyio.fail_after(SECONDS):
            await agent.query("hello").finish()
            if seat.version < release(92):
                with pytest.raises(UnsupportedError, match="end_session"):
                    await agent.request(EndSession())
                seat.found("Ask the CLI to end", "no")
                return
            await agent.request(EndSession())
            await until(lambda: agent.state is State.CLOSED)
            closed = await refusal(agent)
    assert closed.exit_code == 0
    seat.found("Ask the CLI to end")


async def refusal(agent: Agent) -> LinkClosed:
    """What an agent says when its CLI has gone."""
    with pytest.raises(LinkClosed) as caught:
        await agent.query("anybody there?").finish()
    return caught.value


SIGNALS = {
    signal.SIGTERM: ("exit code 143", 143),
    signal.SIGINT: ("exit code 0", 0),
    signal.SIGHUP: ("exit code 129", 129),
}


async def test_a_signal_ends_the_cli_and_its_exit_is_explained(seat: Seat) -> None:
    for number, (words, code) in SIGNALS.items():
        async with seat.agent() as agent:
            with anyio.fail_after(SECONDS):
                query = await agent.prompt(play(reply("on ", Gate(number.name), "and on")))
                await seat.model.wait_at_gate(number.name)
                os.kill(seat.pid, number)
                # The newest has the time to say how the turn ended.
                with suppress(LinkClosed):
                    assert (await query.finish()).failed
                closed = await refusal(agent)
        assert closed.exit_code == code
        seat.found(f"Signals: {number.name}", words)


async def test_the_end_of_its_input_ends_the_cli_after_the_turn(seat: Seat) -> None:
    if seat.transport == "ws":
        seat.found("The end of its input in the midst of a turn", "cannot be told")
        return
    meddler = Meddler()
    async with seat.agent(meddler=meddler) as agent:
        with anyio.fail_after(SECONDS):
            query = await agent.prompt(play(reply("on ", Gate(), "and on")))
            await seat.model.wait_at_gate()
            await meddler.end_input()
            seat.model.release()
            messages = [message async for message in query]
            closed = await refusal(agent)
    assert result_of(messages).result == "and on"
    assert closed.exit_code == 0
    seat.found("The end of its input in the midst of a turn", "the turn is finished first")
