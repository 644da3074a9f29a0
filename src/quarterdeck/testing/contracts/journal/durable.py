"""What outlives the program."""

from __future__ import annotations

import anyio
import anyio.lowlevel

from quarterdeck.journal.base import Snapshot
from quarterdeck.protocol.events import RunStarting
from quarterdeck.testing.contracts.journal.support import (
    Contract,
    answer_event,
    ask_event,
    created_event,
    note,
    take,
    texts,
)


class DurableContract(Contract):
    """What an engine passes whose journal outlives the program."""

    async def test_everything_is_there_when_it_is_opened_again(self) -> None:
        async with self.journal() as journal:
            epoch = journal.epoch
            stored = await journal.append("a", [created_event("deck"), ask_event("q1"), note("x")])
            await journal.append("b", [note("1")])
            last = await journal.delete("b", by="ann")
            view = await journal.summary("a")
        async with self.journal() as journal:
            assert (journal.epoch, journal.position) == (epoch, last.position)
            assert await journal.read("a") == stored
            assert await journal.summary("a") == view
            assert [card.opened.ask for card in await journal.open_asks()] == ["q1"]
            assert await journal.read("b") == [last]
            (more,) = await journal.append("a", [answer_event("q1")])
            assert (more.seq, more.position) == (4, last.position + 1)
            assert await journal.open_asks() == []
            assert texts(await take(journal.follow({"a": 2}), 2)) == ["x"]

    async def test_a_snapshot_is_there_when_it_is_opened_again(self) -> None:
        starting = RunStarting(run="r1", machine="")
        async with self.journal() as journal:
            await journal.append("a", [created_event(), starting], snapshot=b"one")
            await journal.append("a", [note("x")], snapshot=b"two")
        async with self.journal() as journal:
            assert await journal.latest_snapshot("a") == Snapshot(seq=3, data=b"two")
            await journal.append("a", [], snapshot=b"three")
            assert await journal.latest_snapshot("a") == Snapshot(seq=3, data=b"three")

    async def test_what_is_queued_when_it_is_closed_is_stored(self) -> None:
        async with self.journal() as journal, anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(journal.append, "a", [note(str(number))])
            await anyio.lowlevel.checkpoint()
            await journal.close()
        async with self.journal() as journal:
            assert await journal.head("a") == 50
