"""What every link promises, tried on each of them; at the other end somebody echoes in capitals."""

from __future__ import annotations

import io
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import NamedTuple

import anyio
import pytest

from quarterdeck.domain.errors import LinkClosed, UsageError
from quarterdeck.links import (
    CliEndpoint,
    DialLink,
    Dropped,
    Link,
    LinkAccess,
    RecordingLink,
    Redial,
    Resumed,
    StopSteps,
    SubprocessLink,
    WebSocketLink,
    memory_pair,
    serve_endpoint,
)
from support.bounds import SECONDS
from support.relay import Relay, relay_to

pytestmark = pytest.mark.process

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
    async with relayed() as (accepted, dialled, _):
        yield accepted, dialled


@asynccontextmanager
async def relayed() -> AsyncIterator[tuple[WebSocketLink, DialLink, Relay]]:
    accepted = WebSocketLink(grace=10)
    redial = Redial(base=0.02, cap=0.1)
    async with (
        serve_endpoint(CliEndpoint(lambda _: LinkAccess(accepted, TOKEN))) as port,
        relay_to(port) as relay,
        await DialLink.connect(f"ws://127.0.0.1:{relay.port}/", TOKEN, redial=redial) as dialled,
        accepted,
    ):
        yield accepted, dialled, relay


async def echo_link(link: Link) -> None:
    while True:
        item = await link.receive()
        if isinstance(item, bytes):
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
    with anyio.fail_after(SECONDS):
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
    for data in (b"half", b"\n", b"a\n\n"):
        with pytest.raises(UsageError):
            await link.send(data)
    await link.send(b"fine\n")
    assert await read(link, 5) == b"FINE\n"


async def test_to_send_nothing_does_nothing_even_when_nothing_can_be_sent(link: Link) -> None:
    await link.send(b"")
    await link.send(b"one\n")
    assert await read(link, 4) == b"ONE\n"
    await link.end_input()
    await link.send(b"")
    await link.close()
    await link.send(b"")


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


# --- links that can lose their connection ---


class Shaky(NamedTuple):
    """A link whose connection can be lost, and comes back only when it may."""

    link: Link
    drop: Callable[[], None]
    resume: Callable[[], None]


@asynccontextmanager
async def shaky_memory() -> AsyncIterator[Shaky]:
    link, peer = memory_pair()

    async def echo() -> None:
        while True:
            await peer.send((await peer.receive()).upper())

    async with echoing(echo):
        yield Shaky(link, peer.drop, peer.resume)


@asynccontextmanager
async def shaky_recording() -> AsyncIterator[Shaky]:
    async with shaky_memory() as inner, RecordingLink(inner.link, io.BytesIO()) as link:
        yield inner._replace(link=link)


@asynccontextmanager
async def shaky_websocket() -> AsyncIterator[Shaky]:
    async with relayed() as (accepted, dialled, relay), echoing(lambda: echo_link(dialled)):
        yield Shaky(accepted, *faults(relay))


@asynccontextmanager
async def shaky_dial() -> AsyncIterator[Shaky]:
    async with relayed() as (accepted, dialled, relay), echoing(lambda: echo_link(accepted)):
        yield Shaky(dialled, *faults(relay))


def faults(relay: Relay) -> tuple[Callable[[], None], Callable[[], None]]:
    def drop() -> None:
        relay.refusing = True
        relay.cut()

    def resume() -> None:
        relay.refusing = False

    return drop, resume


@pytest.fixture(
    params=[shaky_memory, shaky_recording, shaky_websocket, shaky_dial],
    ids=lambda make: make.__name__,
)
async def shaky(request: pytest.FixtureRequest) -> AsyncIterator[Shaky]:
    make: Callable[[], AbstractAsyncContextManager[Shaky]] = request.param
    with anyio.fail_after(SECONDS):
        async with make() as made:
            yield made


async def test_each_loss_is_told_once_and_then_the_return(shaky: Shaky) -> None:
    link = shaky.link
    assert link.resumable
    for number in range(3):
        line = b"line %d\n" % number
        await link.send(line)
        seen = b""
        while not seen.endswith(line.upper()):
            seen += await read(link, 1)
        shaky.drop()
        dropped = await link.receive()
        assert isinstance(dropped, Dropped)
        assert dropped.reason.endswith(".")
        with anyio.move_on_after(0.1) as quiet:
            await link.receive()
        assert quiet.cancelled_caught
        shaky.resume()
        assert isinstance(await link.receive(), Resumed)


async def test_what_is_sent_while_the_connection_is_lost_arrives_after_the_return(
    shaky: Shaky,
) -> None:
    link = shaky.link
    await link.send(b"first\n")
    assert await read(link, 6) == b"FIRST\n"
    shaky.drop()
    assert isinstance(await link.receive(), Dropped)
    await link.send(b"second\n")
    await link.send(b"third\n")
    shaky.resume()
    assert isinstance(await link.receive(), Resumed)
    seen = b""
    while not seen.endswith(b"SECOND\nTHIRD\n"):
        seen += await read(link, 1)


async def test_a_lost_connection_may_end_with_the_link(shaky: Shaky) -> None:
    shaky.drop()
    assert isinstance(await shaky.link.receive(), Dropped)
    await shaky.link.close()
    with pytest.raises(LinkClosed):
        await shaky.link.receive()
