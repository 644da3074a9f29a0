"""The real hub, and the stand-in of fronts' tests, against the suite that every hub passes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

pytest.register_assert_rewrite("quarterdeck.testing.contracts.hub")

from quarterdeck.hub.api import HubApi  # noqa: E402 - after the line above
from quarterdeck.journal import SqliteJournal  # noqa: E402
from quarterdeck.protocol.events import RunEnded  # noqa: E402
from quarterdeck.testing.contracts.hub import HubBench, HubContract  # noqa: E402
from support.hub_machines import MachineBench, hub_with  # noqa: E402
from support.small_deck import SmallDeck  # noqa: E402

pytestmark = pytest.mark.anyio


class StandIn:
    """The stand-in, which has no processes at all."""

    def __init__(self) -> None:
        self.deck = SmallDeck()

    @property
    def hub(self) -> HubApi:
        return self.deck

    async def ask(self, session: str) -> str:
        return await self.deck.ask(session)

    async def end(self, session: str) -> None:
        run = (await self.deck.session(session)).run
        assert run is not None
        await self.deck.journal.append(session, [RunEnded(run=run, reason="It exited.")])

    async def write(self, session: str, text: str) -> None:
        self.deck.type(session, text)

    async def say(self, session: str, text: str) -> None:
        await self.deck.say(session, text)


class TestHub(HubContract):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path) -> None:
        self.path = tmp_path / "journal.db"

    @asynccontextmanager
    async def bench(self) -> AsyncIterator[HubBench]:
        async with await SqliteJournal.open(self.path) as journal:
            hub, machines = hub_with(journal)
            async with hub.run():
                yield MachineBench(hub, machines)


class TestStandIn(HubContract):
    @asynccontextmanager
    async def bench(self) -> AsyncIterator[HubBench]:
        bench = StandIn()
        try:
            yield bench
        finally:
            await bench.deck.workers.close()
