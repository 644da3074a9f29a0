"""Starting a run: from the hub's `Start` to a process with a spool, or a reason for refusal.

The `Runner` is above and keeps the table; `launch`, `Home` and `SubprocessLink` are below. When a
step fails, everything before it is undone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Self

import anyio
import anyio.to_thread
import msgspec

from quarterdeck import sandbox as boxes
from quarterdeck.claude.launch import ArgumentFiles
from quarterdeck.domain.errors import LaunchError, LinkClosed
from quarterdeck.domain.structs import Value
from quarterdeck.links.base import Closing
from quarterdeck.links.subprocess import SubprocessLink
from quarterdeck.protocol.runner_frames import Start, Started, TranscriptQuery
from quarterdeck.protocol.sandbox import SandboxRequest
from quarterdeck.runner.connections import ConnectionLog
from quarterdeck.runner.exit import child
from quarterdeck.runner.home import Home, RunRecord
from quarterdeck.runner.launch import new_mark, prepare
from quarterdeck.runner.limits import MIB, Limits, Times
from quarterdeck.runner.sandbox import (
    LookAhead,
    OwnPaths,
    enclose,
    make_temporary,
    may_be_enclosed,
    remove_temporary,
)
from quarterdeck.runner.spool import Spool
from quarterdeck.runner.transcripts import MissedMessages
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.transcripts.layout import config_dir_of
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
    read_transcript: Callable[[TranscriptQuery], MissedMessages] = MissedMessages
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

    def note_connection(made: boxes.Connection) -> None:
        connections.note(made.host, made.port, allowed=made.allowed)

    mark = new_mark()
    async with _Launcher(start.sandbox, mark, times) as launcher:
        with ExitStack() as undo:
            temporary = await anyio.to_thread.run_sync(make_temporary)
            undo.callback(remove_temporary, temporary)
            files = undo.enter_context(ArgumentFiles())
            # The folder of a work tree is made only now.
            here = start.spec.directory if start.spec.worktree is None else None
            ahead = LookAhead(start.sandbox, here)
            async with background_tasks() as tasks:
                tasks.start_soon(ahead.look_up)
                tasks.start_soon(ahead.try_kinds)
                ready = await prepare(
                    start.spec, start.origin, worktrees, files, mark, only=limits.claude
                )
            enclosed = await enclose(start.sandbox, ready, own, temporary, note_connection, ahead)
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
                config=config_dir_of(ready.env),
                sandbox=enclosed.report,
                temporary=temporary,
                arguments=files.folder,
            )
            # Before there is a process, so that the next runner finds it after a kill.
            home.write_record(record)
            if enclosed.order is not None:
                link = await launcher.become(enclosed.order)
            else:
                command = (*ready.command, *ready.argv)
                link = await _start(command, ready.env, ready.directory, times)
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


async def _start(
    command: Sequence[str], env: Mapping[str, str], directory: str | None, times: Times
) -> SubprocessLink:
    return await SubprocessLink.start(
        command,
        cwd=directory,
        env=env,
        # The run itself waits after the end of input, because it keeps reading.
        steps=msgspec.structs.replace(times.stop, input=0.0),
        high_water=HIGH_WATER,
    )


class _Launcher(Closing):
    """A process that waits for the order to become a CLI in a sandbox. The block ends it if it was
    not used.

    Its own start takes longer than all that it does then. So it is started first, and is ready when
    the sandbox is planned. It ends by itself if this process is killed: its input ends then.
    """

    def __init__(self, request: SandboxRequest | None, mark: str, times: Times) -> None:
        self._wanted = may_be_enclosed(request)
        self._mark = mark
        self._times = times
        self._link: SubprocessLink | None = None

    async def __aenter__(self) -> Self:
        if self._wanted:
            self._link = await self._start()
        return self

    async def become(self, order: bytes) -> SubprocessLink:
        """Have it become the CLI. Raises `LaunchError` if it has ended meanwhile."""
        link = self._link = self._link or await self._start()
        try:
            await link.send(order)
        except LinkClosed as error:
            raise LaunchError(f"the sandbox could not be made: {error}") from error
        self._link = None
        return link

    async def close(self) -> None:
        """End it, unless it was used."""
        if self._link is not None:
            await self._link.close()
            self._link = None

    async def _start(self) -> SubprocessLink:
        command, env = boxes.waiting_launcher()
        return await _start(command, {**env, self._mark: "1"}, None, self._times)


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
