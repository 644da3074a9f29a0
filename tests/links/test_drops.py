"""What a WebSocket's loss looks like from its link: in which order, and with which code."""

from __future__ import annotations

import http.client
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
import pytest
from websockets.asyncio import client
from websockets.asyncio.server import ServerConnection, serve

from quarterdeck.domain.errors import LinkClosed
from quarterdeck.links.base import Dropped, Resumed
from quarterdeck.links.websocket import (
    CliEndpoint,
    DialLink,
    LinkAccess,
    Redial,
    WebSocketLink,
    accept,
    serve_endpoint,
)
from support.bounds import SECONDS
from support.waiting import until
from support.web_sockets import connect

TOKEN = "a-token"
PATH = "/v1/ws/one"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
QUICK = Redial(base=0.01, cap=0.05, budget=0.2)


@asynccontextmanager
async def served(link: WebSocketLink) -> AsyncIterator[int]:
    with anyio.fail_after(SECONDS):
        async with serve_endpoint(CliEndpoint({PATH: LinkAccess(link, TOKEN)}.get)) as port:
            try:
                yield port
            finally:
                await link.close()


def dial(port: int) -> client.connect:
    return connect(f"ws://127.0.0.1:{port}{PATH}", additional_headers=HEADERS)


# --- a CLI that dials us ---


async def test_all_that_a_cli_said_comes_before_its_drop_and_the_code_is_told() -> None:
    link = WebSocketLink()
    async with served(link) as port:
        async with dial(port) as socket:
            for number in range(50):
                await socket.send(b"line %d\n" % number)
            await socket.close(1001)
        data = b""
        while isinstance(item := await link.receive(), bytes):
            data += item
        assert data == b"".join(b"line %d\n" % number for number in range(50))
        assert item == Dropped(
            "The connection was lost: the other end is going away (close code 1001).", 1001
        )


async def test_before_the_first_connection_nothing_is_dropped() -> None:
    link = WebSocketLink()
    async with served(link) as port, dial(port) as socket:
        await socket.send(b"first\n")
        assert await link.receive() == b"first\n"


async def test_a_cli_that_is_back_before_its_loss_was_seen_is_dropped_and_resumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accept, "HANDOVER_SECONDS", 0.01)
    link = WebSocketLink()
    async with served(link) as port, dial(port) as old:
        await old.send(b"old\n")
        assert await link.receive() == b"old\n"
        async with dial(port) as new:
            dropped = await link.receive()
            assert isinstance(dropped, Dropped)
            assert dropped.close_code == 4000
            assert await link.receive() == Resumed(None)
            await old.wait_closed()
            await new.send(b"new\n")
            assert await link.receive() == b"new\n"


async def test_a_link_that_we_close_was_not_dropped() -> None:
    link = WebSocketLink()
    async with served(link) as port, dial(port) as socket:
        await link.wait_connected()
        await link.close()
        await socket.wait_closed()
        with pytest.raises(LinkClosed, match="was closed"):
            await link.receive()


async def test_a_cli_that_posts_is_heard_while_its_socket_is_gone() -> None:
    link = WebSocketLink()

    def post(port: int) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            path = PATH.replace("/ws/", "/session/") + "/events"
            connection.request("POST", path, b'{"events":[{"n":1}]}', HEADERS)
            return connection.getresponse().status
        finally:
            connection.close()

    async with served(link) as port:
        async with dial(port):
            await link.wait_connected()
        assert isinstance(await link.receive(), Dropped)
        assert await anyio.to_thread.run_sync(post, port) == 200
        assert await link.receive() == b'{"n":1}\n'
        async with dial(port):
            assert await link.receive() == Resumed(None)


# --- a WebSocket that we dial ---


@asynccontextmanager
async def farewell(code: int) -> AsyncIterator[DialLink]:
    """A link whose other end has said its last words, and closed; nobody has read them yet."""

    async def say(socket: ServerConnection) -> None:
        await socket.send("last\n")
        await socket.send("words\n")
        await socket.close(code)

    with anyio.fail_after(SECONDS):
        async with serve(say, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            link = await DialLink.connect(f"ws://127.0.0.1:{port}/", TOKEN, redial=QUICK)
            socket = link._socket
            assert socket is not None
            await until(lambda: socket.close_code is not None)
        async with link:
            yield link


@pytest.mark.parametrize("by", ["receiving", "sending"])
async def test_what_had_arrived_comes_before_the_drop_however_it_was_noticed(by: str) -> None:
    async with farewell(1012) as link:
        if by == "sending":
            await link.send(b"too late\n")
            assert not link.connected
        assert [await link.receive() for _ in range(2)] == [b"last\n", b"words\n"]
        assert await link.receive() == Dropped(
            "The connection was lost: the other end is restarting (close code 1012).", 1012
        )
        with pytest.raises(LinkClosed, match="No connection"):
            await link.receive()


@pytest.mark.parametrize("by", ["receiving", "sending"])
async def test_a_code_that_ends_the_session_is_an_end_and_no_drop(by: str) -> None:
    async with farewell(4001) as link:
        if by == "sending":
            await link.send(b"too late\n")
        assert [await link.receive() for _ in range(2)] == [b"last\n", b"words\n"]
        with pytest.raises(LinkClosed, match="session is over") as closed:
            await link.receive()
        assert closed.value.close_code == 4001
