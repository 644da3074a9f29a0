"""Lost connections: what is kept and what is lost until a CLI has dialled again.

Over stdio there is nothing to lose. There the tests only say so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import anyio
import msgspec
import pytest

from quarterdeck import Agent, Allow, Query, listen
from quarterdeck.agent.asks import AnyAsk
from quarterdeck.agent.listen import TOKEN_VARIABLE
from quarterdeck.agent.service import Decide
from quarterdeck.links.environment import child_environment
from quarterdeck.links.launch import to_argv
from quarterdeck.links.subprocess import SubprocessLink
from quarterdeck.testing import Gate, ToolUse, play, reply
from quarterdeck.wire.messages import Assistant
from quarterdeck.wire.states import State
from quarterdeck.wire.turns import Turn
from quarterdeck.wire.versions import replays_after_reconnect
from support.relay import Relay, relay_to
from support.seats import Seat
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

NOTHING_TO_LOSE = "–"


@asynccontextmanager
async def dialled(seat: Seat, decide: Decide | None = None) -> AsyncIterator[tuple[Agent, Relay]]:
    """An agent whose CLI was started elsewhere, and the network between them."""
    async with listen() as listener:
        address = urlsplit(listener.url)
        assert address.port is not None
        async with relay_to(address.port) as relay:
            url = address._replace(netloc=f"127.0.0.1:{relay.port}").geturl()
            options = seat.options()
            launch = msgspec.structs.replace(options, sdk_url=url)
            env = child_environment(env={**options.env, TOKEN_VARIABLE: listener.token})
            async with await SubprocessLink.start(
                seat.cli.command, to_argv(launch), cwd=seat.cwd, env=env
            ):
                link = await listener.accept()
                async with Agent(options, decide=decide, link=link) as agent:
                    yield agent, relay


async def back(agent: Agent, relay: Relay, connections: int) -> None:
    """Wait until the CLI has dialled again and the agent knows."""
    with anyio.fail_after(30):
        await until(lambda: relay.connections == connections and agent.state is not State.DOWN)
        await agent.mcp_status()


async def next_text(query: Query) -> str:
    async for message in query:
        if isinstance(message, Assistant):
            return message.text
    raise AssertionError("the turn ended without a text")


async def finish(query: Query) -> Turn:
    with anyio.fail_after(30):
        return await query.finish()


async def test_a_turn_outlives_a_drop(seat: Seat, caplog: pytest.LogCaptureFixture) -> None:
    if seat.transport == "stdio":
        seat.found("A turn outlives a lost connection", NOTHING_TO_LOSE)
        seat.found("What is said while the connection is lost", NOTHING_TO_LOSE)
        return
    async with dialled(seat) as (agent, relay):
        await finish(agent.query("first"))
        query = await agent.prompt(play(reply("before", Gate("one"), "behind")))
        with anyio.fail_after(30):
            texts = [await next_text(query)]
            relay.cut()
            await back(agent, relay, 2)
            seat.model.release("one")
            texts += [message.text async for message in query if isinstance(message, Assistant)]
        assert query.turn is not None
        assert query.turn.prompts == (query.uuid,)
        # 2.1.120 says all that it ever said once more; none of it may come twice.
        assert texts == ["before", "behind"]
        seat.found("A turn outlives a lost connection")

        lost = await agent.prompt(play(reply("more", Gate("two"), "in the gap")))
        await seat.model.wait_at_gate("two")
        relay.cut()
        seat.model.release("two")
        await back(agent, relay, 3)
        if replays_after_reconnect(seat.version):
            turn = await finish(lost)
            assert turn.prompts == (lost.uuid,)
            assert turn.result is not None
            assert turn.result.result == "in the gap"
            seat.found("What is said while the connection is lost", "comes later")
        else:
            # Its result is gone for good. The next prompt shows that the turn is over.
            after = await agent.prompt("after")
            turns = [await finish(lost), await finish(after)]
            assert turns[0] == turns[1]
            assert turns[0].prompts == (lost.uuid, after.uuid)
            assert "messages of the CLI" in caplog.text
            seat.found("What is said while the connection is lost", "is lost")
        assert agent.state is State.READY


async def test_questions_outlive_a_drop(seat: Seat) -> None:
    if seat.transport == "stdio":
        seat.found("A question outlives a lost connection", NOTHING_TO_LOSE)
        seat.found("A question asked while the connection is lost", NOTHING_TO_LOSE)
        return
    asked: list[bytes] = []
    waiting, go_on = anyio.Event(), anyio.Event()

    async def decide(ask: AnyAsk) -> Allow:
        asked.append(bytes(ask.input))
        waiting.set()
        await go_on.wait()
        return Allow()

    async with dialled(seat, decide) as (agent, relay):
        query = await agent.prompt(play(ToolUse("Bash", {"command": "touch early"}), "ok"))
        with anyio.fail_after(30):
            await waiting.wait()
        relay.cut()
        await back(agent, relay, 2)
        assert len(agent.asks) == 1
        go_on.set()
        assert (await finish(query)).prompts == (query.uuid,)
        assert (seat.cwd / "early").exists()
        assert len(asked) == 1
        seat.found("A question outlives a lost connection")

        call = ToolUse("Bash", {"command": "touch late"})
        query = await agent.prompt(play(reply("well", Gate(), call), "ok"))
        await seat.model.wait_at_gate()
        relay.cut()
        # The CLI dials again after a second at most; it asks long before that.
        seat.model.release()
        assert (await finish(query)).prompts == (query.uuid,)
        assert (seat.cwd / "late").exists()
        assert len(asked) == 2
        assert relay.connections == 3
        seat.found("A question asked while the connection is lost", "is recovered")
