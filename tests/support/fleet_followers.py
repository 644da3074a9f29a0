"""Those who follow all events, at one hub after the other: each event once, in order, no gap.

A follower is the library's own client. Its network is cut, and its hub killed; it then goes on
anywhere. What it was given is compared with the journal by whoever plays a schedule.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import anyio

from quarterdeck.client.all_events import AllEvents
from quarterdeck.client.calls import HubAddress
from quarterdeck.domain.errors import QuarterdeckError
from quarterdeck.protocol.views import EventShape
from support.bounds import SECONDS


class Follower:
    """Follows from the first event of a journal."""

    def __init__(self, ports: Callable[[], Sequence[int]], seed: int) -> None:
        self._ports = ports
        self._chance = random.Random(seed)
        self.position = 0
        self.seen: dict[str, list[tuple[int, int]]] = {}
        """The numbers and positions of the events of each session, as they came."""
        self.wrong: list[str] = []
        self._news = anyio.Event()

    async def run(self) -> None:
        """Until it is cancelled, or refused."""
        try:
            await AllEvents(self._where, self._take, 0).run()
        except QuarterdeckError as error:
            self.wrong.append(f"a follower was refused: {type(error).__name__}: {error}")
            self._news.set()

    async def reach(self, position: int) -> None:
        """Wait until it has been given the event at this position."""
        with anyio.move_on_after(SECONDS):
            while self.position < position and not self.wrong:
                await self._news.wait()
        if self.position < position:
            self.wrong.append(f"a follower is at {self.position}, and the journal at {position}")

    async def _where(self) -> HubAddress:
        port = self._chance.choice(self._ports())
        return HubAddress(address=f"http://127.0.0.1:{port}", token="none")

    async def _take(self, shape: EventShape) -> None:
        if shape.position != self.position + 1:
            self.wrong.append(f"a follower was given {shape.position} after {self.position}")
        self.position = shape.position
        self.seen.setdefault(shape.session, []).append((shape.seq, shape.position))
        news, self._news = self._news, anyio.Event()
        news.set()
