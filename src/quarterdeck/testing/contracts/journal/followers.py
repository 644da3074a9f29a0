"""Following."""

from __future__ import annotations

import asyncio
import random

import anyio
import anyio.lowlevel
import msgspec
from msgspec import Raw, Struct

from quarterdeck.domain.errors import UsageError
from quarterdeck.journal.base import Follower, Journal
from quarterdeck.protocol.events import Said, SpecChanged
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.stored_events import RawEvents, Stored, envelope
from quarterdeck.testing.contracts.journal.support import (
    LATE,
    SECONDS,
    Contract,
    chance,
    created_event,
    error_of,
    note,
    nothing,
    read_all,
    take,
    texts,
)


class FollowContract(Contract):
    """Following."""

    async def test_a_follower_gets_what_is_there_and_then_what_comes(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [note("1"), note("2")])
            follower = journal.follow({"a": 1})
            assert texts(await take(follower, 1)) == ["2"]
            await journal.append("b", [note("of another")])
            await journal.append("a", [note("3")])
            assert texts(await take(follower, 1)) == ["3"]
            await nothing(follower)

    async def test_a_session_that_is_not_there_yet_can_be_followed(self) -> None:
        async with self.journal() as journal:
            follower = journal.follow({"a": 0})
            await nothing(follower)
            await journal.append("a", [note("1")])
            assert texts(await take(follower, 1)) == ["1"]

    async def test_all_sessions_are_followed_in_the_order_of_all_events(self) -> None:
        async with self.journal() as journal:
            for number in range(6):
                await journal.append("ab"[number % 2], [note(str(number))])
            assert texts(await take(journal.follow(after=0), 6)) == list("012345")
            assert texts(await take(journal.follow(after=4), 2)) == list("45")
            new = journal.follow()
            await nothing(new)
            await journal.append("c", [note("6")])
            assert texts(await take(new, 1)) == ["6"]

    async def test_a_number_beyond_the_last_event_cannot_be_followed(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [note("1")])

            async def follow(cursors: dict[str, int] | None, after: int | None) -> None:
                journal.follow(cursors, after=after)

            for cursors, after in (({"a": 2}, None), ({"b": 1}, None), (None, 2), (None, -1)):
                await error_of(follow(cursors, after), UsageError)

    async def test_a_cancelled_wait_loses_nothing(self) -> None:
        async with self.journal() as journal:
            follower = journal.follow({"a": 0})
            found: list[Stored] = []
            async with anyio.create_task_group() as group:

                async def write() -> None:
                    for number in range(200):
                        await journal.append("a", [note(str(number))])

                group.start_soon(write)
                patience = chance(7)
                with anyio.fail_after(SECONDS):
                    while len(found) < 200:
                        with anyio.move_on_after(patience.random() / 500):
                            found += await anext(follower)
            assert [each.seq for each in found] == list(range(1, 201))

    async def test_between_history_and_life_nothing_is_missed_or_doubled(self) -> None:
        async with self.journal() as journal:
            for seed in range(3):
                await _seam(journal, chance(seed), f"seed{seed}-")

    async def test_a_follower_that_does_not_read_holds_nothing_up_and_misses_nothing(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [note("first")])
            stalled = journal.follow({"a": 0}), journal.follow(after=0)
            for follower in stalled:
                await take(follower, 1)
            awake = journal.follow()
            for start in range(0, LATE, 1000):
                events = [note(str(number)) for number in range(start, start + 1000)]
                with anyio.fail_after(SECONDS):
                    await journal.append("a", events)
                assert len(await take(awake, 1000)) == 1000
            for follower in stalled:
                stored = await take(follower, LATE)
                assert [each.seq for each in stored] == list(range(2, LATE + 2))
                await nothing(follower)

    async def test_a_session_far_behind_is_not_kept_waiting_by_a_busy_one(self) -> None:
        async with self.journal() as journal:
            await journal.append("old", [note(str(number)) for number in range(3000)])
            await journal.append("busy", [note(str(number)) for number in range(12_000)])
            follower = journal.follow({"busy": 12_000, "old": 0})
            waiting = 3000
            with anyio.fail_after(SECONDS):
                for _ in range(50):
                    await journal.append("busy", [note("news")])
                    batch = await anext(follower)
                    waiting -= sum(each.session == "old" for each in batch)
            assert waiting == 0

    async def test_raw_events_are_the_events_as_they_are_stored_as_far_as_none_has_a_spec(
        self,
    ) -> None:
        changed = SpecChanged(spec=SessionSpec(directory="/work"), by="ann")
        line = Said(run="r", number=1, line=Raw(b'{"a": "\xc3\xa4%d"}'))
        async with self.journal() as journal:
            await journal.append("x", [note("of another")])
            await journal.append("a%d", [created_event(), line, note("%"), changed, note("4")])
            stored = await journal.read("a%d")
            assert await journal.raw_events("nobody") is None
            assert await journal.raw_events("a%d") is None
            raw = await journal.raw_events("a%d", after=1)
            assert raw is not None
            assert (raw.session, raw.last) == ("a%d", 3)
            assert raw.text.encode() == b"[%b]" % b",".join(map(_envelope, stored[1:3]))
            assert b'"line":{"a": "\xc3\xa4%d"}' in raw.text.encode()
            assert await journal.raw_events("a%d", after=3) is None
            last = await journal.raw_events("a%d", after=4)
            assert last is not None
            assert _numbers(last) == [5]
            assert await journal.raw_events("a%d", after=5) is None
            await error_of(journal.raw_events("a%d", after=-1), UsageError)

    async def test_raw_events_are_no_larger_than_a_frame_unless_the_only_event_is(self) -> None:
        small, large = note("x" * 60_000), note("y" * 600_000)
        async with self.journal() as journal:
            await journal.append("a", [*[small] * 10, large, small])
            after, counts = 0, []
            while (raw := await journal.raw_events("a", after=after)) is not None:
                counts.append(raw.last - after)
                after = raw.last
            assert counts == [4, 4, 2, 1, 1]

    async def test_raw_events_one_behind_the_other_are_the_whole_session(self) -> None:
        dice = chance(5)
        sizes = [5] * 3000 + [int(10 ** dice.uniform(0, 4.5)) for _ in range(300)] + [9] * 500
        async with self.journal() as journal:
            await journal.append("a", [note(dice.choice("xä€") * size) for size in sizes])
            parts: list[bytes] = []
            after = 0
            while (raw := await journal.raw_events("a", after=after)) is not None:
                assert len(_numbers(raw)) == raw.last - after
                assert len(raw.text) < 300_000
                parts.append(raw.text[1:-1].encode())
                after = raw.last
            stored = await read_all(journal, "a")
            assert b",".join(parts) == b",".join(map(_envelope, stored))
            assert len(parts) < 40

    async def test_whoever_passes_events_on_gets_all_of_them_once_be_they_text_or_not(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [created_event()])
            for start in range(1, LATE, 1000):
                await journal.append("a", [note(str(start))] * 1000)
            await journal.append("b", [note("x")] * 10)
            follower = journal.follow({"a": 0, "b": 0})
            seqs: dict[str, list[int]] = {"a": [], "b": []}
            texts = 0
            with anyio.fail_after(SECONDS):
                while follower.behind:
                    batch = await follower.next_text()
                    if isinstance(batch, RawEvents):
                        texts += 1
                        seqs[batch.session] += _numbers(batch)
                        assert seqs[batch.session][-1] == batch.last
                    for each in () if isinstance(batch, RawEvents) else batch:
                        seqs[each.session].append(each.seq)
                assert seqs == {"a": [*range(1, LATE + 2)], "b": [*range(1, 11)]}
                assert texts > 0
                await journal.append("b", [note("news")])
                assert isinstance(new := await follower.next_text(), list)
                assert [each.seq for each in new] == [11]
                everything = journal.follow()
                assert not everything.behind
                async with anyio.create_task_group() as group:
                    for waiting in (follower, everything):
                        group.start_soon(_end, waiting)
                    await anyio.lowlevel.checkpoint()
                    await journal.close()


