"""The state that is stored beside the events."""

from __future__ import annotations

from quarterdeck.domain.errors import JournalError
from quarterdeck.journal.base import Snapshot
from quarterdeck.protocol.events import RunEnded, RunStarting
from quarterdeck.testing.contracts.journal.support import Contract, created_event, error_of, note

STARTING = RunStarting(run="r1", machine="far")
ENDED = RunEnded(run="r1", reason="done")


class SnapshotContract(Contract):
    """The state that is stored beside the events."""

    async def test_a_snapshot_is_the_state_after_the_events_that_it_came_with(self) -> None:
        async with self.journal() as journal:
            assert await journal.latest_snapshot("a") is None
            await journal.append("a", [created_event(), STARTING], snapshot=b"one")
            assert await journal.latest_snapshot("a") == Snapshot(seq=2, data=b"one")
            await journal.append("a", [note("x")])
            assert await journal.latest_snapshot("a") == Snapshot(seq=2, data=b"one")
            await journal.append("a", [note("y"), note("z")], snapshot=b"two")
            assert await journal.latest_snapshot("a") == Snapshot(seq=5, data=b"two")
            assert await journal.latest_snapshot("b") is None
            assert [each.seq for each in await journal.read("a")] == [1, 2, 3, 4, 5]

    async def test_a_snapshot_without_events_is_the_state_after_the_last_one(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [created_event(), STARTING])
            assert await journal.append("a", [], snapshot=b"state") == []
            assert await journal.latest_snapshot("a") == Snapshot(seq=2, data=b"state")
            assert (await journal.head("a"), journal.position) == (2, 2)

    async def test_a_snapshot_ends_with_its_run(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [created_event(), STARTING], snapshot=b"state")
            await journal.append("a", [note("x"), ENDED])
            assert await journal.latest_snapshot("a") is None
            await journal.append("a", [note("after it")], snapshot=b"of no run")
            await journal.append("a", [], snapshot=b"of no run")
            assert await journal.latest_snapshot("a") is None
            await journal.append("a", [RunStarting(run="r2", machine="")], snapshot=b"another")
            assert await journal.latest_snapshot("a") == Snapshot(seq=6, data=b"another")

    async def test_a_snapshot_is_deleted_with_its_session(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [created_event(), STARTING], snapshot=b"state")
            await journal.append("b", [created_event(), STARTING], snapshot=b"other")
            await journal.delete("a", by="ann")
            assert await journal.latest_snapshot("a") is None
            assert await journal.latest_snapshot("b") == Snapshot(seq=2, data=b"other")

    async def test_a_session_that_does_not_exist_has_no_snapshot(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [], snapshot=b"state")
            assert await journal.latest_snapshot("a") is None
        error = await error_of(journal.latest_snapshot("a"), JournalError)
        assert error.code == "closed"
