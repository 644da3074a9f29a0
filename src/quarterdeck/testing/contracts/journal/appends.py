"""Appending and reading."""

from __future__ import annotations

import anyio
from msgspec import Raw

from quarterdeck.domain.errors import JournalError, UsageError
from quarterdeck.protocol.events import (
    AnyEvent,
    PromptQueued,
    Said,
)
from quarterdeck.testing.contracts.journal.support import (
    Contract,
    created_event,
    error_of,
    note,
    read_all,
    texts,
)


class AppendContract(Contract):
    """Appending and reading."""

    async def test_events_are_numbered_from_1_without_gaps_in_each_session(self) -> None:
        async with self.journal() as journal:
            first = await journal.append("a", [note("1"), note("2")])
            other = await journal.append("b", [note("1")])
            then = await journal.append("a", [note("3")])
            assert [each.seq for each in (*first, *then)] == [1, 2, 3]
            assert [each.seq for each in other] == [1]
            assert [each.position for each in (*first, *other, *then)] == [1, 2, 3, 4]
            assert (await journal.head("a"), await journal.head("b")) == (3, 1)
            assert journal.position == 4

    async def test_what_is_read_is_what_was_appended(self) -> None:
        events: list[AnyEvent] = [
            created_event("deck"),
            Said(run="r1", number=1, line=Raw(b'{"type":"x", "n": 1.50,"t":"\xc3\xa4"}')),
            PromptQueued(prompt="p1", content=Raw(b'"do it"'), by="ann"),
        ]
        async with self.journal() as journal:
            stored = await journal.append("a", events)
            read = await journal.read("a")
            assert read == stored
            assert [each.event for each in read] == events
            assert b'{"type":"x", "n": 1.50,"t":"\xc3\xa4"}' in read[1].json
            assert all(each.at > 1_600_000_000_000 for each in read)

    async def test_the_json_of_an_event_is_always_one_line(self) -> None:
        content = Raw(b'[\r\n  {"type": "text",\n  "text": "a\\nb"}\n]')
        async with self.journal() as journal:
            await journal.append("a", [PromptQueued(prompt="p1", content=content, by="ann")])
            (stored,) = await journal.read("a")
            assert not {b"\n", b"\r"} & {stored.json[at : at + 1] for at in range(len(stored.json))}
            assert b'[{"type":"text","text":"a\\nb"}]' in stored.json

    async def test_events_that_are_appended_together_are_stored_as_if_they_came_alone(self) -> None:
        lines = [b'"a"', b'{"b":1}', b"[1,\n2]", b'"\xc3\xa4"', b'[1,\r"\\n"]', b'"\\u0000"']
        events = [
            note("x"),
            *(Said(run="r", number=at, line=Raw(line)) for at, line in enumerate(lines)),
        ]
        async with self.journal() as journal:
            for event in events:
                await journal.append("a", [event])
            for count in (2, len(events)):
                await journal.append("b", events[:count])
            alone = await journal.read("a")
            together = await journal.read("b")
            for one, other in zip([*alone[:2], *alone], together, strict=True):
                assert (one.event, one.json) == (other.event, other.json)

    async def test_an_event_that_could_not_be_read_again_is_refused_with_all_beside_it(
        self,
    ) -> None:
        broken = [Raw(b"{"), Raw(b""), Raw(b'"\xff"'), Raw(b"1 2"), Raw(b"[" * 100_000)]
        async with self.journal() as journal:
            for line in broken:
                events = [note("x"), Said(run="r", number=1, line=line)]
                await error_of(journal.append("a", events), UsageError)
            assert await journal.read("a") == []
            assert [each.seq for each in await journal.append("a", [note("y")])] == [1]

    async def test_ids_and_numbers_that_cannot_be_right_are_refused(self) -> None:
        async with self.journal() as journal:
            for session in ("", "x" * 129, "a\0b", "sess\udc80ion", "ä"):
                await error_of(journal.append(session, [note("x")]), UsageError)
            for after, limit in ((-1, 1), (2**63, 1), (0, 0), (0, -1)):
                await error_of(journal.read("a", after=after, limit=limit), UsageError)

    async def test_no_events_are_nothing(self) -> None:
        async with self.journal() as journal:
            assert await journal.append("a", []) == []
            assert await journal.head("a") == 0
            assert await journal.summary("a") is None

    async def test_history_is_read_in_pages(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [note(str(number)) for number in range(25)])
            page = await journal.read("a", after=10, limit=10)
            assert [each.seq for each in page] == list(range(11, 21))
            assert [each.seq for each in await read_all(journal, "a", 7)] == list(range(1, 26))
            assert await journal.read("a", after=25) == []
            assert await journal.read("a", after=2**63 - 1) == []
            assert await journal.read("nobody") == []

    async def test_a_page_of_large_events_is_cut_by_its_size(self) -> None:
        large = "x" * 1_500_000
        async with self.journal() as journal:
            for _ in range(8):
                await journal.append("a", [note(large)])
            page = await journal.read("a")
            assert 1 <= len(page) < 8
            assert [each.seq for each in await read_all(journal, "a")] == list(range(1, 9))

    async def test_appends_at_the_same_time_are_all_stored_whole(self) -> None:
        async with self.journal() as journal:

            async def write(session: str, writer: int) -> None:
                for turn in range(10):
                    await journal.append(session, [note(f"{writer}.{turn}.{n}") for n in range(3)])

            async with anyio.create_task_group() as group:
                for writer in range(20):
                    group.start_soon(write, "ab"[writer % 2], writer)
            for session in "ab":
                stored = await read_all(journal, session)
                assert [each.seq for each in stored] == list(range(1, 301))
                found = texts(stored)
                for at in range(0, 300, 3):
                    head = found[at].rsplit(".", 1)[0]
                    assert found[at : at + 3] == [f"{head}.{n}" for n in range(3)]

    async def test_a_closed_journal_says_so(self) -> None:
        async with self.journal() as journal:
            follower = journal.follow()
            await journal.close()
            await journal.close()
            ended = [batch async for batch in follower]
            assert ended == []
            for call in (journal.append("a", [note("x")]), journal.read("a")):
                error = await error_of(call, JournalError)
                assert error.code == "closed"
