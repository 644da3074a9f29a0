"""What every link promises, tried on each of them; at the other end somebody echoes in capitals."""

from __future__ import annotations

import io
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import anyio
import pytest

from quarterdeck.domain.errors import LinkClosed, UsageError
from quarterdeck.links import (
    CliEndpoint,
    DialLink,
    Door,
    Link,
    RecordingLink,
    StopSteps,
    SubprocessLink,
    WebSocketLink,
    memory_pair,
    serve_endpoint,
)

ECHO = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line.upper())"
TOKEN = "token"


@asynccontextmanager
async def subprocess_link() -> AsyncIterator[Link]:
    steps = StopSteps(input=1)
    async with await SubprocessLink.start([sys.executable, "-uc", ECHO], steps=steps) as link:
        yield link


@asynccontextmanager
async def memory_link() -> AsyncIterator[Link]:
    link, peer = memory_pair()

    async def echo() -> None:
        while True:
            await peer.send((await peer.receive()).upper())

    async with echoing(echo):
        yield link


@asynccontextmanager
async def recording_link() -> AsyncIterator[Link]:
    async with memory_link() as inner, RecordingLink(inner, io.BytesIO()) as link:
        yield link


@asynccontextmanager
async def websocket_link() -> AsyncIterator[Link]:
    async with two_ends() as (accepted, dialled), echoing(lambda: echo_link(dialled)):
        yield accepted


@asynccontextmanager
async def dial_link() -> AsyncIterator[Link]:
    async with two_ends() as (accepted, dialled), echoing(lambda: echo_link(accepted)):
        yield dialled


@asynccontextmanager
async def two_ends() -> AsyncIterator[tuple[WebSocketLink, DialLink]]:
    accepted = WebSocketLink(grace=1)
    async with (
        serve_endpoint(CliEndpoint(lambda _: Door(accepted, TOKEN))) as port,
        await DialLink.connect(f"ws://127.0.0.1:{port}/", TOKEN) as dialled,
        accepted,
    ):
        yield accepted, dialled


async def echo_link(link: Link) -> None:
    while True:
        item = await link.receive()
        assert isinstance(item, bytes)
        await link.send(item.upper())


@asynccontextmanager
async def echoing(echo: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Run the other end beside the block; that the link ends is its end too."""

    async def run() -> None:
        with suppress(LinkClosed):
            await echo()

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        yield
        group.cancel_scope.cancel()


LINKS = [subprocess_link, memory_link, recording_link, websocket_link, dial_link]


@pytest.fixture(params=LINKS, ids=lambda make: make.__name__)
async def link(request: pytest.FixtureRequest) -> AsyncIterator[Link]:
    make: Callable[[], AbstractAsyncContextManager[Link]] = request.param
    with anyio.fail_after(30):
        async with make() as made:
            yield made


async def read(link: Link, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        item = await link.receive()
        assert isinstance(item, bytes)
        data += item
    return bytes(data)


async def test_what_is_sent_arrives_in_order_and_whole(link: Link) -> None:
    lines = [b"%d %s\n" % (number, b"x" * (number * 997)) for number in range(100)]
    async with anyio.create_task_group() as group:
        for line in lines:
            group.start_soon(link.send, line)
        assert await read(link, len(b"".join(lines))) == b"".join(lines).upper()


async def test_a_cancelled_receive_loses_nothing(link: Link) -> None:
    sent = b"".join(b"line %d\n" % number for number in range(50))
    await link.send(sent)
    data = b""
    while len(data) < len(sent):
        with anyio.move_on_after(0.001):
            item = await link.receive()
            assert isinstance(item, bytes)
            data += item
    assert data == sent.upper()


async def test_a_cancelled_send_sends_all_or_nothing(link: Link) -> None:
    for number in range(20):
        with anyio.move_on_after(0 if number % 2 else 0.0005):
            await link.send(b"%d %s\n" % (number, b"x" * 50_000))
    await link.send(b"last\n")
    data = b""
    while not data.endswith(b"LAST\n"):
        data += await read(link, 1)
    *lines, last = data.splitlines()
    assert last == b"LAST"
    numbers = [int(line.split()[0]) for line in lines]
    assert numbers == sorted(set(numbers))
    assert {len(line.split()[1]) for line in lines} <= {50_000}


async def test_only_whole_lines_can_be_sent(link: Link) -> None:
    for data in (b"", b"half", b"\n", b"a\n\n"):
        with pytest.raises(UsageError):
            await link.send(data)
    await link.send(b"fine\n")
    assert await read(link, 5) == b"FINE\n"


async def test_after_the_end_of_the_input_nothing_more_can_be_sent(link: Link) -> None:
    await link.send(b"last\n")
    await link.end_input()
    await link.end_input()
    with pytest.raises(LinkClosed):
        await link.send(b"more\n")
    assert await read(link, 5) == b"LAST\n"


async def test_a_closed_link_gives_nothing_and_takes_nothing(link: Link) -> None:
    await link.close()
    await link.close()
    with pytest.raises(LinkClosed):
        await link.receive()
    with pytest.raises(LinkClosed):
        await link.send(b"more\n")
    await link.end_input()


async def test_a_close_ends_a_receive_that_waits(link: Link) -> None:
    ended = anyio.Event()

    async def wait() -> None:
        with pytest.raises(LinkClosed):
            await link.receive()
        ended.set()

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.sleep(0.05)
        await link.close()
        await ended.wait()


async def test_a_close_runs_to_its_end_in_a_cancelled_scope(link: Link) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await link.close()
    with pytest.raises(LinkClosed):
        await link.receive()
