"""`Agent.messages`: from the call on, until it is dropped, left, or the CLI has ended."""

from __future__ import annotations

import gc

import anyio
import pytest

from quarterdeck import Agent, LinkClosed
from quarterdeck.links.memory import memory_pair
from quarterdeck.wire.control import ControlResponse
from quarterdeck.wire.messages import Assistant
from support import lines
from support.bounds import SECONDS
from support.far_end import FarEnd, driven

pytestmark = pytest.mark.anyio


async def test_what_comes_is_kept_from_the_call_on() -> None:
    async with driven() as (agent, far):
        messages = agent.messages()
        query = await agent.prompt("one")
        await far.take_prompt()
        await far.say(lines.assistant("hi", "a1"), lines.result("r1"))
        with anyio.fail_after(SECONDS):
            await query.finish()
            kinds = [type(await anext(messages)).__name__ for _ in range(4)]
        assert kinds == ["Init", "User", "Assistant", "Result"]


async def test_two_who_listen_each_get_all() -> None:
    async with driven() as (agent, far):
        first, second = agent.messages(), agent.messages()
        await far.say(lines.assistant("hi", "a1"))
        with anyio.fail_after(SECONDS):
            assert await anext(first) is await anext(second)


async def test_those_that_nobody_holds_any_more_are_forgotten() -> None:
    async with driven() as (agent, far):
        kept = agent.messages()
        dropped = agent.messages()
        await far.say(lines.assistant("one", "a1"))
        with anyio.fail_after(SECONDS):
            async for _ in agent.messages():
                break
            await anext(dropped)
        assert len(agent._readers) == 2
        del dropped
        gc.collect()
        assert list(agent._readers) == [kept]


async def test_leaving_the_context_ends_them_and_frees_what_is_unread() -> None:
    async with driven() as (agent, far):
        with anyio.fail_after(SECONDS):
            async with agent.messages() as messages:
                await far.say(lines.assistant("one", "a1"), lines.assistant("two", "a2"))
                first = await anext(messages)
        assert isinstance(first, Assistant)
        assert len(messages) == 0
        await far.say(lines.assistant("three", "a3"))
        assert [message async for message in messages] == []


async def test_asked_for_after_the_end_they_are_at_their_end_too() -> None:
    async with driven() as (agent, far):
        far.peer.close("It fell over.", exit_code=1)
        with anyio.fail_after(SECONDS):
            for _ in range(2):
                with pytest.raises(LinkClosed, match="fell over"):
                    await anext(agent.messages())
    async with driven() as (left, _):
        pass
    assert [message async for message in left.messages()] == []


async def test_who_listens_before_the_start_misses_not_even_the_greeting() -> None:
    link, peer = memory_pair()
    far = FarEnd(peer)
    agent = Agent(link=link)
    messages = agent.messages()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(far.serve_leave)
        async with agent:
            with anyio.fail_after(SECONDS):
                first = await anext(messages)
    assert isinstance(first, ControlResponse)
