"""A full disk under the hub: it says so, acknowledges nothing that it lacks, and goes on later."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from msgspec import Raw

from quarterdeck.protocol.commands import (
    AllowAnswer,
    AnswerAsk,
    CreateSession,
    SendPrompt,
    StopSession,
)
from quarterdeck.protocol.sessions import SessionState
from support.bounds import SECONDS
from support.fault_check import find, lives, wrote
from support.fault_nursery import Nursery
from support.fault_world import Refusal, World, world
from support.processes import Processes

pytestmark = pytest.mark.anyio

SESSION = "mine"


async def said(one: World) -> int:
    """How many lines of the CLI are in the journal."""
    (life,) = lives([event for _, event in await one.events(SESSION)]).values()
    return len(life.said)


async def test_what_a_full_disk_could_not_take_is_kept_by_the_runner_and_comes_later(
    tmp_path: Path, nursery: Nursery, processes: Processes
) -> None:
    async with world(tmp_path, nursery, processes) as one:
        with anyio.fail_after(SECONDS):
            create = CreateSession(
                spec=one.spec(SESSION, 5),
                session=SESSION,
                prompt=Raw(b'"begin"'),
                by="ada",
            )
            await one.submit(create)
            while not (view := await one.view(SESSION)).pid:  # noqa: ASYNC110 (nothing announces it)
                await anyio.sleep(0.01)
            await one.disk_full(True)
            prompt = SendPrompt(
                session=SESSION,
                prompt="00000000-0000-4000-8000-000000000001",
                content=Raw(b'"more"'),
                by="ada",
            )
            with pytest.raises(Refusal) as refused:
                await one.submit(prompt)
            assert refused.value.kind == "JournalError"
            before = await said(one)
            # The CLI does not wait for the hub: it says on what it has to say.
            await anyio.sleep(0.3)
            assert await said(one) == before
            assert (await one.view(SESSION)).run == view.run
            await one.disk_full(False)
            assert not (await one.submit(prompt)).repeated
            await settle(one)
        events = [event for _, event in await one.events(SESSION)]
        assert find(events, one.records(SESSION), set()) == []
        assert view.pid is not None
        assert await said(one) == len(wrote(one.records(SESSION), view.pid)) > before


async def settle(one: World) -> None:
    """Answer what is asked until both prompts are done; then stop."""
    while (view := await one.view(SESSION)).turns < 2 or view.unsent:
        for ask in view.asks:
            await one.submit(AnswerAsk(ask=ask, answer=AllowAnswer(), by="ada"))
        await anyio.sleep(0.01)
    await one.submit(StopSession(session=SESSION, by="ada"))
    while (await one.view(SESSION)).state is not SessionState.ENDED:  # noqa: ASYNC110 (as above)
        await anyio.sleep(0.01)
