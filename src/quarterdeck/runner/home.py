"""A runner's folder: who lives in it, and what each run left there.

Owns the files and their formats: the lock, the state that `quarterdeck status` reads, and the facts
of each run. The `Runner` stands above it; below it is the file system. It starts and ends nothing.

    runner.lock       locked while a runner lives here
    runner.json       who that is: pid, machine, hub, since when
    runner.log        what it has to say, rotated
    spool/RUN/        a run: run.json and the segments of its spool
    worktrees/        git worktrees, by repository and branch
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from quarterdeck.domain.errors import Conflict
from quarterdeck.domain.structs import Value
from quarterdeck.runtime.files import lock_file, replace_file

LOCK, STATE, LOG = "runner.lock", "runner.json", "runner.log"
_RECORD = "run.json"


class RunnerState(Value):
    """Who runs the runs here."""

    pid: int
    runner: str
    machine: str
    hub_url: str
    started: float
    version: str


class RunRecord(Value):
    """What the runner after this one must know of a run to end its processes and tell its end."""

    run: str
    session: str
    mark: str
    directory: str
    version: str | None = None
    pid: int = 0
    born: str = ""
    """The start time of the process, by `runtime.processes`: a pid alone may be another's."""
    config: str | None = None
    """The CLI's own folder, where it keeps its transcripts."""


class Home:
    """The folder of one runner, private to its user."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.spool = path / "spool"
        self.worktrees = path / "worktrees"

    @contextmanager
    def occupy(self) -> Iterator[None]:
        """Live here. Raises `Conflict` when another runner does."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.spool.mkdir(mode=0o700, exist_ok=True)
        file = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not lock_file(file, fcntl.LOCK_EX):
                raise Conflict("runner_is_there", f"another runner lives in {self.path}")
            yield
            (self.path / STATE).unlink(missing_ok=True)
        finally:
            os.close(file)

    def write_state(self, state: RunnerState) -> None:
        """Say who lives here."""
        replace_file(self.path / STATE, msgspec.json.encode(state))

    def folder_of(self, run: str) -> Path:
        """Where a run's facts and spool are."""
        return self.spool / run

    def write_record(self, record: RunRecord) -> None:
        """Remember a run, before its process is started and again when it has a number."""
        replace_file(self.folder_of(record.run) / _RECORD, msgspec.json.encode(record))

    def leftover_runs(self) -> list[RunRecord]:
        """The runs that an earlier runner left."""
        found: list[RunRecord] = []
        for path in sorted(self.spool.glob(f"*/{_RECORD}")):
            try:
                record = msgspec.json.decode(path.read_bytes(), type=RunRecord)
            except (OSError, msgspec.DecodeError):
                continue
            if record.run == path.parent.name:
                found.append(record)
        return found


def live_runner(home: Path) -> RunnerState | None:
    """The runner that lives in this folder just now, if one does."""
    try:
        file = os.open(home / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if lock_file(file, fcntl.LOCK_SH, seconds=0):  # shared: two who look do not see each other
            return None
        return msgspec.json.decode((home / STATE).read_bytes(), type=RunnerState)
    except (OSError, msgspec.DecodeError):
        return None  # it has only just moved in
    finally:
        os.close(file)
