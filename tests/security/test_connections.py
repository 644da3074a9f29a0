"""Connections that say little, or too much: nobody else notices them (M4, M5)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream
from websockets.exceptions import ConnectionClosed

from quarterdeck.fronts.http import Role
from quarterdeck.fronts.http.request_limits import RequestLimits
from quarterdeck.runtime.connection_limits import ConnectionLimits
from support.bounds import SECONDS
from support.front import Front, Talk, front
from support.web_sockets import connect

KILOBYTE = 1024


@asynccontextmanager
async def bare(hub: Front, address: str | None = None) -> AsyncIterator[SocketStream]:
    name, _, port = hub.host.partition(":")
    async with await anyio.connect_tcp(name, int(port), local_host=address) as stream:
        yield stream


async def is_closed(stream: SocketStream) -> bool:
    """Whether the other end has closed; what it said before is not looked at."""
    try:
        with anyio.fail_after(SECONDS):
            while True:
                await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return True


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: ", b"\r\n"])
async def test_m4_headers_that_never_end_are_not_waited_for(tmp_path: Path, said: bytes) -> None:
    limits = ConnectionLimits(header_seconds=0.2)
    async with front(tmp_path, connections=limits) as hub, bare(hub) as silent:
        if said:
            await silent.send(said)
        assert await is_closed(silent)


async def test_m4_a_second_request_has_the_same_limit(tmp_path: Path) -> None:
    limits = ConnectionLimits(header_seconds=0.2)
    async with front(tmp_path, connections=limits) as hub, bare(hub) as slow:
        await slow.send(f"GET /healthz HTTP/1.1\r\nHost: {hub.host}\r\n\r\n".encode())
        assert (await slow.receive()).startswith(b"HTTP/1.1 200")
        await slow.send(b"GET /healthz HTTP/1.1\r\n")
        assert await is_closed(slow)


@pytest.mark.parametrize("asks_first", [False, True], ids=["silent", "idle"])
async def test_m4_many_connections_without_a_request_keep_nobody_out(
    tmp_path: Path, *, asks_first: bool
) -> None:
    limits = ConnectionLimits(connections=20)
    async with front(tmp_path, connections=limits) as hub, AsyncExitStack() as stack:
        opened: list[SocketStream] = []
        for _ in range(60):
            opened.append(await stack.enter_async_context(bare(hub)))
            if asks_first:
                await opened[-1].send(f"GET /healthz HTTP/1.1\r\nHost: {hub.host}\r\n\r\n".encode())
                await opened[-1].receive()
        async with hub.client() as owner:
            assert (await owner.get("/api/whoami")).json()["role"] == "owner"
        assert await is_closed(opened[0])


async def test_m4_many_connections_of_one_address_close_none_of_another(tmp_path: Path) -> None:
    limits = ConnectionLimits(connections=20)
    question = "GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n"
    async with front(tmp_path, connections=limits) as hub, AsyncExitStack() as stack:
        quiet = await stack.enter_async_context(bare(hub, "127.0.0.2"))
        for _ in range(2):
            await quiet.send(question.format(hub.host).encode())
            assert (await quiet.receive()).startswith(b"HTTP/1.1 200")
            crowd = [await stack.enter_async_context(bare(hub)) for _ in range(60)]
            assert await is_closed(crowd[0])


async def test_m4_connections_that_work_are_not_closed_for_a_new_one(tmp_path: Path) -> None:
    limits = ConnectionLimits(connections=8)
    async with front(tmp_path, connections=limits) as hub, AsyncExitStack() as stack:
        talks = [await stack.enter_async_context(hub.stream()) for _ in range(8)]
        async with bare(hub) as newest:
            assert await is_closed(newest)
        for talk in talks:
            assert (await talk.follow(all=True))["t"] == "following"


async def test_m5_a_client_has_a_limited_number_of_streams(tmp_path: Path) -> None:
    async with (
        front(tmp_path, requests=RequestLimits(at_once=5)) as hub,
        AsyncExitStack() as stack,
    ):
        token = hub.access.make_token("the viewer", Role.VIEWER)
        headers = {"authorization": f"Bearer {token}"}
        url = f"ws://{hub.host}/api/stream"
        for _ in range(5):
            await stack.enter_async_context(connect(url, additional_headers=headers))
        async with hub.client(role=None, **headers) as viewer:
            refused = await viewer.get("/api/sessions")
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
        async with hub.client() as owner:
            assert (await owner.get("/api/sessions")).status_code == 200


def post(hub: Front, token: str, body: bytes) -> bytes:
    """A request whose body is longer than what is sent of it."""
    return (
        f"POST /api/sessions HTTP/1.1\r\nHost: {hub.host}\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"
    ).encode() + body


async def test_m5_a_body_that_never_ends_is_refused(tmp_path: Path) -> None:
    limits = RequestLimits(body_seconds=0.2)
    async with front(tmp_path, requests=limits) as hub, bare(hub) as slow:
        token = hub.access.make_token("the owner", Role.OWNER)
        await slow.send(post(hub, token, b'{"prompt":'))
        with anyio.fail_after(SECONDS):
            answer = await slow.receive()
        assert answer.startswith(b"HTTP/1.1 408 ")


async def test_m5_unfinished_bodies_of_a_client_are_bounded_together(tmp_path: Path) -> None:
    limits = RequestLimits(body_bytes=100 * KILOBYTE)
    async with front(tmp_path, requests=limits) as hub, bare(hub) as first, bare(hub) as second:
        token = hub.access.make_token("the owner", Role.OWNER)
        answers: list[bytes] = []
        async with anyio.create_task_group() as tasks:

            async def say(stream: SocketStream) -> None:
                await stream.send(post(hub, token, b"[" + b" " * (60 * KILOBYTE)))
                with anyio.fail_after(SECONDS):
                    answers.append(await stream.receive())
                tasks.cancel_scope.cancel()

            tasks.start_soon(say, first)
            tasks.start_soon(say, second)
        assert [answer.split(b" ")[1] for answer in answers] == [b"429"]


async def closing_code(talk: Talk, message: list[str]) -> int | None:
    """Send a message in pieces; gives the code that the connection is closed with."""
    with suppress(ConnectionClosed):
        await talk.socket.send(message)
    return await talk.closed()


@pytest.mark.parametrize("pieces", [1, 8])
async def test_m5_a_message_of_a_viewer_is_bounded_from_its_first_piece_on(
    tmp_path: Path, pieces: int
) -> None:
    limits = ConnectionLimits(small_paths=("/api/",), small_message=64 * KILOBYTE)
    async with front(tmp_path, connections=limits) as hub, hub.stream(Role.VIEWER) as talk:
        message = ["x" * (80 * KILOBYTE // pieces)] * pieces
        assert await closing_code(talk, message) == 1009


async def test_m5_unfinished_messages_are_bounded_together(tmp_path: Path) -> None:
    limits = ConnectionLimits(small_paths=("/api/",), pending_bytes=100 * KILOBYTE)
    async with front(tmp_path, connections=limits) as hub, AsyncExitStack() as stack:
        talks = [await stack.enter_async_context(hub.stream(Role.VIEWER)) for _ in range(3)]

        async def unfinished(index: int) -> AsyncIterator[str]:
            yield "x" * (60 * KILOBYTE)
            await talks[index].socket.wait_closed()
            yield ""

        codes: set[int | None] = set()

        async def say(index: int) -> None:
            with pytest.raises(ConnectionClosed):
                await talks[index].socket.send(unfinished(index))
            codes.add(talks[index].socket.close_code)
            for talk in talks:
                await talk.socket.close()

        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as tasks:
                for index in range(3):
                    tasks.start_soon(say, index)
        assert 1009 in codes
        async with hub.stream(Role.VIEWER) as talk:
            assert (await talk.follow(all=True))["t"] == "following"


async def test_m5_a_message_in_countless_pieces_is_refused(tmp_path: Path) -> None:
    async with front(tmp_path) as hub, hub.stream(Role.VIEWER) as talk:
        assert await closing_code(talk, ["x", *[""] * 3000]) == 1009
