"""The server's end of a WebSocket, with an app that does not take its messages."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import tomllib
from importlib.metadata import version
from pathlib import Path

import anyio
import pytest

from quarterdeck.links.websocket import serve_endpoint
from quarterdeck.runtime.asgi import Receive, Scope, Send
from quarterdeck.runtime.connection_limits import ConnectionLimits
from quarterdeck.runtime.off_loop import LARGE
from quarterdeck.runtime.web_server import (
    MAX_QUEUED_MESSAGES,
    PatientProtocol,
    bind,
    run_server,
    server_config,
)
from support.bounds import SECONDS
from support.waiting import until
from support.web_sockets import connect

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
MESSAGES = 400
SIZE = 60_000
"""Together far more than the kernel keeps for a socket that nobody reads."""


class Sleeper:
    """An app that takes nothing until it is woken."""

    def __init__(self) -> None:
        self.awake = asyncio.Event()
        self.protocol: PatientProtocol | None = None
        self.waiting = 0
        self.received: list[int] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection."""
        del scope
        protocol = getattr(receive, "__self__", None)
        assert isinstance(protocol, PatientProtocol)
        self.protocol = protocol
        await receive()
        await send({"type": "websocket.accept"})
        await self.awake.wait()
        self.waiting = protocol.queue.qsize()
        while (message := await receive())["type"] == "websocket.receive":
            match message["bytes"]:
                case bytes(data):
                    self.received.append(int(data.split(b" ")[0]))
                case other:
                    raise AssertionError(other)

    @property
    def stopped(self) -> bool:
        """Whether its socket is not read just now."""
        return self.protocol is not None and not self.protocol.transport.is_reading()


async def test_messages_that_nobody_takes_are_left_with_their_sender_and_come_in_order() -> None:
    app = Sleeper()
    sent = 0
    with anyio.fail_after(SECONDS):
        async with serve_endpoint(app) as port, connect(f"ws://127.0.0.1:{port}/") as socket:

            async def send() -> None:
                nonlocal sent
                for number in range(MESSAGES):
                    await socket.send(f"{number} ".encode() + b"x" * SIZE)
                    sent = number + 1
                await socket.close()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send)
                await until(lambda: app.stopped)
                assert sent < MESSAGES
                app.awake.set()
    # One more read brings what fits a buffer, and all that was in it is kept.
    assert 0 < app.waiting <= MAX_QUEUED_MESSAGES + 1 + 256 * 1024 // SIZE
    assert app.received == list(range(MESSAGES))


async def test_a_large_message_stops_the_reading_at_once() -> None:
    app = Sleeper()
    with anyio.fail_after(SECONDS):
        async with serve_endpoint(app) as port, connect(f"ws://127.0.0.1:{port}/") as socket:
            for number in range(3):
                await socket.send(f"{number} ".encode() + b"x" * 300_000)
            await until(lambda: app.stopped)
            app.awake.set()
            await socket.close()
    assert app.waiting == 1
    assert app.received == [0, 1, 2]


@pytest.mark.parametrize("message", ["text", "bytes"])
async def test_a_large_message_is_sent_in_fragments_where_the_other_end_bears_that(
    message: str,
) -> None:
    text = "aé" * LARGE
    data: str | bytes = text if message == "text" else text.encode()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        for each in (data, data[:10], data):
            await send({"type": "websocket.send", message: each})
        await receive()

    limits = ConnectionLimits(fragmented_paths=("/known",))
    with anyio.fail_after(SECONDS):
        config = server_config(app, pong_seconds=SECONDS, limits=limits)
        listener = bind("127.0.0.1", 0)
        port = listener.getsockname()[1]
        async with run_server(config, listener):
            for path, whole in (("/known", False), ("/cli", True)):
                url = f"ws://127.0.0.1:{port}{path}"
                async with connect(url, max_size=None) as socket:
                    parts = [part async for part in socket.recv_streaming()]
                    assert (len(parts) == 1) is whole
                    assert type(data)().join(parts) == data  # type: ignore[arg-type]
                    assert await socket.recv() == data[:10]
                    assert await socket.recv() == data


UVICORN_DIGEST = "83ced8503b49361ebb6dd66b105ed80300227304c42f1d95b74a15515ef62903"
"""Of the methods of uvicorn's class that `PatientProtocol` relies on, as they were tested."""


def test_uvicorn_is_the_version_whose_internal_class_is_overridden() -> None:
    base = PatientProtocol.__mro__[1]
    source = "".join(
        inspect.getsource(getattr(base, name)) for name in ("send_receive_event_to_app", "receive")
    )
    assert hashlib.sha256(source.encode()).hexdigest() == UVICORN_DIGEST, (
        "uvicorn's WebSocketsSansIOProtocol has changed: check that PatientProtocol still pauses"
        " reading as it should, then change the digest here and the bound in pyproject.toml"
    )
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    (bound,) = [each for each in project["dependencies"] if each.startswith("uvicorn")]
    minor = int(version("uvicorn").split(".")[1])
    assert bound == f"uvicorn>=0.{minor},<0.{minor + 1}"
