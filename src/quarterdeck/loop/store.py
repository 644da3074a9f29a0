"""The manifests of loops on disk: one folder for each loop, and how others reach a running loop.

    loops/ID/manifest.json   the state, replaced as a whole after each step
    loops/ID/control.json    what a person wants: pause, go on, stop
    loops/ID/audit.jsonl     what was decided about the calls of local agents, one entry a line
    loops/ID/lock            held by the process that runs the loop
    loops/ID/report.md, report.json, pull-request.md

All files are private to their user. Only the process that holds the lock writes the manifest; any
process of the user may write `control.json`.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from quarterdeck.domain.errors import Conflict, JournalError, NotFound
from quarterdeck.domain.ids import is_id
from quarterdeck.domain.structs import DECODE_ERRORS, Value
from quarterdeck.loop.state import VERSION, CallRecord, LoopState
from quarterdeck.runtime.data_dir import make_private
from quarterdeck.runtime.files import lock_file, replace_file

FOLDER = "loops"
AUDIT = "audit.jsonl"
LARGEST = 64 * 1024 * 1024
"""Bytes of a manifest."""


class ManifestError(JournalError):
    """A manifest that cannot be read or written."""


class Wanted(Value):
    """What a person wants of a running loop."""

    paused: bool = False
    stop: bool = False
    by: str = ""


class LoopStore:
    """The loops of one data folder."""

    def __init__(self, home: Path) -> None:
        self.folder = home / FOLDER

    def save(self, state: LoopState) -> None:
        """Store the state of a loop. Raises `ManifestError`."""
        try:
            make_private(self.folder)
            self._at(state.id).mkdir(mode=0o700, exist_ok=True)
            replace_file(self.path(state.id, "manifest.json"), msgspec.json.encode(state))
        except OSError as error:
            raise ManifestError(f"the manifest cannot be written: {error}") from error

    def load(self, loop: str) -> LoopState:
        """The state of a loop. Raises `NotFound`, `ManifestError`."""
        path = self.path(loop, "manifest.json")
        try:
            if path.stat().st_size > LARGEST:
                raise ManifestError(f"{path} is larger than {LARGEST} bytes")
            state = msgspec.json.decode(path.read_bytes(), type=LoopState)
        except FileNotFoundError:
            raise NotFound("loop", loop) from None
        except (*DECODE_ERRORS, OSError, ValueError) as error:
            raise ManifestError(f"{path} cannot be read: {error}") from error
        if state.version > VERSION or state.id != loop:
            raise ManifestError(f"{path} is not a manifest of this version for this loop")
        return state

    def record(self, loop: str, *entries: CallRecord) -> None:
        """Add entries to the audit of a loop; they are on disk afterwards. Raises `ManifestError`.

        A line that a full disk has cut off is ended first, so that it spoils no other.
        """
        data = b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            file = os.open(self.path(loop, AUDIT), flags, 0o600)
            try:
                size = os.fstat(file).st_size
                if size and os.pread(file, 1, size - 1) != b"\n":
                    data = b"\n" + data
                while data:
                    data = data[os.write(file, data) :]
                os.fsync(file)
            finally:
                os.close(file)
        except OSError as error:
            raise ManifestError(f"the audit of the loop cannot be written: {error}") from error

    def records(self, loop: str) -> Iterator[CallRecord]:
        """The entries of the audit of a loop, oldest first; a line that is damaged is left out."""
        with suppress(FileNotFoundError), self.path(loop, AUDIT).open("rb") as file:
            for line in file:
                with suppress(*DECODE_ERRORS):
                    yield msgspec.json.decode(line, type=CallRecord)

    def all(self) -> list[LoopState]:
        """All loops that can be read, newest first."""
        found: list[LoopState] = []
        with suppress(FileNotFoundError):
            for name in sorted((each.name for each in self.folder.iterdir()), reverse=True):
                if is_id(name):
                    with suppress(ManifestError, NotFound):
                        found.append(self.load(name))
        return found

    def find(self, given: str) -> str:
        """The id of the loop that begins so, or has exactly this name. Raises `NotFound`."""
        if is_id(given):
            return given
        states = self.all()
        for matching in (
            [state.id for state in states if given and state.id.startswith(given.lower())],
            [state.id for state in states if state.spec.name == given],
        ):
            if len(matching) == 1:
                return matching[0]
            if matching:
                raise Conflict("ambiguous", f"{given!r} may be {len(matching)} different loops")
        raise NotFound("loop", given)

    def path(self, loop: str, name: str) -> Path:
        """A file of a loop. Raises `NotFound` for what cannot be an id."""
        return self._at(loop) / name

    def _at(self, loop: str) -> Path:
        if not is_id(loop):  # it becomes a part of a path
            raise NotFound("loop", loop)
        return self.folder / loop

    # --- what people want ---

    def want(self, loop: str, wanted: Wanted) -> None:
        """Tell a loop what a person wants; the process that runs it looks every second."""
        self.load(loop)
        replace_file(self.path(loop, "control.json"), msgspec.json.encode(wanted))

    def requests(self, loop: str) -> Wanted:
        """What people want of a loop; what cannot be read wants nothing."""
        try:
            return msgspec.json.decode(self.path(loop, "control.json").read_bytes(), type=Wanted)
        except (*DECODE_ERRORS, OSError):
            return Wanted()

    # --- who runs it ---

    @contextmanager
    def lock(self, loop: str) -> Iterator[None]:
        """Hold a loop while the block runs. Raises `Conflict` if another process has it."""
        self._at(loop).mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(self.path(loop, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not lock_file(file, fcntl.LOCK_EX, seconds=0.5):
                raise Conflict("loop_runs", f"the loop {loop} is running already")
            yield
        finally:
            os.close(file)

    def runs(self, loop: str) -> bool:
        """Whether a process runs the loop now."""
        try:
            file = os.open(self.path(loop, "lock"), os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return not lock_file(file, fcntl.LOCK_SH, seconds=0)
        finally:
            os.close(file)
