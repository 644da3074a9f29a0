"""A client that stops reading: nobody else notices, memory is bounded, and nothing is missed."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import anyio
import anyio.lowlevel

from quarterdeck.fronts.http import Pace
from support.front import Front, front
from support.raw_client import MEGABYTE, raw_client
from support.waiting import until


def held_by_the_front() -> int:
    """Bytes that the front and its server hold: frames, queues, buffers."""
    places = ("*/fronts/http/*", "*/uvicorn/*", "*/websockets/*", "*/asyncio/*")
    filters = [tracemalloc.Filter(True, place) for place in places]
    found = tracemalloc.take_snapshot().filter_traces(filters)
    return sum(each.size for each in found.statistics("filename"))


# R1
async def test_a_reader_that_stops_holds_up_nobody_and_gets_everything_later(
    hub: Front,
) -> None:
    session = await hub.deck.have_session()
    line = "x" * (400 * 1024)
    tracemalloc.start()
    try:
        async with raw_client(hub) as slow, hub.stream() as quick:
            await slow.say(t="follow", id="1", all=True)
            await quick.follow(all=True)
            before = held_by_the_front()
            for number in range(100):  # 40 MB, of which the slow one reads nothing
                await hub.deck.say(session, f"{number} {line}")
                hub.deck.type(session, line[: 8 * 1024])
                (event,) = await quick.events(1)
                assert event["seq"] == 4 + number
                await quick.hear("live")
            assert held_by_the_front() - before < 8 * MEGABYTE
            seen: list[int] = []
            kinds: list[str] = []
            while len(seen) < 100:
                frame = await slow.hear()
                kinds.append(frame["t"])
                if frame["t"] == "events":
                    seen += [event["seq"] for event in frame["events"]]
    finally:
        tracemalloc.stop()
    assert seen == list(range(4, 104))
    assert kinds[0] == "following"
    assert set(kinds) == {"following", "events", "live"}


# R2
async def test_live_text_that_a_slow_reader_missed_comes_as_a_whole(hub: Front) -> None:
    session = await hub.deck.have_session()
    async with raw_client(hub) as slow:
        await slow.say(t="follow", id="1", sessions={session: 0})
        while (await slow.hear())["t"] != "events":
            pass
        await hub.deck.say(session, *("y" * MEGABYTE for _ in range(16)))
        pieces = [f"{number:06} " * 100 for number in range(400)]  # 280 kB
        for piece in pieces:
            hub.deck.type(session, piece)
            await anyio.lowlevel.checkpoint()
        hub.deck.type(session, "the end")
        text = ""
        while not text.endswith("the end"):
            frame = await slow.hear()
            if frame["t"] == "live":
                for delta in frame["deltas"]:
                    text = delta["text"] if frame.get("whole") else text + delta["text"]
    assert text == "".join(pieces) + "the end"


# R3
async def test_a_reader_that_never_reads_on_is_sent_away(tmp_path: Path) -> None:
    async with front(tmp_path, pace=Pace(send_seconds=0.3)) as hub:
        session = await hub.deck.have_session()
        async with raw_client(hub) as stuck:
            await stuck.say(t="follow", id="1", all=True)
            await until(lambda: hub.streams() == 1)
            await hub.deck.say(session, *("z" * MEGABYTE for _ in range(32)))
            await until(lambda: hub.streams() == 0)
            seen = 0
            try:
                while True:
                    frame = await stuck.hear()
                    seen += len(frame.get("events", ()))
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                pass
            assert seen < 32
        # What a socket takes without waiting is never too slow, also on a busy machine.
        async with hub.stream() as quick:
            await quick.follow(all=True)
            await hub.deck.say(session, "short")
            assert len(await quick.events(1)) == 1
