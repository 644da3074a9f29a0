"""Lost connections: what is kept and what is lost until a CLI has reconnected.

Over stdio there is nothing to lose. There the test only says so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import anyio
import msgspec
import pytest

from quarterdeck import Agent, Query, listen
from quarterdeck.agent.listen import TOKEN_VARIABLE
from quarterdeck.agent.service import Decide
from quarterdeck.claude.environment import child_environment
from quarterdeck.claude.launch import to_argv
from quarterdeck.links.subprocess import SubprocessLink
from quarterdeck.testing import Gate, play, reply
from quarterdeck.wire.messages import Assistant
from quarterdeck.wire.states import State
from quarterdeck.wire.turns import Turn
from quarterdeck.wire.versions import release, replays_after_reconnect
from support.bounds import SECONDS
from support.relay import Relay, relay_to
from support.scenes import Person, bash
from support.seats import Seat
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

NOTHING_TO_LOSE = "–"


@asynccontextmanager
async def dialled(seat: Seat, decide: Decide) -> AsyncIterator[tuple[Agent, Relay]]:
    """An agent whose CLI was started elsewhere, and the network between them.

    A CLI that dials needs no flags that say in what form it is talked to. A prompt on its command
    line, which others have told people to give it, is left alone.
    """
    async with listen() as listener:
        address = urlsplit(listener.url)
        assert address.port is not None
        async with relay_to(address.port) as relay:
            url = address._replace(netloc=f"127.0.0.1:{relay.port}").geturl()
            options = seat.options()
            launch = to_argv(msgspec.structs.replace(options, sdk_url=url))
            bare = launch[launch.index("stream-json", launch.index("--input-format")) + 1 :]
            assert not {"--verbose", "--output-format", "--input-format"} & {*bare}
            env = child_environment(env={**options.env, TOKEN_VARIABLE: listener.token})
            async with await SubprocessLink.start(
                seat.cli.command, ["-p", "placeholder", *bare], cwd=seat.cwd, env=env
            ):
                link = await listener.accept()
                async with Agent(options, decide=decide, link=link) as agent:
                    yield agent, relay


async def back(agent: Agent, relay: Relay, connections: int) -> None:
    """Wait until the CLI has dialled again and the agent knows."""
    with anyio.fail_after(SECONDS):
        await until(lambda: relay.connections == connections and agent.state is not State.DOWN)
        await agent.mcp_status()


async def next_text(query: Query) -> str:
    async for message in query:
        if isinstance(message, Assistant):
            return message.text
    raise AssertionError("the turn ended without a text")


async def finish(query: Query) -> Turn:
    with anyio.fail_after(SECONDS):
        return await query.finish()


ROWS = (
    "Dials without further flags",
    "A prompt on the command line of a CLI that connects",
    "A turn outlives a lost connection",
    "What is said while the connection is lost",
    "A question outlives a lost connection",
    "A question asked while the connection is lost",
    "Dials again with a token that was set later",
)


@pytest.mark.transports_differ
@pytest.mark.between("2.1.92 ws")
async def test_an_agent_outlives_lost_connections(
    seat: Seat, caplog: pytest.LogCaptureFixture
) -> None:
    if seat.transport == "stdio":
        for name in ROWS:
            seat.found(name, NOTHING_TO_LOSE)
        return
    person = Person()
    async with dialled(seat, person) as (agent, relay):
        await a_bare_command_line_is_enough(seat, agent)
        await a_turn_outlives_a_drop(seat, agent, relay)
        await what_is_said_meanwhile_is_lost_or_comes_later(seat, agent, relay, caplog)
        await a_question_outlives_a_drop(seat, agent, relay, person)
        await a_question_asked_meanwhile_is_recovered(seat, agent, relay, person)
        await a_token_that_is_set_later_is_used(seat, agent, relay)


async def a_bare_command_line_is_enough(seat: Seat, agent: Agent) -> None:
    assert (await finish(agent.query("first"))).result is not None
    assert [request.last_text for request in seat.model.turns] == ["first"]
    seat.found(ROWS[0])
    seat.found(ROWS[1], "ignored")


async def a_turn_outlives_a_drop(seat: Seat, agent: Agent, relay: Relay) -> None:
    query = await agent.prompt(play(reply("before", Gate("one"), "behind")))
    with anyio.fail_after(SECONDS):
        texts = [await next_text(query)]
        relay.cut()
        await back(agent, relay, 2)
        seat.model.release("one")
        texts += [message.text async for message in query if isinstance(message, Assistant)]
    assert query.turn is not None
    assert query.turn.prompts == (query.uuid,)
    # 2.1.120 says all that it ever said once more; none of it may come twice.
    assert texts == ["before", "behind"]
    seat.found(ROWS[2])


async def what_is_said_meanwhile_is_lost_or_comes_later(
    seat: Seat, agent: Agent, relay: Relay, caplog: pytest.LogCaptureFixture
) -> None:
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
        seat.found(ROWS[3], "comes later")
    else:
        # R17. Its result is gone for good. The next turn shows that it is over, and is another one.
        after = await agent.prompt("after")
        gone, told = await finish(lost), await finish(after)
        assert (gone.prompts, gone.result, gone.failed) == ((lost.uuid,), None, True)
        assert told.prompts == (after.uuid,)
        assert told.result is not None
        assert told.result.result == "echo: after"
        assert "messages of the CLI" in caplog.text
        seat.found(ROWS[3], "is lost")
    assert agent.state is State.READY


async def a_question_outlives_a_drop(
    seat: Seat, agent: Agent, relay: Relay, person: Person
) -> None:
    query = await agent.prompt(play(bash("touch early"), "ok"))
    (ask,) = await person.wait_for(1)
    relay.cut()
    await back(agent, relay, 4)
    assert len(agent.asks) == 1
    person.answer(ask)
    assert (await finish(query)).prompts == (query.uuid,)
    assert (seat.cwd / "early").exists()
    assert len(person.asks) == 1
    seat.found(ROWS[4])


async def a_question_asked_meanwhile_is_recovered(
    seat: Seat, agent: Agent, relay: Relay, person: Person
) -> None:
    query = await agent.prompt(play(reply("well", Gate(), bash("touch late")), "ok"))
    await seat.model.wait_at_gate()
    relay.cut()
    # The CLI dials again after a second at most; it asks long before that.
    seat.model.release()
    person.answer((await person.wait_for(2))[-1])
    assert (await finish(query)).prompts == (query.uuid,)
    assert (seat.cwd / "late").exists()
    assert len(person.asks) == 2
    assert relay.connections == 5
    seat.found(ROWS[5], "is recovered")


async def a_token_that_is_set_later_is_used(seat: Seat, agent: Agent, relay: Relay) -> None:
    await agent.set_environment({TOKEN_VARIABLE: "another"})
    with anyio.fail_after(SECONDS):
        await agent.mcp_status()  # answered in order: it has the variable
        relay.cut()
        await until(lambda: len(relay.openings) == 6)
    # The listener knows the old one only, and lets nobody else in.
    used = b"Bearer another" in relay.openings[-1]
    assert used is (seat.version >= release(62))
    seat.found(ROWS[6], "yes" if used else "no")
