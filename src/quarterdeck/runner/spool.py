"""Lines of a run that the hub has not acknowledged: numbered, bounded in memory and on disk.

Owns the numbers of a run's lines, and their life. A `Run` is above; `segments` are below. It never
waits and knows no socket: it reports that it is `full`, and the run then makes the CLI wait.

Every line is written to disk as it comes, so that a killed runner loses nothing: the next one finds
the spool. The newest lines are also in memory, from which a connected hub is served. When the disk
limit is reached, transient lines are dropped, oldest first. A durable line is never dropped. When
the disk cannot be written, lines stay in memory as long as there is room.

All calls are synchronous and short: a write to the kernel's cache, a read or a rewrite of one
segment.
"""

from __future__ import annotations

import itertools
import logging
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from quarterdeck.protocol.runner_frames import Connection, Ended, ProgramAct
from quarterdeck.runner.limits import Bounds
from quarterdeck.runner.segments import Kind, Record, Segment

log = logging.getLogger("quarterdeck.runner")

_TRANSIENT = re.compile(rb'\{ ?"type" ?: ?"stream_event"')
"""Token deltas, which the complete message supersedes. The CLI always writes the type first."""

_ALONE = frozenset({Kind.END, Kind.REPORT})
"""Kinds of which each record is a frame of its own."""
_KEPT = frozenset({Kind.DURABLE, Kind.END, Kind.REPORT})
"""Kinds that are never dropped."""

_OVERHEAD = 200
"""Python's overhead per record, so that many short lines are counted correctly."""


def is_transient(line: bytes) -> bool:
    """Whether a line may be dropped when the spool is full."""
    return _TRANSIENT.match(line) is not None


