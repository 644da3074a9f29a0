"""One file of a spool: numbered records, appended whole or not at all.

Owns the format on disk. `Spool` is above and decides what is kept; the file system is below. It
knows the kinds and numbers of records, and never parses a line.

A record is its kind, its number, the size of its data, and the data. When `append` returns it is in
the kernel's cache, and survives the death of the runner. It is not synced: a machine that fails
takes the CLI with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from struct import Struct as Layout
from typing import NamedTuple

from quarterdeck.runtime.files import replace_file

_HEAD = Layout(">cQI")

PRIVATE = 0o600
"""The output of agents is private to their user."""


class Kind(Enum):
    """The kind of a record."""

    DURABLE = b"L"
    TRANSIENT = b"T"
    END = b"E"
    REPORT = b"R"  # a connection through the sandbox's proxy, as its frame's header
    MARK = b"M"  # no line: the last number received, and as data the last number written


class Record(NamedTuple):
    """A record. (A tuple, because there are millions.)"""

    kind: Kind
    number: int
    data: bytes

    @property
    def size(self) -> int:
        """Its size on disk; in memory it is about the same."""
        return _HEAD.size + len(self.data)


class Segment:
    """A file of records, in the order of their numbers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.last = 0
        self.size = 0
        self.transient = 0
        self._file: int | None = None

    @classmethod
    def load(cls, path: Path) -> tuple[Segment, list[Record]]:
        """Load a segment from disk; an incomplete record at its end is cut off."""
        segment = cls(path)
        records = segment.read()
        segment._count(records)
        with suppress(OSError):
            os.truncate(path, segment.size)
        return segment, records

    def append(self, records: Sequence[Record]) -> None:
        """Append all records, or none and raise `OSError`."""
        data = _encode(records)
        try:
            if self._file is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                self._file = os.open(self.path, flags, PRIVATE)
            _write(self._file, data)
        except OSError:
            self._take_back()
            raise
        self._count(records)

    def read(self) -> list[Record]:
        """All complete records."""
        data = self.path.read_bytes()
        records: list[Record] = []
        at, end = 0, len(data)
        while at + _HEAD.size <= end:
            letter, number, size = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            if letter not in _KINDS or at + size > end:
                break
            records.append(Record(_KINDS[letter], number, data[at : at + size]))
            at += size
        return records

    def rewrite(self, records: Sequence[Record]) -> None:
        """Replace the records, atomically. Raises `OSError` and changes nothing."""
        self.close()
        replace_file(self.path, _encode(records), durable=False)
        self.last = self.size = self.transient = 0
        self._count(records)

    def remove(self) -> None:
        """Delete the file."""
        self.close()
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; it is opened again for the next write."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _count(self, records: Iterable[Record]) -> None:
        for record in records:
            self.last = max(self.last, record.number)
            self.size += record.size
            if record.kind is Kind.TRANSIENT:
                self.transient += record.size

    def _take_back(self) -> None:
        """Remove an incomplete record, which would hide all after it."""
        if self._file is not None:
            with suppress(OSError):
                os.ftruncate(self._file, self.size)
        self.close()


_KINDS = {kind.value: kind for kind in Kind}


def _encode(records: Iterable[Record]) -> bytes:
    parts: list[bytes] = []
    for kind, number, data in records:
        parts += (_HEAD.pack(kind.value, number, len(data)), data)
    return b"".join(parts)


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
