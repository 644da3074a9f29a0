"""Rendering answers from Markdown to HTML, in a worker process and within time limits.

Owns the limits. An answer that takes longer is shown as plain text.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence

from quarterdeck.domain.errors import WorkLimit
from quarterdeck.history.export import html
from quarterdeck.hub.workers import Workers

log = logging.getLogger(__name__)

BATCH_CHARACTERS = 20_000
"""Answers that are sent together. A longer one is sent alone."""

BATCH_SECONDS = 5.0
"""For one batch. The worst text of that length takes less than a second."""

EXPORT_SECONDS = 60.0
"""For all batches of one export."""

WAIT_SECONDS = 60.0
"""For a free worker. Only this export waits for it."""
MOST_WAITING = 100
"""The most waiting exports of one person."""


class Renderer:
    """Renders the answers of one export, for one person."""

    def __init__(self, workers: Workers, person: str) -> None:
        self._workers = workers
        self._person = person
        self._left = EXPORT_SECONDS

    async def __call__(self, answers: Sequence[str]) -> list[str]:
        """Render answers to HTML, one for each."""
        made: list[str] = []
        for batch in _batches(answers):
            made += await self._render(batch)
        return made

    async def _render(self, batch: list[str]) -> list[str]:
        try:
            return await self._in_worker(batch)
        except WorkLimit as error:
            log.warning("an export shows answers as plain text: %s", error)
            return [html.plain(answer) for answer in batch]

    async def _in_worker(self, batch: list[str]) -> list[str]:
        if self._left <= 0:
            raise WorkLimit("took_too_long", f"rendering its Markdown took {EXPORT_SECONDS:g} s")
        async with self._workers.turn(
            self._person, wait_seconds=WAIT_SECONDS, most_waiting=MOST_WAITING
        ) as turn:
            start = time.monotonic()
            try:
                return await turn.call(min(BATCH_SECONDS, self._left), html.render, batch)
            finally:
                self._left -= time.monotonic() - start


def _batches(answers: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    length = 0
    for answer in answers:
        if batch and length + len(answer) > BATCH_CHARACTERS:
            yield batch
            batch, length = [], 0
        batch.append(answer)
        length += len(answer)
    if batch:
        yield batch
