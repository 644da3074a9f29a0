"""What one client may have under way."""

from __future__ import annotations

import asyncio
from pathlib import Path

import anyio
import pytest

from quarterdeck.fronts.http import Role
from quarterdeck.fronts.http.request_limits import RequestLimits, UnderWay
from support.bounds import SECONDS
from support.front import front


class Reads:
    """Requests that read, each until it is told to answer or to end."""

    def __init__(self, under_way: UnderWay) -> None:
        self._under_way = under_way
        self.begun: list[str] = []
        self.answer = {name: anyio.Event() for name in "abcdefgh"}
        self.end = {name: anyio.Event() for name in "abcdefgh"}

    async def read(self, client: str, name: str) -> None:
        async with self._under_way.turn(client, reads=name != "f") as answering:
            self.begun.append(name)
            await self.answer[name].wait()
            answering()
            await self.end[name].wait()


async def test_few_requests_of_a_client_read_at_once_and_nobody_else_waits() -> None:
    under_way = UnderWay(RequestLimits(reads_at_once=2))
    reads = Reads(under_way)
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            for name in "abcd":
                tasks.start_soon(reads.read, "viewer", name)
            tasks.start_soon(reads.read, "owner", "e")
            await anyio.wait_all_tasks_blocked()
            assert reads.begun == ["a", "b", "e"]
            tasks.start_soon(reads.read, "viewer", "f")  # it changes something
            await anyio.wait_all_tasks_blocked()
            assert reads.begun.pop() == "f"
            reads.answer["b"].set()  # its answer begins, and may take its time
            await anyio.wait_all_tasks_blocked()
            assert reads.begun == ["a", "b", "e", "c"]
            reads.end["b"].set()
            await anyio.wait_all_tasks_blocked()
            assert reads.begun == ["a", "b", "e", "c"], "its turn does not end twice"
            tasks.cancel_scope.cancel()
    assert not under_way._turns
    assert not under_way._in_turn


async def test_a_request_that_is_gone_before_its_turn_takes_none() -> None:
    reads = Reads(UnderWay(RequestLimits(reads_at_once=1)))
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reads.read, "viewer", "a")
            await anyio.wait_all_tasks_blocked()
            waiting = asyncio.create_task(reads.read("viewer", "b"))
            await anyio.wait_all_tasks_blocked()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            tasks.start_soon(reads.read, "viewer", "c")
            reads.answer["a"].set()
            await anyio.wait_all_tasks_blocked()
            assert reads.begun == ["a", "c"]
            tasks.cancel_scope.cancel()


async def test_a_stream_of_events_is_no_turn(tmp_path: Path) -> None:
    limits = RequestLimits(reads_at_once=1)
    async with front(tmp_path, requests=limits) as hub, hub.client(Role.VIEWER) as viewer:
        path = f"/api/sessions/{await hub.deck.have_session()}/events"
        async with viewer.stream("GET", path, headers={"accept": "text/event-stream"}) as stream:
            assert stream.status_code == 200
            with anyio.fail_after(SECONDS):
                assert (await viewer.get("/api/whoami")).status_code == 200
                assert (await viewer.get("/api/nothing")).status_code == 404
                assert (await viewer.get("/api/whoami")).status_code == 200
