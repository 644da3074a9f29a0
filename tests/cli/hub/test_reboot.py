"""After a reboot of the machine its sessions go on by themselves, where they have work left."""

from __future__ import annotations

import os
import signal

import httpx
import pytest

from quarterdeck.domain.coded import TextCode
from quarterdeck.service.local_hub import live_hub, own_token
from quarterdeck.testing import fake
from support.bounds import SECONDS
from support.processes import running
from support.served_deck import ServedDeck, until_true

pytestmark = pytest.mark.process


async def test_a_turn_that_a_reboot_cut_off_goes_on_by_itself_and_that_is_said(
    deck: ServedDeck,
) -> None:
    deck.command.play_fake(
        fake.Initialize(),
        fake.Expect("user"),
        fake.say(fake.assistant("I am at work.")),
        fake.Hang(),
    )
    await deck.serve()
    session = await deck.new("Work.")
    agent = (await deck.until_state(session, "working")).pid
    hub, runner = live_hub(deck.data), deck.adopt()
    assert agent is not None
    assert hub is not None
    assert runner is not None

    for pid in (hub.pid, runner, agent):  # nobody has time to write anything down
        os.kill(pid, signal.SIGKILL)
    await deck.ends()
    await until_true(lambda: not running(runner) and not running(agent))

    await deck.serve()
    await deck.until(
        session,
        lambda shape: shape.pid not in {None, agent} and shape.state in {"idle", "working"},
    )
    bearer = {"authorization": f"Bearer {own_token(deck.data)}"}
    async with httpx.AsyncClient(base_url=deck.address, headers=bearer, timeout=SECONDS) as client:
        events = (await client.get(f"/api/sessions/{session}/events")).json()["events"]
    noted = [one["event"]["coded"]["code"] for one in events if one["event"]["kind"] == "noted"]
    assert TextCode.RESUMED_AUTOMATICALLY in noted, noted
    await deck("stop")
    assert await deck.ends() == 0