async def _end(follower: Follower) -> None:
    assert await follower.next_text() == []


class _Numbered(Struct):
    seq: int


def _numbers(raw: RawEvents) -> list[int]:
    events = msgspec.json.decode(raw.text, type=list[_Numbered])
    return [each.seq for each in events]


def _envelope(stored: Stored) -> bytes:
    return envelope(stored.session, stored.seq, stored.position, stored.at, stored.json)


async def _seam(journal: Journal, dice: random.Random, prefix: str) -> None:
    """Followers that begin anywhere, while others write."""
    sessions = [prefix + name for name in "abc"]
    begun = asyncio.Semaphore(0)
    readers = 12

    async def write(session: str, own: random.Random) -> None:
        for number in range(80):
            await journal.append(session, [note(str(number))] * own.randrange(1, 4))
            if own.random() < 0.2:
                await asyncio.sleep(own.random() / 300)

    async def read(own: random.Random) -> None:
        for _ in range(own.randrange(20)):
            await asyncio.sleep(own.random() / 300)
        position = own.randrange(journal.position + 1)
        starts = {session: own.randrange(await journal.head(session) + 1) for session in sessions}
        everything = own.random() < 0.5
        follower = journal.follow(after=position) if everything else journal.follow(starts)
        begun.release()
        got: list[Stored] = []
        with anyio.fail_after(SECONDS):
            while texts(got[-len(sessions) :]).count(prefix) < len(sessions):
                got += await anext(follower)
                if own.random() < 0.1:
                    await asyncio.sleep(own.random() / 100)
        if everything:
            assert [each.position for each in got] == [*range(position + 1, journal.position + 1)]
        for session in () if everything else sessions:
            seqs = [each.seq for each in got if each.session == session]
            assert seqs == [*range(starts[session] + 1, await journal.head(session) + 1)]

    async with anyio.create_task_group() as group:
        for _ in range(readers):
            group.start_soon(read, chance(dice.random()))
        async with anyio.create_task_group() as writers:
            for session in sessions:
                writers.start_soon(write, session, chance(dice.random()))
        for _ in range(readers):
            await begun.acquire()
        for session in sessions:
            await journal.append(session, [note(prefix)])
