"""A runner's folder: its lock, its state, and the record of each run.

Owns the files and their formats. The `Runner` is above; the file system is below. It starts and
ends no process.

    runner.lock       locked while a runner uses the folder
    runner.json       its state, for `quarterdeck status`: pid, machine, hub, start time
    runner.log        its log, rotated
    spool/RUN/        a run: run.json and the segments of its spool
    worktrees/        git worktrees, by repository and branch
    starts/           what was in working folders when sessions started
    restores/         transcripts that come from other machines, until they are whole
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
from quarterdeck.protocol.sandbox import SandboxReport
from quarterdeck.runtime.files import lock_file, replace_file

LOCK, STATE, LOG = "runner.lock", "runner.json", "runner.log"
_RECORD = "run.json"


class RunnerState(Value):
    """The state of a runner, for the commands on its machine."""

    pid: int
    runner: str
    machine: str
    hub_url: str
    started: float
    version: str


class RunRecord(Value):
    """What the next runner needs to end a run's processes and to report its end."""

    run: str
    session: str
    mark: str
    directory: str
    version: str | None = None
    pid: int = 0
    born: str = ""
    """The start time of the process, from `runtime.processes`: a pid alone may be reused."""
    config: str | None = None
    """The CLI's own folder, with its transcripts."""
    sandbox: SandboxReport | None = None
    temporary: str | None = None
    """The folder for its temporary files."""
    arguments: str | None = None
    """The folder of the files that its arguments name: settings and MCP servers, with secrets."""


class Home:
    """The folder of one runner, private to its user."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.spool = path / "spool"
        self.worktrees = path / "worktrees"
        self.starts = path / "starts"
        self.restores = path / "restores"

    @contextmanager
    def occupy(self) -> Iterator[None]:
        """Lock the folder for one runner. Raises `Conflict` when another runner has it."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.spool.mkdir(mode=0o700, exist_ok=True)
        file = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not lock_file(file, fcntl.LOCK_EX):
                raise Conflict("runner_is_there", f"another runner uses {self.path}")
            yield
            (self.path / STATE).unlink(missing_ok=True)
        finally:
            os.close(file)

    def write_state(self, state: RunnerState) -> None:
        """Write the runner's state."""
        replace_file(self.path / STATE, msgspec.json.encode(state))

    def folder_of(self, run: str) -> Path:
        """The folder of a run's record and spool."""
        return self.spool / run

    def write_record(self, record: RunRecord) -> None:
        """Record a run: before its process is started, and again with its pid."""
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
    """The runner that uses this folder now, if there is one."""
    try:
        file = os.open(home / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if lock_file(file, fcntl.LOCK_SH, seconds=0):
            return None
        return msgspec.json.decode((home / STATE).read_bytes(), type=RunnerState)
    except (OSError, msgspec.DecodeError):
        return None  # it has only just started
    finally:
        os.close(file)
