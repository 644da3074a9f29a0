"""The live text of sessions that other hubs own, for the people at this one.

Owns one connection to each other hub that is there, for as long as there is a listener here. Live
text is not journalled: what is lost with a connection is superseded by the whole message.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio
import msgspec

from quarterdeck.domain.errors import QuarterdeckError
from quarterdeck.fronts.peers.client import CONNECT_SECONDS, PeerClient
from quarterdeck.fronts.peers.endpoint import BEAT_SECONDS, LIVE, LiveLine
from quarterdeck.fronts.peers.seal import HEADER, Sealer, is_same
from quarterdeck.hub.api import Fleet, HubPlace, Live

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
LONGEST_LINE = 4 * 1024 * 1024

_lines = msgspec.json.Decoder(LiveLine)


class LiveFeed:
    """Brings live text of other hubs."""

    def __init__(self, fleet: Fleet, client: PeerClient, sealer: Sealer, live: Live) -> None:
        self._fleet = fleet
        self._client = client
        self._sealer = sealer
        self._live = live
        self._following: set[str] = set()

    async def run(self) -> None:
        """Follow every other hub, while it is there."""
        async with anyio.create_task_group() as tasks:
            while True:
                await self._look(tasks)
                await anyio.sleep(LOOK_SECONDS)

    async def _look(self, tasks: TaskGroup) -> None:
        try:
            places = await self._fleet.others()
        except QuarterdeckError as error:
            log.info("the other hubs are not known: %s", error)
            return
        for place in places:
            if place.hub not in self._following:
                self._following.add(place.hub)
                tasks.start_soon(self._follow, place)

    async def _follow(self, place: HubPlace) -> None:
        """Follow one hub until it is lost; `_look` begins again."""
        import httpx2

        speaking: set[str] = set()
        seal = self._sealer.seal(place.hub, "GET", LIVE, b"")
        headers = {HEADER: seal}
        timeout = httpx2.Timeout(2 * BEAT_SECONDS, connect=CONNECT_SECONDS)
        url = place.url.rstrip("/") + LIVE
        try:
            async with self._client.client.stream(
                "GET", url, headers=headers, timeout=timeout
            ) as answer:
                if answer.status_code == 200:
                    rest, number = b"", 0
                    async for data in answer.aiter_bytes():
                        *lines, rest = (rest + data).split(b"\n")
                        if len(rest) > LONGEST_LINE:
                            return
                        for line in lines:
                            mac, _, said = line.partition(b" ")
                            expected = self._sealer.seal_line(seal, number, said)
                            if not is_same(mac.decode("latin-1"), expected):
                                log.warning("live text without the seal of %s", place.url)
                                return
                            number += 1
                            self._take(_lines.decode(said), speaking)
        except (httpx2.HTTPError, httpx2.InvalidURL, msgspec.DecodeError) as error:
            log.info("the live text of %s is lost: %s", place.url, error)
        finally:
            for session in speaking:
                self._live.supersede(session)
            self._following.discard(place.hub)

    def _take(self, line: LiveLine, speaking: set[str]) -> None:
        if line.delta is not None:
            speaking.add(line.delta.session)
            self._live.add(line.delta, far=True)
        if line.whole is not None:
            speaking.discard(line.whole)
            self._live.supersede(line.whole, far=True)
