"""Connections that are not wanted: each is refused in a way that the server has no word about."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
import websockets

from quarterdeck.links.websocket import (
    CliEndpoint,
    LinkAccess,
    WebSocketLink,
    accept,
    serve_endpoint,
)
from support.bounds import SECONDS
from support.web_sockets import connect

TOKEN = "a-token"
PATH = "/v1/ws/one"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@asynccontextmanager
async def served(link: WebSocketLink) -> AsyncIterator[int]:
    with anyio.fail_after(SECONDS):
        async with serve_endpoint(CliEndpoint({PATH: LinkAccess(link, TOKEN)}.get)) as port:
            try:
                yield port
            finally:
                await link.close()


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING)
    return caplog


async def status(url: str, headers: dict[str, str]) -> int:
    with pytest.raises(websockets.InvalidStatus) as caught:
        await connect(url, additional_headers=headers)
    return caught.value.response.status_code


async def test_a_refusal_is_not_logged(log: pytest.LogCaptureFixture) -> None:
    link = WebSocketLink()
    async with served(link) as port:
        url = f"ws://127.0.0.1:{port}"
        assert await status(url + PATH, {}) == 401
        assert await status(url + "/elsewhere", HEADERS) == 401
        assert await status(url + PATH, {**HEADERS, "Origin": "http://evil.example"}) == 403
    assert log.records == []


async def test_who_dials_a_closed_link_is_told_or_refused_and_that_is_not_logged(
    log: pytest.LogCaptureFixture,
) -> None:
    link = WebSocketLink()
    async with served(link) as port:
        url = f"ws://127.0.0.1:{port}{PATH}"
        await link.close()
        async with connect(url, additional_headers=HEADERS) as socket:
            await socket.wait_closed()
            assert socket.close_code == 4001
        for _ in range(3):
            assert await status(url, HEADERS) == 410
    assert log.records == []


async def test_who_dials_while_the_link_is_closed_is_told_that_it_is_over(
    log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accept, "HANDOVER_SECONDS", 10)
    link = WebSocketLink()
    async with served(link) as port:
        url = f"ws://127.0.0.1:{port}{PATH}"
        async with connect(url, additional_headers=HEADERS) as old:
            await link.wait_connected()
            # Accepted, and waiting for the old one to give what it still has.
            async with connect(url, additional_headers=HEADERS) as new:
                await link.close()
                await new.wait_closed()
                assert new.close_code == 4001
            await old.wait_closed()
        assert not link.connected
    assert log.records == []


async def test_who_leaves_in_the_midst_of_a_refusal_is_not_logged(
    log: pytest.LogCaptureFixture,
) -> None:
    link = WebSocketLink()
    async with served(link) as port:
        for _ in range(20):
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                await stream.send(
                    f"GET {PATH} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
                    "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
                )
        assert await status(f"ws://127.0.0.1:{port}{PATH}", {}) == 401
    assert log.records == []
