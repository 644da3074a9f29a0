"""The front: follows the journal, folds it into turns, and passes their spans to the emitter.

Owns its cursor on disk: the beginning of the oldest open turn, and the end of the last exported
one. After a restart open turns are read again from their beginning, and none is exported twice;
after a crash those of the last second may be, with the same ids.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import msgspec

from quarterdeck.domain.errors import JournalError, NotFound, UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.otel.context import run_ids
from quarterdeck.fronts.otel.settings import Telemetry
from quarterdeck.fronts.otel.turns import Span, Turn, begins_turn, run_span
from quarterdeck.hub.api import HubApi
from quarterdeck.protocol.events import RunEnded, RunStarting, SessionDeleted, TurnEnded
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.runtime.duties import PLACE_SECONDS, Duty, SharedPlace, alone
from quarterdeck.runtime.files import replace_file
from quarterdeck.runtime.tasks import background_tasks

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

    from quarterdeck.fronts.otel.emitter import Emitter

log = logging.getLogger(__name__)

FILE = "otel.json"
SAVE_SECONDS = 1.0
PAUSE_SECONDS = 5.0
CLOSE_SECONDS = 5.0


class _Place(Value):
    """The cursor in a journal."""

    epoch: str
    after: int
    """Everything up to here is finished."""
    exported: int
    """No turn that ended up to here is exported again."""


class Tracing:
    """The front. `folder` is the data folder."""

    def __init__(
        self,
        hub: HubApi,
        folder: Path,
        telemetry: Telemetry,
        *,
        exporter: SpanExporter | None = None,
    ) -> None:
        """`exporter` replaces OTLP, for tests."""
        self._hub = hub
        self._file = folder / FILE
        self._telemetry = telemetry
        self._exporter = exporter
        self._turns: dict[str, Turn] = {}
        self._place = _Place(epoch=hub.epoch, after=0, exported=0)
        self._saved = 0.0

    @asynccontextmanager
    async def run(
        self, duty: Duty = alone, place: SharedPlace | None = None
    ) -> AsyncIterator[None]:
        """Export while the block runs. Raises `UsageError` if it cannot work at all.

        `place`: how far all hubs together are, where one exports for all.
        """
        emitter = await anyio.to_thread.run_sync(self._make)

        async def take_turn() -> None:
            if place is not None and (after := await place.load()) is not None:
                self._turns.clear()
                self._place = _Place(epoch=self._hub.epoch, after=after, exported=after)
            await self._keep(emitter)

        async def publish(shared: SharedPlace) -> None:
            while True:
                await anyio.sleep(PLACE_SECONDS)
                if self._place.after:
                    await shared.save(self._place.after)

        async def work() -> None:
            async with anyio.create_task_group() as both:
                if place is not None:
                    both.start_soon(publish, place)
                await take_turn()
                both.cancel_scope.cancel()

        try:
            async with background_tasks() as tasks:
                tasks.start_soon(duty, "tracing", work)
                yield
        finally:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await anyio.to_thread.run_sync(emitter.close, abandon_on_cancel=True)
            self._save()

    def _make(self) -> Emitter:
        try:
            from quarterdeck.fronts.otel.emitter import Emitter
        except ImportError as error:
            raise UsageError(
                f"telemetry: {error.name} is not installed: pip install 'quarterdeck[otel]'"
            ) from error
        self._place = self._load()
        return Emitter(self._telemetry, self._exporter)

    async def _keep(self, emitter: Emitter) -> None:
        while True:
            try:
                await self._hub.reaches(self._place.after)  # another hub may have come so far
                async for batch in self._hub.follow(after=self._place.after):
                    for stored in batch:
                        emitter.emit(await self._spans(stored))
                    self._advance(batch[-1].position)
                return
            except JournalError as error:
                log.error("telemetry: %s", error)
                self._turns.clear()
                await anyio.sleep(PAUSE_SECONDS)

    # --- turns -----------------------------------------------------------------------------------

    async def _spans(self, stored: Stored) -> list[Span]:
        event = stored.event
        turn = self._turns.get(stored.session)
        if isinstance(event, SessionDeleted):
            self._turns.pop(stored.session, None)
            return []
        if turn is None and begins_turn(event):
            turn = self._turns[stored.session] = Turn(self._place.epoch, stored)
        if not isinstance(event, TurnEnded | RunEnded):
            if turn is not None:
                turn.add(stored)
            return []
        self._turns.pop(stored.session, None)
        if stored.position <= self._place.exported:
            return []
        try:
            return await self._over(stored, turn)
        except NotFound:
            return []  # the session was deleted meanwhile
        finally:
            self._place = msgspec.structs.replace(self._place, exported=stored.position)

    async def _over(self, stored: Stored, turn: Turn | None) -> list[Span]:
        view = await self._hub.session(stored.session)
        spans: list[Span] = []
        if turn is not None:
            linked = run_ids(turn.run) if turn.run is not None else None
            spans += turn.end(stored, view, linked)
        if isinstance(stored.event, RunEnded):
            began = await self._run_began(stored, stored.event.run, view.run_began)
            spans.append(run_span(began, stored, stored.event, view, run_ids(stored.event.run)))
        return spans

    async def _run_began(self, ended: Stored, run: str, seq: int) -> int:
        """When a run began; if that is no longer known, when it ended."""
        for first in await self._hub.events(ended.session, after=max(0, seq - 1), limit=1):
            if isinstance(first.event, RunStarting) and first.event.run == run:
                return first.at
        return ended.at

    # --- how far we are --------------------------------------------------------------------------

    def _advance(self, position: int) -> None:
        after = min([position, *(turn.began - 1 for turn in self._turns.values())])
        self._place = msgspec.structs.replace(self._place, after=after)
        if time.monotonic() - self._saved >= SAVE_SECONDS:
            self._save()

    def _load(self) -> _Place:
        here = self._hub.position
        try:
            place = msgspec.json.decode(self._file.read_bytes(), type=_Place)
        except (OSError, msgspec.MsgspecError):
            place = None
        if place is None or place.epoch != self._hub.epoch or place.after > here:
            return _Place(epoch=self._hub.epoch, after=here, exported=here)
        return place

    def _save(self) -> None:
        """Write the cursor: a hundred bytes, at most once a second."""
        try:
            replace_file(self._file, msgspec.json.encode(self._place), durable=False)
        except OSError as error:
            log.error("telemetry: %s: %s", self._file, error.strerror)
        self._saved = time.monotonic()
