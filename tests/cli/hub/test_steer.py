"""`quarterdeck send --steer`, against a hub with the real CLI."""

from __future__ import annotations

import pytest

from quarterdeck.testing.model import ScriptedModel
from quarterdeck.testing.script import ToolUse, play
from support.served_deck import ServedDeck

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_a_prompt_is_sent_into_the_running_turn_and_a_slash_command_is_refused(
    deck: ServedDeck, model: ScriptedModel
) -> None:
    await deck.serve()
    call = ToolUse("Bash", {"command": "touch made", "description": "make it"})
    session = await deck.new("--name", "first", play(call, "it is done"))
    await deck.until(session, lambda shape: shape.asks == 1)
    await deck("send", "--steer", "first", "look left")
    refused = await deck("send", "--steer", "first", "/compact", code=1)
    assert "a slash command runs between turns; send it without steer" in refused.err
    await deck("answer", "first", "allow")
    shape = await deck.until(session, lambda shape: shape.turns == 1)
    assert (shape.queued, shape.holds.tools) == (0, ())
    assert model.turns[-1].body.decode().count("look left") == 1
    await deck("stop")
    assert await deck.ends() == 0
