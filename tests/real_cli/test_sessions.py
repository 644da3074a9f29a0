"""Sessions: resumed, continued, forked, taken up at a message, and those that are not there."""

from __future__ import annotations

from uuid import uuid4

import anyio
import pytest

from quarterdeck import Assistant, Query, User
from quarterdeck.domain.errors import LinkClosed
from quarterdeck.testing import ModelRequest
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


def knows(request: ModelRequest, *words: str) -> list[bool]:
    """Which of the words the model was told."""
    told = "\n".join(block.plain for message in request.messages for block in message.blocks)
    return [word in told for word in words]


async def test_a_session_goes_on_in_another_process(seat: Seat) -> None:
    chosen, forked = str(uuid4()), str(uuid4())
    async with seat.agent(session_id=chosen) as agent:
        with anyio.fail_after(30):
            first = [message async for message in agent.query("remember ALPHA")]
            await agent.query("remember BETA").finish()
        assert agent.session_id == chosen
    seat.found("Choose a session's id")
    answers = [message.uuid for message in first if isinstance(message, Assistant)]

    async with seat.agent(resume=chosen) as agent:
        with anyio.fail_after(30):
            again = [message async for message in agent.query("remember GAMMA")]
        assert agent.session_id == chosen
    assert knows(seat.model.turns[-1], "ALPHA", "BETA", "GAMMA") == [True, True, True]
    seat.found("Resume a session")
    texts = [message.text for message in again if isinstance(message, Assistant | User)]
    assert not any("ALPHA" in text or "BETA" in text for text in texts)
    seat.found("A resumed session tells its history", "no")

    async with seat.agent(continue_=True, fork_session=True, session_id=forked) as agent:
        with anyio.fail_after(30):
            await agent.query("remember DELTA").finish()
        assert agent.session_id == forked
    assert knows(seat.model.turns[-1], "ALPHA", "GAMMA", "DELTA") == [True, True, True]
    seat.found("Continue the newest session")
    seat.found("Fork a session")

    async with seat.agent(resume=chosen, resume_session_at=answers[-1]) as agent:
        with anyio.fail_after(30):
            await agent.query("remember EPSILON").finish()
        assert agent.session_id == chosen
    told = knows(seat.model.turns[-1], "ALPHA", "BETA", "DELTA", "EPSILON")
    assert told == [True, False, False, True]
    seat.found("Resume at a message")


async def test_a_session_that_is_not_there_is_a_clear_error(seat: Seat) -> None:
    unknown = str(uuid4())
    with anyio.fail_after(30), pytest.raises(LinkClosed) as caught:
        async with seat.agent(resume=unknown) as agent:
            await agent.query("anybody there?").finish()
    assert f"No conversation found with session ID: {unknown}" in str(caught.value)
    assert caught.value.exit_code == 1
    assert not seat.model.turns
    seat.found("Resume an unknown session", "a clear error")

    chosen = str(uuid4())
    async with seat.agent(session_id=chosen) as agent:
        with anyio.fail_after(30):
            await agent.query("remember ALPHA").finish()
    if seat.transport == "stdio":
        with anyio.fail_after(30), pytest.raises(LinkClosed, match="already in use"):
            async with seat.agent(session_id=chosen) as agent:
                await agent.query("again").finish()
        seat.found("Start a session with an id in use", "a clear error")
    else:
        async with seat.agent(session_id=chosen) as agent:
            with anyio.fail_after(30):
                assert Query.check(await agent.query("again").finish()).session_id == chosen
        assert knows(seat.model.turns[-1], "ALPHA", "again") == [False, True]
        seat.found("Start a session with an id in use", "begins anew under that id")
