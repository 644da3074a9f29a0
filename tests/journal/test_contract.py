"""All engines against the suite that every engine passes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

pytest.register_assert_rewrite("quarterdeck.testing.contracts.journal")

from quarterdeck.journal import Journal, MemoryJournal, SqliteJournal  # noqa: E402 - after the line above
from quarterdeck.journal.postgres import PostgresJournal  # noqa: E402 - after the line above
from quarterdeck.testing.contracts.journal import (  # noqa: E402 - after the line above
    DurableJournalContract,
    JournalContract,
)


class TestMemoryJournal(JournalContract):
    @asynccontextmanager
    async def journal(self) -> AsyncIterator[Journal]:
        journal = MemoryJournal(clock=self.clock)
        try:
            yield journal
        finally:
            await journal.close()

    @asynccontextmanager
    async def together(self) -> AsyncIterator[tuple[Journal, Journal]]:
        one = MemoryJournal(clock=self.clock)
        other = one.beside()
        try:
            yield one, other
        finally:
            await one.close()
            await other.close()


class TestSqliteJournal(DurableJournalContract):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path) -> None:
        self.path = tmp_path / "journal.db"

    @asynccontextmanager
    async def journal(self) -> AsyncIterator[Journal]:
        async with await SqliteJournal.open(self.path, clock=self.clock) as journal:
            yield journal

    @asynccontextmanager
    async def together(self) -> AsyncIterator[tuple[Journal, Journal]]:
        async with (
            await SqliteJournal.open(self.path, clock=self.clock, shared=True) as one,
            await SqliteJournal.open(self.path, clock=self.clock, shared=True) as other,
        ):
            yield one, other


class TestPostgresJournal(DurableJournalContract):
    @pytest.fixture(autouse=True)
    def place(self, postgres_url: str) -> None:
        self.url = postgres_url

    @asynccontextmanager
    async def journal(self) -> AsyncIterator[Journal]:
        async with await PostgresJournal.open(self.url, clock=self.clock) as journal:
            yield journal

    @asynccontextmanager
    async def together(self) -> AsyncIterator[tuple[Journal, Journal]]:
        async with (
            await PostgresJournal.open(self.url, clock=self.clock) as one,
            await PostgresJournal.open(self.url, clock=self.clock) as other,
        ):
            yield one, other
