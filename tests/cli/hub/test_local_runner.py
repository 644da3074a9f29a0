"""The local runner dies while the hub lives."""

from __future__ import annotations

import os
import signal
import time
from itertools import pairwise
from pathlib import Path

import anyio
import anyio.from_thread
import pytest

from quarterdeck.domain.errors import LaunchError
from quarterdeck.protocol.commands import ResumeSession
from quarterdeck.runner.home import STATE
from quarterdeck.service import local_runner
from quarterdeck.testing import fake
from support.bounds import SECONDS
from support.processes import running
from support.served_deck import ServedDeck, until_true

pytestmark = pytest.mark.anyio


async def test_a_killed_runner_is_followed_by_another_and_its_session_can_be_resumed(
    deck: ServedDeck,
) -> None:
    deck.command.play_fake(fake.Initialize(), fake.Hang())
    await deck.serve()
    runner = deck.adopt()
    assert runner is not None
    session = await deck.new()
    agent = (await deck.until_state(session, "idle")).pid
    assert agent is not None
    os.kill(runner, signal.SIGKILL)
    ended = await deck.until_state(session, "ended")
    assert "runner was killed" in ended.detail
    assert deck.adopt() not in {None, runner}
    await until_true(lambda: not running(agent))
    await anyio.to_thread.run_sync(deck.client.submit, ResumeSession(session=session))
    assert (await deck.until_state(session, "idle")).pid != agent
    assert "1 agent and the runner ended." in (await deck("stop")).out
    assert await deck.ends() == 0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_runner, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(local_runner, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(local_runner, "GOOD_ORDER_SECONDS", 0.3)


async def starts(folder: Path, wanted: int) -> list[float]:
    """When a runner was started, in seconds after the first, where none ever lives for long."""
    found: list[float] = []
    enough = anyio.Event()

    def start() -> None:
        found.append(time.monotonic())
        if len(found) == wanted:
            anyio.from_thread.run_sync(enough.set)
        if len(found) > 1:
            raise LaunchError("no runner today")

    with anyio.fail_after(SECONDS):
        async with local_runner.supervised_runner(folder, start):
            await enough.wait()
    return [at - found[0] for at in found]


async def test_a_runner_that_cannot_be_started_is_tried_again_with_growing_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_runner, "GOOD_ORDER_SECONDS", 10 * SECONDS)  # that is not waited for
    (tmp_path / STATE).write_text("{}")  # as one leaves it that was killed
    at = await starts(tmp_path, 5)
    pauses = [after - before for before, after in pairwise(at[1:])]
    assert all(pause > wanted for pause, wanted in zip(pauses, (0.1, 0.2, 0.4), strict=True))


async def test_a_runner_that_ended_in_good_order_is_not_missed_at_once(tmp_path: Path) -> None:
    assert (await starts(tmp_path, 2))[1] >= 0.3 + 0.05


async def test_what_goes_wrong_meanwhile_comes_out_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with local_runner.supervised_runner(tmp_path, lambda: None):
            raise KeyError("mine")