class Spool:
    """The lines of one run, numbered from 1, in a folder of their own."""

    def __init__(self, folder: Path, bounds: Bounds) -> None:
        self.last = 0
        self.written = 0
        self.acknowledged = 0
        self.dropped = 0
        self.ended: Ended | None = None
        self.write_error = ""
        self._folder = folder
        self._bounds = bounds
        self._segments: list[Segment] = []
        self._serial = itertools.count(1)
        self._recent: dict[int, Record] = {}  # the newest, without a gap
        self._first_recent = 1  # (the first key of a dict with many deleted keys is slow to find)
        self._recent_size = 0
        self._unspooled: list[Record] = []  # those of them that are not on disk
        self._loaded: tuple[Segment, list[Record]] | None = None

    @classmethod
    def create(cls, folder: Path, bounds: Bounds) -> Spool:
        """An empty spool. Raises `OSError` when the folder cannot be created."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(folder, bounds)

    @classmethod
    def load(cls, folder: Path, bounds: Bounds) -> Spool:
        """The spool of an earlier runner. Raises `OSError` when it cannot be read."""
        spool = cls(folder, bounds)
        paths = sorted(folder.glob("*.log"))
        for path in paths:
            segment, records = Segment.load(path)
            spool._segments.append(segment)
            for record in records:
                spool.last = max(spool.last, record.number)
                if record.kind is Kind.MARK:
                    spool.written = int.from_bytes(record.data, "big")
                elif record.kind is Kind.END:
                    spool.ended = msgspec.json.decode(record.data, type=Ended)
        spool._first_recent = spool.last + 1
        if paths:
            spool._serial = itertools.count(int(paths[-1].stem) + 1)
        return spool

    # --- what comes in ---

    def add(self, lines: Sequence[bytes]) -> None:
        """Number these lines and store them."""
        for line in lines:
            kind = Kind.TRANSIENT if is_transient(line) else Kind.DURABLE
            self._store(Record(kind, self.last + 1, line))
        self.flush()

    def add_report(self, report: Connection | ProgramAct) -> None:
        """Store a report of the runner, or of a program, which has the next number."""
        self._store(Record(Kind.REPORT, report.number, msgspec.json.encode(report)))
        self.flush()

    def end(self, ended: Ended) -> None:
        """Store the end, with its number. Nothing may be added after it."""
        self.ended = ended
        self._store(Record(Kind.END, ended.number, msgspec.json.encode(ended)))
        self.flush()
        if self._segments:
            self._segments[-1].close()

    def note_written(self, number: int) -> None:
        """Record the last number that was written to the CLI, for the next runner."""
        self.written = number
        if not self._unspooled:
            self._append([self._mark()])

    def flush(self) -> None:
        """Write pending records to disk, and enforce both limits."""
        while self._unspooled:
            size, count = 0, 0
            for record in self._unspooled:
                size += record.size
                count += 1
                if size >= self._bounds.segment:
                    break
            if not self._append(self._unspooled[:count]):
                break
            del self._unspooled[:count]
        self._forget_recent()
        self._drop_transient()

    # --- what goes out ---

    def batch(self, after: int) -> list[Record]:
        """The next records after that number: lines without a gap, or only a report or the end.

        Empty if there are none. A first number that is not the next one means that those between
        were dropped.
        """
        if after >= self.last:
            return []
        if after + 1 < self._first_recent:
            records = self._from_disk(after + 1)
            if records and records[0].number < self._first_recent:
                return self._cut(records)
            after = self._first_recent - 1
        return self._cut(self._from_memory(after + 1))

    def acknowledge(self, upto: int) -> None:
        """The hub has acknowledged everything up to this number: delete it."""
        self.acknowledged = max(self.acknowledged, upto)
        while self._recent and self._first_recent <= upto:
            self._drop_oldest_recent()
        if self._unspooled and self._unspooled[0].number <= upto:
            self._unspooled = [each for each in self._unspooled if each.number > upto]
        while self._segments and self._segments[0].last <= upto:
            # The current file is kept while it is small: a new one per acknowledgement costs more.
            if len(self._segments) == 1 and self._segments[0].size < self._bounds.segment // 4:
                break
            self._remove(self._segments[0])

    # --- how it is ---

    @property
    def full(self) -> bool:
        """Whether the CLI has to wait: more output would need durable lines to be dropped."""
        waiting = sum(map(_in_memory, self._unspooled)) if self._unspooled else 0
        return self.size >= self._bounds.disk or waiting >= self._bounds.memory

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(segment.size for segment in self._segments)

    @property
    def held(self) -> int:
        """Bytes in memory."""
        loaded = sum(map(_in_memory, self._loaded[1])) if self._loaded else 0
        return self._recent_size + loaded

    def close(self) -> None:
        """Close the files, and keep them."""
        for segment in self._segments:
            segment.close()

    def remove(self) -> None:
        """Delete everything, including the folder."""
        self.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    # --- within ---

    def _store(self, record: Record) -> None:
        if not self._recent:
            self._first_recent = record.number
        self.last = record.number
        self._recent[record.number] = record
        self._recent_size += _in_memory(record)
        self._unspooled.append(record)

    def _append(self, records: list[Record]) -> bool:
        segment = self._segments[-1] if self._segments else None
        try:
            if segment is None or segment.size >= self._bounds.segment:
                if segment is not None:
                    segment.close()
                segment = Segment(self._folder / f"{next(self._serial):08d}.log")
                records = [self._mark(records[0].number - 1), *records]
                segment.append(records)
                self._segments.append(segment)
            else:
                segment.append(records)
        except OSError as error:
            if not self.write_error:
                log.warning("cannot write the spool %s: %s", self._folder, error)
            self.write_error = str(error)
            return False
        if self._loaded is not None and self._loaded[0] is segment:
            self._loaded = None
        self.write_error = ""
        return True

    def _mark(self, last: int | None = None) -> Record:
        """The first record of each segment, since earlier segments are deleted."""
        number = self.last if last is None else max(last, 0)
        return Record(Kind.MARK, number, self.written.to_bytes(8, "big"))

    def _forget_recent(self) -> None:
        """Drop the oldest lines from memory, as far as they are on disk."""
        first_unspooled = self._unspooled[0].number if self._unspooled else self.last + 1
        while self._recent_size > self._bounds.memory and self._first_recent < first_unspooled:
            self._drop_oldest_recent()

    def _drop_oldest_recent(self) -> None:
        self._recent_size -= _in_memory(self._recent.pop(self._first_recent))
        self._first_recent += 1

    def _drop_transient(self) -> None:
        """Drop transient lines, oldest first, until the disk limit is met."""
        while self.size >= self._bounds.disk:
            old = (each for each in self._segments[:-1] if each.transient)
            if (segment := next(old, None)) is None or not self._compact(segment):
                return

    def _compact(self, segment: Segment) -> bool:
        """Rewrite a segment without its transient lines, into the previous one if there is room."""
        try:
            remaining = [r for r in segment.read() if r.kind in _KEPT]
            index = self._segments.index(segment)
            before = self._segments[index - 1] if index else None
            lost = segment.transient
            size = sum(record.size for record in remaining)
            if before is not None and before.size + size <= self._bounds.segment:
                if remaining:
                    self._unload(before)
                    before.rewrite([*before.read(), *remaining])
                self._remove(segment)
            elif remaining:
                self._unload(segment)
                segment.rewrite(remaining)
            else:
                self._remove(segment)
        except OSError as error:
            log.warning("cannot compact the spool %s: %s", self._folder, error)
            return False
        if not self.dropped:
            log.warning("the spool %s is full: token deltas are dropped", self._folder)
        self.dropped += lost
        return True

    def _remove(self, segment: Segment) -> None:
        self._unload(segment)
        self._segments.remove(segment)
        segment.remove()

    def _unload(self, segment: Segment) -> None:
        if self._loaded is not None and self._loaded[0] is segment:
            self._loaded = None

    def _from_disk(self, number: int) -> list[Record]:
        """The rest of the first segment that has this number or a later one."""
        for segment in [each for each in self._segments if each.last >= number]:
            if found := [r for r in self._load(segment) if r.number >= number]:
                return found
        return []

    def _load(self, segment: Segment) -> list[Record]:
        if self._loaded is None or self._loaded[0] is not segment:
            try:
                records = segment.read()
            except FileNotFoundError:
                log.error("the spool %s has lost %s", self._folder, segment.path.name)
                self._remove(segment)
                return []
            self._loaded = segment, [r for r in records if r.kind is not Kind.MARK]
        return self._loaded[1]

    def _from_memory(self, number: int) -> list[Record]:
        self._loaded = None
        found: list[Record] = []
        size = 0
        while (record := self._recent.get(number)) is not None and size < self._bounds.batch:
            found.append(record)
            size += record.size
            number += 1
        return found

    def _cut(self, records: list[Record]) -> list[Record]:
        """As many records as fit into one frame: lines without a gap, a report, or the end."""
        size = 0
        for index, record in enumerate(records):
            size += record.size
            hole = index > 0 and record.number != records[index - 1].number + 1
            alone = record.kind in _ALONE or records[0].kind in _ALONE
            if index > 0 and (hole or size > self._bounds.batch or alone):
                return records[:index]
        return records


def _in_memory(record: Record) -> int:
    return len(record.data) + _OVERHEAD
