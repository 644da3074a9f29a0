"""Uuids: prompts are known by them, and turns are told apart without echoes too."""

from __future__ import annotations

from uuid import uuid4

import anyio
import pytest

from quarterdeck import Prompt, User
from quarterdeck.domain.errors import UsageError
from quarterdeck.testing import Gate, play, reply
from quarterdeck.wire.messages import CommandLifecycle
from quarterdeck.wire.states import State
from quarterdeck.wire.versions import has_command_lifecycle, joins_queued_prompts
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_a_prompt_is_echoed_under_its_uuid_and_never_sent_twice(seat: Seat) -> None:
    prompt = Prompt.of("once", uuid=str(uuid4()))
    async with seat.agent() as agent:
        with anyio.fail_after(30):
            messages = [message async for message in agent.query(prompt)]
            # The CLI would drop it without a word, and its turn would never end.
            with pytest.raises(UsageError, match="was sent before"):
                await agent.query(prompt).finish()
            await agent.query("twice").finish()
    echoes = [m.uuid for m in messages if isinstance(m, User) and m.is_replay]
    assert echoes == [prompt.uuid]
    assert len(seat.model.turns) == 2
    seat.found("Prompts are echoed under their uuid")
    reports = [m.state for m in messages if isinstance(m, CommandLifecycle)]
    assert reports == (["queued", "started"] if has_command_lifecycle(seat.version) else [])
    answer = "yes" if has_command_lifecycle(seat.version) else "no"
    seat.found("Reports on what becomes of a prompt", answer)


async def test_turns_end_without_echoes_too(seat: Seat) -> None:
    async with seat.agent(replay_user_messages=False) as agent:
        with anyio.fail_after(30):
            messages = [message async for message in agent.query("plain")]
            assert not any(isinstance(m, User) and m.is_replay for m in messages)
            assert not (await agent.query("/cost").finish()).failed
            first = await agent.prompt(play(reply("on ", Gate(), "and on")))
            await seat.model.wait_at_gate()
            second = await agent.prompt("second")
            await agent.mcp_status()  # answered in order: the prompt has been read
            seat.model.release()
            one, two = await first.finish(), await second.finish()
        assert agent.state is State.READY
    assert one.prompts == (first.uuid,)
    assert two.prompts == (second.uuid,)
    assert two.result is not None
    assert two.result.result == "echo: second"
    seat.found("Turns are told apart without echoes")
    assert joins_queued_prompts(seat.version) or len(seat.model.turns) == 3
