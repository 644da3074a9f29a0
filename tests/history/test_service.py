"""The past of a hub: the index follows the journal, and old sessions go by the clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from msgspec import Raw

from quarterdeck.domain.errors import Conflict, JournalError
from quarterdeck.history import service as module
from quarterdeck.history.service import HistoryService
from quarterdeck.hub.hub import Hub
from quarterdeck.journal.sqlite import SqliteJournal
from quarterdeck.journal.sqlite.search import SearchIndex
from quarterdeck.protocol.events import (
    PromptQueued,
    RunEnded,
    RunStarting,
    SessionCreated,
    SessionDeleted,
)
from quarterdeck.protocol.retention import Retention
from quarterdeck.protocol.search import Search
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.stored_events import Stored
from support.bounds import SECONDS


class House:
    def __init__(self, journal: SqliteJournal, past: HistoryService) -> None:
        self.journal = journal
        self.past = past

    async def say(self, session: str, *texts: str) -> None:
        created = SessionCreated(spec=SessionSpec(directory="/w"), by="ann")
        first = [] if await self.journal.head(session) else [created]
        prompts = [
            PromptQueued(prompt=text, content=Raw(f'"{text}"'.encode()), by="ann") for text in texts
        ]
        await self.journal.append(session, [*first, *prompts])

    async def found(self, words: str) -> list[tuple[str, int]]:
        await self.past.caught_up()
        hits = await self.past.search(Search(words=words, limit=200))
        return [(hit.session, hit.seq) for hit in hits.hits]


@asynccontextmanager
async def house(folder: Path) -> AsyncIterator[House]:
    async with await SqliteJournal.open(folder / "journal.db") as journal:
        hub = Hub(journal, lambda _: None)
        past = await HistoryService.open(hub, journal, folder / "search.db", config_dir=folder)
        async with hub.run(), past.run():
            yield House(journal, past)


async def test_what_is_appended_is_soon_found_and_also_by_the_next_hub(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.say("a", "one needle")
        assert await home.found("needle") == [("a", 2)]
        await home.say("a", "another needle")
        assert await home.found("needle") == [("a", 3), ("a", 2)]
    async with house(tmp_path) as home:
        await home.say("b", "third needle")
        assert await home.found("needle") == [("b", 2), ("a", 3), ("a", 2)]


async def test_an_index_that_was_lost_is_filled_again(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.say("a", *(f"needle {number}" for number in range(1200)))
        assert len(await home.found("needle")) == 200
    (tmp_path / "search.db").unlink()
    async with house(tmp_path) as home:
        assert len(await home.found("needle")) == 200
        assert await home.found('"needle 7"') == [("a", 9)]


async def test_an_index_that_fails_is_tried_again_and_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TRY_AGAIN_SECONDS", 0.01)
    add = SearchIndex.add
    failures = 3

    def failing(index: SearchIndex, events: list[Stored]) -> None:
        nonlocal failures
        if failures:
            failures -= 1
            raise JournalError("the disk is full")
        add(index, events)

    monkeypatch.setattr(SearchIndex, "add", failing)
    async with house(tmp_path) as home:
        await home.say("a", "needle")
        assert await home.found("needle") == [("a", 2)]
    assert failures == 0


async def test_old_sessions_go_by_the_clock_and_what_is_in_use_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETENTION_SECONDS", 0.02)
    async with house(tmp_path) as home:
        for name in ("old", "runs"):
            created = SessionCreated(spec=SessionSpec(directory="/w"), by="ann")
            await home.journal.append(name, [created, RunStarting(run=f"r-{name}", machine="")])
        await home.journal.append("old", [RunEnded(run="r-old", reason="done", clean=True)])
        home.past.retention = Retention(days=1e-9)
        with anyio.fail_after(SECONDS):
            async for batch in home.journal.follow({"old": 3}):
                assert batch[0].event == SessionDeleted(by="retention")
                break
        assert [view.session for view in await home.journal.summaries()] == ["runs"]


async def test_one_import_at_a_time(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.past._import.acquire()
        with pytest.raises(Conflict, match="already running"):
            await home.past.import_sessions()
        home.past._import.release()
        assert (await home.past.import_sessions()).sessions == ()
