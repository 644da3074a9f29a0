"""One prompt: what its query says when it never ran."""

from __future__ import annotations

import anyio
import pytest

from quarterdeck import LinkClosed, TurnFailed
from support import lines
from support.bounds import SECONDS
from support.far_end import driven

pytestmark = pytest.mark.anyio


async def test_a_prompt_that_was_taken_back_is_cancelled() -> None:
    async with driven() as (agent, far):
        await agent.prompt("one")
        await far.take_prompt()
        queued = await agent.prompt("two")
        await far.read()
        await far.say(
            lines.line(type="command_lifecycle", command_uuid=queued.uuid, state="cancelled")
        )
        with anyio.fail_after(SECONDS):
            assert [message async for message in queued] == []
            with pytest.raises(TurnFailed, match="cancelled before it ran") as failed:
                await queued.finish()
        assert queued.cancelled
        assert failed.value.subtype == "cancelled"


async def test_a_prompt_that_the_cli_refused_is_not_cancelled_and_says_so() -> None:
    async with driven() as (agent, far):
        await agent.prompt("one")
        await far.take_prompt()
        queued = await agent.prompt("two")
        await far.read()
        await far.say(
            lines.line(type="command_lifecycle", command_uuid=queued.uuid, state="refused")
        )
        with anyio.fail_after(SECONDS), pytest.raises(TurnFailed) as failed:
            await queued.finish()
        assert not queued.cancelled
        assert failed.value.subtype == "refused"


@pytest.mark.parametrize("exit_code", [0, 1])
async def test_a_lost_link_is_an_error_and_no_cancelling(exit_code: int) -> None:
    async with driven() as (agent, far):
        running = await agent.prompt("one")
        await far.take_prompt()
        queued = await agent.prompt("two")
        await far.read()
        far.peer.close("It has gone.", exit_code=exit_code)
        for query in (running, queued):
            with anyio.fail_after(SECONDS), pytest.raises(LinkClosed, match="gone"):
                async for _ in query:
                    pass
            assert not query.cancelled
            with pytest.raises(LinkClosed, match="gone"):
                await query.finish()
