"""Starting a run: from the hub's `Start` to a process with a spool, or a reason why not.

Below the `Runner`, which keeps the table; above `launching`, `Home` and `SubprocessLink`. Whatever
fails on the way, nothing is left of it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import anyio
import anyio.to_thread
import msgspec

from quarterdeck.claude.launch import ArgumentFiles
from quarterdeck.domain.errors import LaunchError
from quarterdeck.domain.structs import Value
from quarterdeck.links.subprocess import SubprocessLink
from quarterdeck.protocol.runner_frames import Recall, Start, Started
from quarterdeck.runner.exit import child
from quarterdeck.runner.home import Home, RunRecord
from quarterdeck.runner.launch import Prepared, prepare
from quarterdeck.runner.limits import MIB, Limits, Times
from quarterdeck.runner.spool import Spool
from quarterdeck.runner.transcripts import MissedMessages, config_dir
from quarterdeck.worktrees.worktrees import Worktrees

HIGH_WATER = 1 * MIB
"""Bytes of a CLI that lie unread before it has to wait: they count to the run's memory."""


def _nothing() -> None:
    pass


class Process(Value):
    """A CLI that runs, and what belongs to it. `release` is called when it has ended.

    Without a `link` it is one that an earlier runner started, and that is gone.
    """

    started: Started
    spool: Spool
    link: SubprocessLink | None = None
    read_transcript: Callable[[Recall], MissedMessages] = MissedMessages
    release: Callable[[], None] = _nothing
    ended_at: float | None = None


async def start_process(
    start: Start,
    home: Home,
    worktrees: Worktrees,
    limits: Limits,
    times: Times,
    wanted: Callable[[], bool],
) -> Process:
    """Start the CLI. Raises `LaunchError`, `UsageError`, or `OSError` for the run's own folder.

    `wanted` is asked right before: preparing may take a while, and a `Stop` may have come.
    """
    with ExitStack() as undo:
        spill = undo.enter_context(ArgumentFiles())
        ready = await prepare(start.spec, start.origin, worktrees, spill, only=limits.claude)
        if not wanted():
            raise LaunchError("it was stopped before it had started")
        spool = Spool.create(home.folder_of(start.run), limits.bounds)
        undo.callback(spool.remove)
        record = RunRecord(
            run=start.run,
            session=start.session,
            mark=ready.mark,
            directory=ready.directory,
            version=ready.version,
            config=config_dir(ready.env),
        )
        home.write_record(record)  # before there is a process: a killed runner must be found out
        link = await _start(ready, times)
        await _note_birth(home, record, link)
        undo.pop_all()
    started = Started(pid=link.pid, version=ready.version, directory=ready.directory)
    return Process(
        link=link,
        spool=spool,
        started=started,
        read_transcript=partial(MissedMessages, record=record),
        release=spill.close,
    )


def recover_process(record: RunRecord, home: Home, limits: Limits) -> Process:
    """What is left of a run of an earlier runner.

    Raises `OSError`, `ValueError` or `msgspec.DecodeError` when that cannot be read.
    """
    folder = home.folder_of(record.run)
    return Process(
        started=Started(pid=record.pid, version=record.version, directory=record.directory),
        spool=Spool.load(folder, limits.bounds),
        read_transcript=partial(MissedMessages, record=record),
        ended_at=max(path.stat().st_mtime for path in folder.iterdir()),
    )


async def _start(ready: Prepared, times: Times) -> SubprocessLink:
    return await SubprocessLink.start(
        ready.command,
        ready.argv,
        cwd=ready.directory,
        env=ready.env,
        # The time for the end of its input is the run's to wait: it reads meanwhile.
        steps=msgspec.structs.replace(times.stop, input=0.0),
        high_water=HIGH_WATER,
    )


async def _note_birth(home: Home, record: RunRecord, link: SubprocessLink) -> None:
    """Remember the process; one that cannot be remembered is ended."""
    with anyio.CancelScope(shield=True):  # else a process might be left, for some milliseconds
        born = await anyio.to_thread.run_sync(child, link.pid)
        try:
            home.write_record(
                msgspec.structs.replace(
                    record, pid=link.pid, born=born.started if born is not None else ""
                )
            )
        except OSError:
            await link.close()
            raise
