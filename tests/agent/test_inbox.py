"""Inboxes: nothing is lost, memory is bounded, and nobody waits for ever."""

from __future__ import annotations

import anyio
import pytest

from quarterdeck.agent.inbox import CROWDED, EASED, Inbox
from quarterdeck.domain.errors import LinkClosed
from quarterdeck.wire.base import Message
from quarterdeck.wire.codec import from_cli
from support import lines
from support.bounds import SECONDS

pytestmark = pytest.mark.anyio

DELTA = from_cli(lines.delta("x", "d").rstrip())
WHOLE = from_cli(lines.assistant("x", "a").rstrip())


async def drain(inbox: Inbox) -> list[Message]:
    with anyio.fail_after(SECONDS):
        return [message async for message in inbox]


async def test_messages_come_out_in_order_and_then_the_end() -> None:
    inbox = Inbox()
    inbox.put([WHOLE, DELTA])
    inbox.end()
    inbox.put([WHOLE])
    assert await drain(inbox) == [WHOLE, DELTA]


async def test_what_was_there_is_read_before_the_error() -> None:
    inbox = Inbox()
    inbox.put([WHOLE])
    inbox.end(LinkClosed("gone"))
    assert await anext(inbox) is WHOLE
    with pytest.raises(LinkClosed, match="gone"):
        await anext(inbox)


async def test_a_reader_who_waits_is_woken() -> None:
    inbox = Inbox()
    got: list[Message] = []
    async with anyio.create_task_group() as tasks:

        async def read() -> None:
            got.extend([message async for message in inbox])

        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        inbox.put([WHOLE])
        await anyio.wait_all_tasks_blocked()
        assert got == []  # it goes on until the end
        inbox.end()
    assert got == [WHOLE]


async def test_what_is_held_is_not_read_until_it_is_released() -> None:
    inbox = Inbox()
    inbox.hold()
    inbox.put([DELTA])
    inbox.discard()
    inbox.put([WHOLE])
    with anyio.move_on_after(0.01) as waited:
        await anext(inbox)
    assert waited.cancelled_caught
    inbox.release()
    assert await anext(inbox) is WHOLE
    inbox.put([DELTA])
    inbox.discard()  # nothing is held any more
    assert len(inbox) == 1


async def test_only_a_reader_who_reads_slows_the_link_down() -> None:
    inbox = Inbox()
    inbox.put([WHOLE] * (CROWDED + 2))
    assert not inbox.crowded
    await anext(inbox)
    assert inbox.crowded


async def test_the_link_waits_until_the_reader_has_caught_up() -> None:
    inbox = Inbox()
    inbox.put([WHOLE] * (CROWDED + 2))
    await anext(inbox)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(inbox.ease, 5.0)
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(SECONDS):
            while len(inbox) > EASED:
                await anext(inbox)
    assert inbox.dropped_deltas == 0


async def test_a_reader_who_stands_still_loses_deltas_and_nothing_else() -> None:
    inbox = Inbox()
    inbox.put([WHOLE] + [DELTA] * (CROWDED + 2) + [WHOLE])
    await anext(inbox)
    with anyio.fail_after(SECONDS):
        await inbox.ease(0.01)
    assert inbox.dropped_deltas == CROWDED + 2
    assert len(inbox) == 1


async def test_a_reader_who_never_begins_cannot_fill_the_memory_with_deltas() -> None:
    inbox = Inbox()
    for _ in range(10):
        inbox.put([DELTA] * CROWDED)
    assert len(inbox) <= 2 * CROWDED
    assert inbox.dropped_deltas >= 8 * CROWDED
