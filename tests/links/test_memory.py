from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.domain.errors import LinkClosed, UsageError
from quarterdeck.links.base import Dropped, Link, Resumed
from quarterdeck.links.memory import MemoryLink, memory_pair
from support.bounds import SECONDS

DROPPED = Dropped("The far end has dropped the connection.")


async def received(link: MemoryLink) -> tuple[bytes, LinkClosed]:
    """All bytes until the end, and the end."""
    data = b""
    while True:
        try:
            item = await link.receive()
        except LinkClosed as closed:
            return data, closed
        assert isinstance(item, bytes)
        data += item


async def test_bytes_pass_both_ways_and_chunks_are_given_as_they_were_cut() -> None:
    link, peer = memory_pair()
    as_link: Link = link
    await peer.send(b"abcdefg", chunk=3)
    assert [await as_link.receive() for _ in range(3)] == [b"abc", b"def", b"g"]
    await link.send(b"one\n")
    await link.send(b"two\n")
    assert await peer.receive() == b"one\ntwo\n"


@given(data=st.binary(max_size=200), chunk=st.integers(1, 50), limit=st.integers(1, 60))
async def test_any_chunking_and_any_limit_give_the_same_bytes(
    data: bytes, chunk: int, limit: int
) -> None:
    link, peer = memory_pair(limit=limit)
    result: list[bytes] = []

    async def read() -> None:
        result.append((await received(link))[0])

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await peer.send(data, chunk=chunk)
            peer.close()
    assert result == [data]


async def test_each_side_waits_when_the_other_does_not_read() -> None:
    link, peer = memory_pair(limit=10)
    sent = 0
    with anyio.move_on_after(0.05):
        while True:
            await link.send(b"12345\n")
            sent += 1
    assert sent == 2
    with anyio.move_on_after(0.05):
        await peer.send(b"x" * 100, chunk=5)
    assert [await link.receive() for _ in range(2)] == [b"xxxxx"] * 2
    assert await peer.receive() == b"12345\n" * 2
    with anyio.fail_after(1):
        await link.send(b"goes now\n")


async def test_senders_at_once_keep_their_order() -> None:
    link, peer = memory_pair(limit=4)
    lines = [f"line {n}\n".encode() for n in range(20)]
    got = b""
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as group:
            for line in lines:
                group.start_soon(link.send, line)
            while len(got) < len(b"".join(lines)):
                got += await peer.receive()
    assert got == b"".join(lines)


async def test_what_is_sent_while_dropped_arrives_after_the_resume() -> None:
    link, peer = memory_pair()
    assert link.resumable
    await peer.send(b"before")
    peer.drop()
    await peer.send(b"lost in the gap")
    await link.send(b"kept\n")
    with anyio.move_on_after(0.05) as nothing_comes:
        await peer.receive()
    assert nothing_comes.cancelled_caught
    peer.resume("last")
    await peer.send(b"after")
    story = [await link.receive() for _ in range(4)]
    assert story == [b"before", DROPPED, Resumed("last"), b"after"]
    assert await peer.receive() == b"kept\n"


async def test_a_drop_can_lose_what_was_on_the_way() -> None:
    link, peer = memory_pair()
    await peer.send(b"unread")
    await link.send(b"unread\n")
    peer.drop()
    peer.drop(lose=True)
    peer.resume()
    await link.send(b"new\n")
    assert [await link.receive() for _ in range(2)] == [DROPPED, Resumed(None)]
    assert await peer.receive() == b"new\n"


async def test_a_far_end_that_resumes_at_once_has_dropped_before() -> None:
    link, peer = memory_pair()
    peer.resume("last")
    assert [await link.receive() for _ in range(2)] == [DROPPED, Resumed("last")]


async def test_the_end_comes_after_the_last_byte_and_says_how_it_was() -> None:
    link, peer = memory_pair(resumable=False)
    assert not link.resumable
    await peer.send(b"partial")
    peer.close("It crashed.", exit_code=1)
    data, closed = await received(link)
    assert data == b"partial"
    assert (closed.reason, closed.exit_code) == ("It crashed.", 1)
    with pytest.raises(LinkClosed, match="crashed"):
        await link.send(b"x\n")
    with pytest.raises(LinkClosed, match="crashed"):
        await peer.send(b"x")


async def test_the_far_end_sees_the_end_of_the_input_and_can_still_answer() -> None:
    link, peer = memory_pair()
    await link.send(b"last\n")
    await link.end_input()
    await link.end_input()
    assert await peer.receive() == b"last\n"
    with pytest.raises(LinkClosed, match="input has ended"):
        await peer.receive()
    with pytest.raises(LinkClosed, match="input has ended"):
        await link.send(b"more\n")
    await peer.send(b"answer")
    assert await link.receive() == b"answer"


async def test_a_close_ends_every_wait() -> None:
    link, peer = memory_pair(limit=1)
    await link.send(b"x\n")
    ended: list[str] = []

    async def waits(what: str) -> None:
        with pytest.raises(LinkClosed):
            await (link.receive() if what == "receive" else link.send(b"y\n"))
        ended.append(what)

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(waits, "receive")
            group.start_soon(waits, "send")
            await anyio.sleep(0.01)
            await link.close()
            await link.close()
    assert sorted(ended) == ["receive", "send"]
    assert await peer.receive() == b"x\n"
    with pytest.raises(LinkClosed, match="was closed"):
        await peer.receive()


async def test_only_whole_lines_can_be_sent() -> None:
    link, _ = memory_pair()
    with pytest.raises(UsageError, match="newline"):
        await link.send(b"half")
