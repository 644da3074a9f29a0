"""The schedules that people made over the API: one small file, which backups contain.

What becomes of them is in `store`. The file is replaced as a whole, so that it is never half
written. Blocking; the caller lets in one change at a time.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import msgspec
from msgspec import Raw, field

from quarterdeck.domain.errors import JournalError
from quarterdeck.domain.structs import DECODE_ERRORS, Value
from quarterdeck.protocol.schedules import Schedule
from quarterdeck.runtime.files import replace_file

log = logging.getLogger(__name__)

FILE = "schedules.json"
LARGEST = 64 * 1024 * 1024


class _Contents(Value):
    schedules: dict[str, Raw] = field(default_factory=dict)
    """By name. One that this version cannot read is kept as it is."""


class Definitions:
    """The file in a data folder. Its methods raise `JournalError`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._mutex = threading.RLock()

    def write_lock(self) -> threading.RLock:
        """Held while the file is changed, by others as well."""
        return self._mutex

    def schedules(self) -> list[Schedule]:
        """All of them. One that cannot be read is left out, and logged."""
        found: list[Schedule] = []
        for name, body in self._read().items():
            try:
                found.append(msgspec.json.decode(body, type=Schedule))
            except DECODE_ERRORS as error:
                log.error("the schedule %s cannot be read: %s", name, error)
        return found

    def put(self, schedule: Schedule) -> None:
        """Store a schedule."""
        with self._mutex:
            self._write(self._read() | {schedule.name: Raw(msgspec.json.encode(schedule))})

    def remove(self, name: str) -> None:
        """Delete a schedule."""
        with self._mutex:
            contents = self._read()
            if contents.pop(name, None) is not None:
                self._write(contents)

    def _read(self) -> dict[str, Raw]:
        try:
            with self._path.open("rb") as file:
                data = file.read(LARGEST)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise JournalError(f"{self._path} cannot be read: {error.strerror}") from error
        try:
            return dict(msgspec.json.decode(data, type=_Contents).schedules)
        except DECODE_ERRORS as error:
            # Nothing is written over it: a person may be able to mend it.
            text = f"{self._path} is damaged ({error}): mend or remove it"
            raise JournalError(text, code="damaged") from error

    def _write(self, contents: dict[str, Raw]) -> None:
        try:
            replace_file(self._path, msgspec.json.encode(_Contents(schedules=contents)))
        except OSError as error:
            raise JournalError(f"{self._path} cannot be written: {error.strerror}") from error
