"""A reader that stops reading, on the whole way from the journal on disk to a browser's socket."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import anyio
import pytest
from websockets.asyncio.client import ClientConnection

from quarterdeck.fronts.http import Access, Listen, Pace, Role, make_app, serve
from quarterdeck.hub.hub import Hub
from quarterdeck.journal import SqliteJournal
from quarterdeck.journal.tail import MOST_BYTES
from quarterdeck.protocol.events import Noted, SessionCreated
from quarterdeck.protocol.sessions import SessionSpec
from support.bounds import SECONDS
from support.web_sockets import connect

pytestmark = [pytest.mark.anyio, pytest.mark.heavy]

PATIENT = Pace(silence_seconds=SECONDS, send_seconds=SECONDS)
EVENTS, SIZE, TOGETHER = 3600, 20_000, 25
"""72 MB: more than all that is held on the way may come to."""
ROOM = 2 * MOST_BYTES + 24 * 1024 * 1024
"""The newest events, as bytes and as objects, once for all readers; and what else is at work."""
assert EVENTS * SIZE > 1.2 * ROOM


async def fill(journal: SqliteJournal) -> None:
    """Store all those events."""
    note = Noted(level="info", text="x" * SIZE)
    for _ in range(0, EVENTS, TOGETHER):
        await journal.append("mine", [note] * TOGETHER)


async def test_a_follower_that_stops_holds_no_memory_and_misses_nothing(tmp_path: Path) -> None:
    async with await SqliteJournal.open(tmp_path / "journal.db") as journal:
        created = SessionCreated(spec=SessionSpec(directory="/"), by="ada")
        await journal.append("mine", [created])
        with anyio.fail_after(SECONDS):
            slow, quick = journal.follow({"mine": 0}), journal.follow({"mine": 0})
            seen = [stored.seq for stored in await anext(slow)]
            tracemalloc.start()
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(fill, journal)
                    kept_up: list[int] = []
                    while len(kept_up) <= EVENTS:
                        kept_up += [stored.seq for stored in await anext(quick)]
                held, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert held < ROOM
            assert kept_up == list(range(1, EVENTS + 2))
            while len(seen) <= EVENTS:
                seen += [stored.seq for stored in await anext(slow)]
            assert seen == kept_up


async def follow(socket: ClientConnection) -> None:
    await socket.send(json.dumps({"t": "follow", "id": "1", "sessions": {"mine": 0}}))


async def numbers(socket: ClientConnection) -> list[int]:
    """The numbers of all events, in the order in which they came."""
    found: list[int] = []
    while len(found) <= EVENTS:
        frame = json.loads(await socket.recv())
        found += [event["seq"] for event in frame.get("events", ())]
    return found


async def test_a_socket_that_stops_holds_up_nobody_and_gets_everything_later(
    tmp_path: Path,
) -> None:
    access = Access(tmp_path)
    async with await SqliteJournal.open(tmp_path / "journal.db") as journal:
        created = SessionCreated(spec=SessionSpec(directory="/"), by="ada")
        await journal.append("mine", [created])
        hub = Hub(journal, lambda token: None)
        async with hub.run(), serve(make_app(hub, access, pace=PATIENT), Listen(port=0)) as url:
            address = f"ws{url.removeprefix('http')}/api/stream"
            token = access.make_token("ada", Role.VIEWER)
            headers = {"authorization": f"Bearer {token}"}
            with anyio.fail_after(SECONDS):
                # With a queue of one frame, a client that does not receive does not read either.
                async with (
                    connect(address, additional_headers=headers, max_queue=1) as slow,
                    connect(address, additional_headers=headers, max_size=None) as quick,
                ):
                    await follow(slow)
                    await follow(quick)
                    tracemalloc.start()
                    try:
                        async with anyio.create_task_group() as tasks:
                            tasks.start_soon(fill, journal)
                            kept_up = await numbers(quick)
                        held, _ = tracemalloc.get_traced_memory()
                    finally:
                        tracemalloc.stop()
                    assert held < ROOM
                    assert kept_up == list(range(1, EVENTS + 2))
                    assert await numbers(slow) == kept_up
