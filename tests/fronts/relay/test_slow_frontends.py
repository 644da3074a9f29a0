"""Frontends that read slowly or not at all: memory is bounded, and nobody else notices."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import anyio
import msgspec
import pytest

from quarterdeck.fronts.http import Access, Listen, Role, make_app, serve
from quarterdeck.fronts.http.relay_access import RelayAccess, RelayRules, caller_of
from quarterdeck.fronts.relay.connection import TOO_SLOW, Pace
from quarterdeck.fronts.relay.endpoint import RelayEndpoint
from quarterdeck.fronts.relay.pieces import Pieces
from quarterdeck.protocol.views import Piece
from support.bounds import SECONDS
from support.frontends import frontend
from support.relay_front import Relay
from support.small_deck import SmallDeck
from support.waiting import until

pytestmark = pytest.mark.anyio

MEGABYTE = 1024 * 1024


def held_by_the_relay() -> int:
    """Bytes that the relay and its server hold: lines, queues, buffers."""
    places = ("*/fronts/relay/*", "*/uvicorn/*", "*/asyncio/*")
    filters = [tracemalloc.Filter(True, place) for place in places]
    found = tracemalloc.take_snapshot().filter_traces(filters)
    return sum(each.size for each in found.statistics("filename"))


def piece(number: int, event: str, text: str = "", *, run: str = "r", parent: str = "") -> Piece:
    line = {"type": "stream_event", "event": {"type": event, "text": text}}
    if parent:
        line["parent_tool_use_id"] = parent
    return Piece(session="s", run=run, number=number, after=0, line=msgspec.json.encode(line))


async def test_a_frontend_that_stops_holds_up_nobody_and_gets_everything_later(
    relay: Relay,
) -> None:
    session = await relay.deck.have_session()
    large = "x" * (400 * 1024)
    tracemalloc.start()
    try:
        async with (
            relay.frontend(reading=False, max_queue=1) as stopped,
            relay.frontend(f"?session={session}") as quick,
        ):
            await quick.status("claude code is connected")
            before = held_by_the_relay()
            for number in range(100):  # 40 MB, of which the stopped one reads nothing
                await relay.deck.say(session, f"{number} {large}")
                await quick.has("assistant", number + 1)
                quick.messages.clear()
                quick.lines[-1].pop("text")
            assert held_by_the_relay() - before < 8 * MEGABYTE
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stopped.read)
                await stopped.has("assistant", 100)
                tasks.cancel_scope.cancel()
    finally:
        tracemalloc.stop()
    numbers = [int(line["text"].split()[0]) for line in stopped.of("assistant")]
    assert numbers == list(range(100))


async def test_a_frontend_that_never_reads_is_disconnected(tmp_path: Path) -> None:
    deck, access = SmallDeck(), Access(tmp_path)
    endpoint = RelayEndpoint(deck, caller_of, pace=Pace(send_seconds=0.3))
    rules = RelayRules(enabled=True)
    app = make_app(deck, access, relay=RelayAccess(access, endpoint, rules))
    async with serve(app, Listen(port=0)) as url:
        token = access.make_token("ada", Role.VIEWER)
        address = f"ws{url.removeprefix('http')}/ws"
        session = await deck.have_session()
        async with frontend(address, token=token, reading=False, max_queue=1) as stuck:
            with anyio.fail_after(SECONDS):
                await until(lambda: endpoint.frontends == 1)
                await deck.say(session, *("z" * MEGABYTE for _ in range(32)))
                await until(lambda: endpoint.frontends == 0)
            await stuck.read()
            assert len(stuck.of("assistant")) < 32
            assert stuck.socket.close_code in {TOO_SLOW, 1006}  # it may be too full to be told
    await deck.workers.close()


async def test_only_so_many_frontends_at_once(relay: Relay) -> None:
    relay.endpoint._most = 2
    async with relay.frontend(), relay.frontend():
        with pytest.raises(Exception, match="429"):
            async with relay.frontend():
                pass


async def test_a_viewer_keeps_nobody_out(relay: Relay) -> None:
    relay.endpoint._most_of_one = 2
    async with relay.frontend(role=Role.VIEWER), relay.frontend(role=Role.VIEWER):
        with pytest.raises(Exception, match="429"):
            async with relay.frontend(role=Role.VIEWER):
                pass
        async with relay.frontend():
            assert relay.endpoint.frontends == 3
    with anyio.fail_after(SECONDS):
        await until(lambda: relay.endpoint.frontends == 0)
    async with relay.frontend(role=Role.VIEWER), relay.frontend(role=Role.VIEWER):
        assert relay.endpoint.frontends == 2


# --- pieces --------------------------------------------------------------------------------------


def numbers(found: list[Piece]) -> list[int]:
    return [each.number for each in found]


async def test_pieces_begin_with_their_message_and_are_taken_once() -> None:
    pieces = Pieces()
    for number, event in enumerate(
        ["content_block_delta", "message_start", "content_block_delta", "message_stop", "other"], 1
    ):
        pieces.add(piece(number, event))
    pieces.add(piece(3, "content_block_delta"))  # the hub got its batch once more
    assert pieces.sessions() == ["s"]
    assert numbers(pieces.take("s", "r", 0, None)) == [2, 3, 4]
    assert pieces.take("s", "r", 0, None) == []
    assert pieces.sessions() == []


async def test_messages_of_subagents_are_told_apart() -> None:
    pieces = Pieces()
    pieces.add(piece(1, "message_start"))
    pieces.add(piece(2, "content_block_delta", parent="t1"))
    pieces.add(piece(3, "message_start", parent="t1"))
    pieces.add(piece(4, "message_stop"))
    pieces.add(piece(5, "content_block_delta", parent="t1"))
    assert numbers(pieces.take("s", "r", 0, None)) == [1, 3, 4, 5]


async def test_too_many_pieces_are_dropped_up_to_the_next_message() -> None:
    pieces = Pieces(most_bytes=1000)
    pieces.add(piece(1, "message_start"))
    for number in range(2, 20):
        pieces.add(piece(number, "content_block_delta", "x" * 100))
    assert pieces.take("s", "r", 0, None) == []
    pieces.add(piece(20, "message_start"))
    assert numbers(pieces.take("s", "r", 0, None)) == [20]


async def test_pieces_of_the_next_run_wait_for_it_and_those_of_an_ended_one_are_forgotten() -> None:
    pieces = Pieces()
    pieces.add(piece(7, "message_start", run="old"))
    pieces.add(piece(1, "message_start", run="new"))
    assert pieces.take("s", None, 0, None) == []
    pieces.forget("s", "old")
    assert pieces.take("s", "old", 99, None) == []
    assert numbers(pieces.take("s", "new", 0, None)) == [1]


async def test_a_piece_that_is_no_piece_is_dropped() -> None:
    pieces = Pieces()
    start = b'{"type":"stream_event","event":{"type":"message_start"}'
    for line in (b"", b"{}", b'{"event":7}', b"\xff", start, start + b',"type":"status"}'):
        pieces.add(Piece(session="s", run="r", number=1, after=0, line=line))
    assert pieces.sessions() == []
