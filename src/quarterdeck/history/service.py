"""The history of all sessions: search, export, import and retention.

Owns these operations for the fronts, and two tasks: one fills the search index from the journal,
one applies the retention rule. The fronts are above; the hub and the journal are below.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

import anyio
from anyio import CapacityLimiter, to_thread

from quarterdeck.domain.errors import (
    Conflict,
    JournalError,
    NotFound,
    QuarterdeckError,
    StaleLease,
)
from quarterdeck.history.export import Form, export_session
from quarterdeck.history.export.render import Renderer
from quarterdeck.history.imports import Importer, ImportReport
from quarterdeck.history.texts import texts_of
from quarterdeck.hub.api import HubApi, own_work
from quarterdeck.journal.base import Journal
from quarterdeck.journal.retention import plan
from quarterdeck.journal.sqlite.search import SearchIndex
from quarterdeck.protocol.commands import DeleteSession
from quarterdeck.protocol.retention import Plan, Retention
from quarterdeck.protocol.search import Hits, Search
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.runtime.duties import Duty, alone
from quarterdeck.runtime.tasks import background_tasks

log = logging.getLogger(__name__)

RETENTION_SECONDS = 3600.0
"""How often the retention rule is applied. It looks at every event."""
GATHER_SECONDS = 0.2
"""Events within this time are indexed together: indexing each one would cost as much as all else
that the hub does for it. A search waits for them."""

TRY_AGAIN_SECONDS = 5.0
"""After the index could not be written."""
PAUSE_SECONDS = 0.01
"""Between two batches when the index has much to catch up on, to leave processor time to others."""
BY_RETENTION = "retention"


class HistoryService:
    """The history in one journal."""

    def __init__(
        self,
        hub: HubApi,
        journal: Journal,
        index: SearchIndex,
        *,
        retention: Retention | None = None,
        config_dir: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.retention = retention or Retention()
        """The retention rule. May be replaced while it runs."""
        self._hub = hub
        self._journal = journal
        self._index = index
        self._clock = clock
        self._importer = Importer(journal, index.owners, config_dir=config_dir, clock=clock)
        self._import = anyio.Lock()
        self._filling = CapacityLimiter(1)
        self._asking = CapacityLimiter(4)

    @classmethod
    async def open(
        cls,
        hub: HubApi,
        journal: Journal,
        path: Path,
        *,
        retention: Retention | None = None,
        config_dir: Path | None = None,
    ) -> Self:
        """Open it with the index in this file; a missing or unsuitable index is rebuilt."""
        index = await to_thread.run_sync(
            SearchIndex, path, journal.epoch, journal.position, texts_of
        )
        return cls(hub, journal, index, retention=retention, config_dir=config_dir)

    @asynccontextmanager
    async def run(self, duty: Duty = alone) -> AsyncIterator[None]:
        """Maintain the index and apply the retention rule while the block runs."""
        try:
            async with background_tasks() as tasks:
                tasks.start_soon(self._fill)
                tasks.start_soon(duty, "retention", self._keep)
                yield
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._index.close)

    # --- searching -----------------------------------------------------------------------------

    async def search(self, wanted: Search) -> Hits:
        """A page of results. Raises `UsageError` for a query without a word."""
        return await to_thread.run_sync(
            self._index.search, wanted, self._journal.position, limiter=self._asking
        )

    async def caught_up(self, seconds: float = 60.0) -> None:
        """Wait until everything in the journal is indexed. Raises `TimeoutError`."""
        position = self._journal.position
        with anyio.fail_after(seconds):
            while self._index.position < position:  # noqa: ASYNC110 - a thread makes it true
                await anyio.sleep(0.01)

    async def _fill(self) -> None:
        while True:
            try:
                async for batch in self._journal.follow(after=self._index.position):
                    await to_thread.run_sync(self._index.add, batch, limiter=self._filling)
                    behind = self._journal.position - self._index.position > len(batch)
                    await anyio.sleep(PAUSE_SECONDS if behind else GATHER_SECONDS)
                return  # the journal was closed
            except JournalError as error:
                log.error("the search index cannot be written, and lags behind: %s", error)
                await anyio.sleep(TRY_AGAIN_SECONDS)

    # --- files ---------------------------------------------------------------------------------

    async def export(
        self, session: str, form: Form, *, by: str
    ) -> tuple[SessionView, AsyncIterator[str]]:
        """A session as a file, piece by piece. Raises `NotFound`."""
        view = await self._hub.session(session)

        async def read(after: int) -> list[Stored]:
            return await self._journal.read(session, after=after)

        return view, export_session(form, view, read, Renderer(self._hub.workers, by))

    async def import_sessions(
        self, *, directory: str | None = None, only: Sequence[str] = (), dry_run: bool = False
    ) -> ImportReport:
        """Import the CLI's sessions on this machine's disk. Raises `Conflict` while another runs.

        Raises `UsageError` for an invalid id.
        """
        if self._import.locked():
            raise Conflict("importing", "an import is already running")
        async with self._import:
            return await self._importer.run(directory=directory, only=only, dry_run=dry_run)

    # --- what goes -----------------------------------------------------------------------------

    async def plan(self, rule: Retention | None = None) -> Plan:
        """The sessions that a rule, or the one in force, would delete."""
        views: list[SessionView] = []
        after: str | None = None
        while page := await self._journal.summaries(after=after, limit=500, archived=None):
            after = page[-1].session
            views += page
        sizes = await self._journal.sizes()
        return plan(rule or self.retention, views, sizes, int(self._clock() * 1000))

    async def let_go(self, rule: Retention | None = None, *, by: str = BY_RETENTION) -> Plan:
        """Delete the sessions of a rule; returns those that were deleted."""
        planned = await self.plan(rule)
        gone = []
        for leaving in planned.leaving:
            try:
                # A session that came into use meanwhile stays: the hub refuses.
                await self._hub.submit(DeleteSession(session=leaving.session, by=by))
            except (Conflict, NotFound) as error:
                log.info("session %s stays: %s", leaving.session, error)
            else:
                gone.append(leaving)
        return Plan(leaving=tuple(gone), sessions=planned.sessions, bytes=planned.bytes)

    async def _keep(self) -> None:
        while True:
            await anyio.sleep(RETENTION_SECONDS)
            if self.retention.keeps_all:
                continue
            try:
                with own_work("retention"):
                    gone = await self.let_go()
            except StaleLease:
                raise  # another hub applies the rule
            except QuarterdeckError as error:
                log.error("cannot delete old sessions: %s", error)
            else:
                if gone.leaving:
                    log.info("%d old sessions were deleted", len(gone.leaving))
