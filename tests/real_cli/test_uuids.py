"""Uuids: prompts are known by them."""

from __future__ import annotations

from uuid import uuid4

import anyio
import pytest

from quarterdeck import Prompt, User
from quarterdeck.domain.errors import UsageError
from quarterdeck.wire.messages import CommandLifecycle
from quarterdeck.wire.versions import has_command_lifecycle
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
