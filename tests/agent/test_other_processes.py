"""Who may prompt a CLI that we have started: nobody else, on the newest real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck import Agent
from quarterdeck.testing import RealCli, ScriptedModel
from support.clis import VERSIONS
from support.inboxes import write_to_inbox
from support.scenes import turn
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_other_processes_of_the_user_cannot_prompt_the_agent(
    clis: dict[str, RealCli], model: ScriptedModel, tmp_path: Path
) -> None:
    seat = Seat(clis[VERSIONS[-1]], "stdio", model, tmp_path, lambda *_: None)
    hostile = seat.cwd / ".claude"
    hostile.mkdir()
    (hostile / "settings.json").write_text('{"crossSessionInbound": "accept"}')
    async with (
        seat.agent() as closed,
        seat.agent(settings='{"crossSessionInbound": "accept"}') as opened,
    ):
        for agent, words in ((closed, "to the closed one"), (opened, "to the open one")):
            await turn(agent, "hello")
            await say_from_outside(agent, words)
        # The second was sent later, and has arrived: the first one had its time.
        await seat.model.wait_for_request(lambda asked: "to the open one" in asked.last_text)
        await turn(closed, "anything new?")
    said = [text for asked in seat.model.turns for text in asked.last_message.texts]
    assert any("to the open one" in text for text in said)
    assert not any("to the closed one" in text for text in said)


async def say_from_outside(agent: Agent, words: str) -> None:
    """Send a prompt as another process of the same user can."""
    init = agent.init
    assert init is not None
    assert init.messaging_socket_path is not None
    await write_to_inbox(init.messaging_socket_path, words)
