"""Starting a run: from the hub's `Start` to a process with a spool, or a reason for refusal.

The `Runner` is above and keeps the table; `launch`, `Home` and `SubprocessLink` are below. When a
step fails, everything before it is undone.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import anyio
import anyio.to_thread
import msgspec

from quarterdeck import sandbox as boxes
from quarterdeck.claude.launch import ArgumentFiles
from quarterdeck.domain.errors import LaunchError
from quarterdeck.domain.structs import Value
from quarterdeck.links.subprocess import SubprocessLink
from quarterdeck.protocol.runner_frames import Recall, Start, Started
from quarterdeck.runner.connections import ConnectionLog
from quarterdeck.runner.exit import child
from quarterdeck.runner.home import Home, RunRecord
from quarterdeck.runner.launch import prepare
from quarterdeck.runner.limits import MIB, Limits, Times
from quarterdeck.runner.sandbox import (
    Enclosed,
    OwnPaths,
    enclose,
    make_temporary,
    remove_temporary,
)
from quarterdeck.runner.spool import Spool
from quarterdeck.runner.transcripts import MissedMessages, config_dir
from quarterdeck.worktrees.worktrees import Worktrees

HIGH_WATER = 1 * MIB
"""Unread bytes of a CLI before it has to wait; they count as memory of the run."""


def _no_op() -> None:
    pass


class Process(Value):
    """A running CLI, and what belongs to it. `release` is called when it has ended.

    Without a `link` it is the process of an earlier runner, which has ended.
    """

    started: Started
    spool: Spool
    link: SubprocessLink | None = None
    read_transcript: Callable[[Recall], MissedMessages] = MissedMessages
    release: Callable[[], None] = _no_op
    connections: ConnectionLog | None = None
    ended_at: float | None = None


async def start_process(
    start: Start,
    home: Home,
    worktrees: Worktrees,
    limits: Limits,
    times: Times,
    own: OwnPaths,
    wanted: Callable[[], bool],
) -> Process:
    """Start the CLI. Raises `LaunchError`, `UsageError`, or `OSError` for the run's own folder.

    `own` are the runner's files, for the sandbox. `wanted` is checked right before the start: a
    `Stop` may have come meanwhile.
    """
    connections = ConnectionLog()

    def connected(made: boxes.Connection) -> None:
        connections.note(made.host, made.port, allowed=made.allowed)

    with ExitStack() as undo:
        temporary = await anyio.to_thread.run_sync(make_temporary)
        undo.callback(remove_temporary, temporary)
        files = undo.enter_context(ArgumentFiles())
        ready = await prepare(start.spec, start.origin, worktrees, files, only=limits.claude)
        enclosed = await enclose(start.sandbox, ready, own, temporary, connected)
        undo.callback(enclosed.close)
        if not wanted():
            raise LaunchError("it was stopped before it started")
        spool = Spool.create(home.folder_of(start.run), limits.bounds)
        undo.callback(spool.remove)
        record = RunRecord(
            run=start.run,
            session=start.session,
            mark=ready.mark,
            directory=ready.directory,
            version=ready.version,
            config=config_dir(ready.env),
            sandbox=enclosed.report,
            temporary=temporary,
        )
        home.write_record(
            record
        )  # before there is a process, so that the next runner finds it after a kill
        link = await _start(enclosed, ready.directory, times)
        await _note_birth(home, record, link)
        undo.pop_all()

    def release() -> None:
        enclosed.close()
        files.close()
        remove_temporary(temporary)

    started = Started(
        pid=link.pid, version=ready.version, directory=ready.directory, sandbox=enclosed.report
    )
    return Process(
        link=link,
        spool=spool,
        started=started,
        read_transcript=partial(MissedMessages, record=record),
        release=release,
        connections=connections,
    )


def recover_process(record: RunRecord, home: Home, limits: Limits) -> Process:
    """What an earlier runner left of a run.

    Raises `OSError`, `ValueError` or `msgspec.DecodeError` when it cannot be read.
    """
    folder = home.folder_of(record.run)
    return Process(
        started=Started(
            pid=record.pid,
            version=record.version,
            directory=record.directory,
            sandbox=record.sandbox,
        ),
        spool=Spool.load(folder, limits.bounds),
        read_transcript=partial(MissedMessages, record=record),
        ended_at=max(path.stat().st_mtime for path in folder.iterdir()),
    )


async def _start(enclosed: Enclosed, directory: str, times: Times) -> SubprocessLink:
    return await SubprocessLink.start(
        enclosed.command,
        cwd=directory,
        env=enclosed.env,
        # The run itself waits after the end of input, because it keeps reading.
        steps=msgspec.structs.replace(times.stop, input=0.0),
        high_water=HIGH_WATER,
    )


async def _note_birth(home: Home, record: RunRecord, link: SubprocessLink) -> None:
    """Record the process; if that fails, end it."""
    with anyio.CancelScope(shield=True):  # otherwise a process might be left over
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
