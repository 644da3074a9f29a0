"""What waits for an editor: in order, bounded, and nothing durable is lost."""

from __future__ import annotations

import anyio
import pytest

from quarterdeck.fronts.acp import backlog as module
from quarterdeck.fronts.acp.backlog import Backlog
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.stream_frames import Live
from quarterdeck.protocol.views import Deltas, EventShape
from support.acp_shapes import assistant, happened, session, text
from support.bounds import SECONDS

pytestmark = pytest.mark.anyio

LIVE = Live(deltas=(Deltas(session="s1", message="m1", text="live"),))


def event(seq: int) -> EventShape:
    return happened(ev.Noted(level="info", text=str(seq)), seq)


async def taken(backlog: Backlog) -> object:
    with anyio.fail_after(SECONDS):
        return await backlog.next()


async def test_items_come_in_their_order_and_only_the_newest_view() -> None:
    backlog = Backlog(0)
    backlog.events((event(1), event(2)))
    backlog.live(LIVE)
    backlog.view(session(name="old"))
    backlog.view(session(name="new"))
    backlog.note("away")
    found = [await taken(backlog) for _ in range(5)]
    assert found == [event(1), event(2), LIVE, session(name="new"), "away"]
    assert backlog.delivered == 2


async def test_a_reader_waits_for_the_next_item() -> None:
    backlog = Backlog(0)
    found: list[object] = []

    async def read() -> None:
        found.append(await taken(backlog))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        backlog.note("there")
    assert found == ["there"]


async def test_what_does_not_fit_is_read_from_the_hub_and_comes_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_ITEMS", 3)
    backlog = Backlog(0)
    for seq in range(1, 6):
        backlog.events((event(seq),))
    backlog.live(LIVE)
    assert backlog.missed
    assert await taken(backlog) is None
    backlog.begin_reading()
    backlog.events((event(6), event(7)))  # while the reader reads 1 to 6 from the hub
    backlog.delivered = 6
    assert await taken(backlog) == event(7)


async def test_large_events_are_bounded_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    backlog = Backlog(0)
    backlog.events((assistant(text("x" * 900)),))
    assert backlog.missed


async def test_the_numbers_of_another_journal_begin_anew() -> None:
    backlog = Backlog(50)
    backlog.events((event(51),))
    backlog.events((event(1), event(2)))
    assert [await taken(backlog) for _ in range(2)] == [event(1), event(2)]
