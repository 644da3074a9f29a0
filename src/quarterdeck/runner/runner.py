"""The runner: one process per machine, which owns the CLIs so that they survive the hub.

Owns the table of runs, the machine's socket, and when the runner itself exits. `__main__` is above;
`Run`, `Home`, `Worktrees` and `hublink` are below. It never parses a line of a CLI.

It holds no state that it could not recover: it reports its runs, executes the hub's requests, and
keeps its agents running while no hub is connected.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread
import msgspec

import quarterdeck
from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import LaunchError, LinkClosed, LinkError, LinkRefused, UsageError
from quarterdeck.domain.ids import new_id
from quarterdeck.links.websocket.dial import Redial
from quarterdeck.protocol.coded_texts import coded_text
from quarterdeck.protocol.machine_requests import MACHINE_REQUESTS
from quarterdeck.protocol.runner_frames import (
    EARLIER,
    PROTOCOL,
    Forget,
    Header,
    Hello,
    MachineRequest,
    Refused,
    Reply,
    RunReport,
    Start,
    Stop,
    Vitals,
    Welcome,
)
from quarterdeck.protocol.sandbox import SANDBOX
from quarterdeck.runner import machine
from quarterdeck.runner.agent_server import with_agent_server
from quarterdeck.runner.cli_sessions import see_cli_sessions
from quarterdeck.runner.exit import end_leftovers
from quarterdeck.runner.home import Home, RunnerState, RunRecord
from quarterdeck.runner.hublink import Hub, HubSocket, UnreadableStart, run_together
from quarterdeck.runner.limits import Limits, Times
from quarterdeck.runner.restores import Restores
from quarterdeck.runner.run import Run
from quarterdeck.runner.sandbox import OwnPaths, clean_up
from quarterdeck.runner.start import Process, recover_process, start_process
from quarterdeck.runner.tool_outputs import see_tool_output
from quarterdeck.worktrees.requests import CliFiles, MachineRequests
from quarterdeck.worktrees.starts import Starts
from quarterdeck.worktrees.worktrees import Worktrees

log = logging.getLogger("quarterdeck.runner")

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""It becomes the name of a folder and part of a path."""

NEXT_SECONDS = 0.3
"""The longest pause before the next of several addresses is tried."""
_FINISHED = CodedText(code=TextCode.RUN_FINISHED)
_REMEMBERED = 10_000
"""Ids of finished runs, so that a repeated `Start` does not start one again."""


class Runner:
    """Owns the CLIs of a machine. `await run()` returns when it was stopped, or has been idle."""

    def __init__(
        self,
        home: Path,
        hub_url: str | Sequence[str],
        token: str | Path,
        name: str | None = None,
        *,
        limits: Limits | None = None,
        times: Times | None = None,
        redial: Redial | None = None,
        memory: Callable[[], int | None] = machine.memory_available,
        closed: tuple[Path, ...] = (),
        ca_file: Path | None = None,
    ) -> None:
        """`closed`: more folders that agents must not touch, besides its own. `ca_file`: the only
        certificate authority to trust.
        """
        self.home = Home(home)
        self.name = name or machine.machine_name()
        self._id = new_id()
        self._closed = (home, *closed)
        secrets = (token,) if isinstance(token, Path) else ()
        self._own = OwnPaths(
            hidden=tuple(str(path.absolute()) for path in (*self._closed, *secrets)),
            worktrees=str(self.home.worktrees.absolute()),
        )
        self._limits = limits or Limits()
        self._times = times or Times()
        self._memory = memory
        self._hub = Hub(hub_url, token, redial, ca_file)
        self._ca_file = ca_file
        self._worktrees = Worktrees(self.home.worktrees, self._times.git)
        self._starts = Starts(self.home.starts)
        self._restores = Restores(self.home.restores)
        self._requests = MachineRequests(
            self._worktrees,
            self._in_use,
            self._starts,
            CliFiles(
                see_sessions=see_cli_sessions,
                see_tool_output=see_tool_output,
                put_transcript=self._restores.put,
                place_transcript=self._restores.place,
            ),
        )
        self._starting: dict[str, Start] = {}
        self._unwanted: dict[str, bool] = {}
        """Those of `_starting` that are to be stopped; whether at once."""
        self._unneeded: set[str] = set()
        """Those of `_starting` that no hub needs to hear of."""
        self._runs: dict[str, Run] = {}
        self._finished: dict[str, str | CodedText] = {}
        self._outbox: list[tuple[Header, tuple[bytes, ...]]] = []
        self._outgoing = asyncio.Event()
        self._greeted = False
        self.ended = asyncio.Event()
        """Set when `run` is about to return."""
        self._stop = asyncio.Event()
        self._stop_again = asyncio.Event()

    @property
    def runs(self) -> dict[str, Run]:
        """The runs, by their ids."""
        return self._runs

    def stop(self) -> None:
        """Stop in good order; the second call stops at once. Safe in signal handlers."""
        (self._stop_again if self._stop.is_set() else self._stop).set()

    async def run(self) -> None:
        """Serve until stopped or idle. Raises `Conflict` when another runner uses this home."""
        try:
            with self.home.occupy():
                left = self.home.leftover_runs()
                await anyio.to_thread.run_sync(end_leftovers, left)
                await anyio.to_thread.run_sync(clean_up, left)
                await anyio.to_thread.run_sync(self._starts.prune)
                await anyio.to_thread.run_sync(self._restores.prune)
                self._write_state()
                async with anyio.create_task_group() as group:
                    self._group = group
                    self._recover(left)
                    group.start_soon(self._connect)
                    group.start_soon(self._watch)
                    await self._stop.wait()
                    await self._shut_down()
                    # Each run ends its own process when it is cancelled: shielded, and bounded.
                    group.cancel_scope.cancel()
        finally:
            self.ended.set()

    def _write_state(self) -> None:
        self.home.write_state(
            RunnerState(
                pid=os.getpid(),
                runner=self._id,
                machine=self.name,
                hub_url=self._hub.url,
                started=time.time(),
                version=quarterdeck.__version__,
            )
        )

    # --- the end of it ---

    async def _shut_down(self) -> None:
        log.info("stopping with %d runs", self._live())
        self._unwanted |= dict.fromkeys(self._starting, False)
        runs = list(self._runs.values())
        async with anyio.create_task_group() as group:
            group.start_soon(self._force_stop, group.cancel_scope)
            async with anyio.create_task_group() as stopping:
                for run in runs:
                    stopping.start_soon(run.stop)
                for run in runs:
                    await run.wait_ended()
                while self._starting:  # noqa: ASYNC110  (bounded by the times of git and start)
                    await anyio.sleep(0.02)
            group.cancel_scope.cancel()
        if self._hub.connected.is_set():
            with anyio.move_on_after(self._times.farewell):
                for run in runs:
                    await run.wait_delivered()

    async def _force_stop(self, scope: anyio.CancelScope) -> None:
        await self._stop_again.wait()
        with anyio.move_on_after(self._times.stop.kill, shield=True):
            async with anyio.create_task_group() as group:
                for run in list(self._runs.values()):
                    group.start_soon(partial(run.stop, force=True))
        scope.cancel()

    async def _watch(self) -> None:
        """Stop an idle runner, and delete the spools that no hub fetched."""
        alone_since: float | None = None
        step = min(1.0, self._times.idle / 4)
        while True:
            await anyio.sleep(step)
            if self._hub.connected.is_set() or self._live():
                alone_since = None
            elif alone_since is None:
                alone_since = time.monotonic()
            elif time.monotonic() - alone_since >= self._times.idle:
                log.info("no run and no hub for %g s: exiting", self._times.idle)
                self.stop()
            self._expire()

    def _live(self) -> int:
        return len(self._starting) + sum(run.live for run in self._runs.values())

    def _expire(self) -> None:
        """Keep ended runs for a hub that reconnects, within the limits of time and size."""
        ended = sorted(
            (run for run in self._runs.values() if not run.live), key=lambda run: run.ended_at
        )
        size = sum(run.spool.size for run in ended)
        for run in ended:
            old = time.time() - run.ended_at > self._times.kept_ended
            if not old and size <= self._limits.kept_ended:
                break
            log.warning("run %s: no hub fetched its last lines; they are deleted", run.run)
            size -= run.spool.size
            run.forget()

    # --- runs ---

    def _recover(self, left: list[RunRecord]) -> None:
        """Take over the runs that an earlier runner left."""
        for record in left:
            try:
                process = recover_process(record, self.home, self._limits)
            except (OSError, ValueError, msgspec.DecodeError) as error:
                log.error("run %s: cannot read its spool: %s", record.run, error)
            else:
                self._add_run(record.run, record.session, process)

    def _add_run(self, name: str, session: str, process: Process) -> None:
        run = Run(name, session, process, self._hub, self._limits, self._times)
        self._runs[name] = run
        self._group.start_soon(self._serve, run)

    async def _serve(self, run: Run) -> None:
        try:
            await run.serve()
        finally:
            # A run that is not settled is left to the next runner, since this one exits.
            if run.settled:
                self._runs.pop(run.run, None)
                self._remember(run.run)
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(run.spool.remove)

    def _remember(self, run: str, why: str | CodedText = _FINISHED) -> None:
        """It is not started any more, and a hub that asks again gets the reason."""
        self._finished[run] = why
        while len(self._finished) > _REMEMBERED:
            del self._finished[next(iter(self._finished))]

    def _accept_start(self, start: Start) -> None:
        """Start a run, unless it is known; refuse it if it cannot be started."""
        if start.run in self._runs or start.run in self._starting:
            return
        if (why := self._refusal_reason(start.run)) is not None:
            self._refuse(start.run, why)
            return
        self._starting[start.run] = start
        self._group.start_soon(self._start_run, start)

    def _refusal_reason(self, run: str) -> str | CodedText | None:
        if not _RUN_ID.fullmatch(run):
            return f"{run!r} is not a valid run id"
        if (why := self._finished.get(run)) is not None:
            return why
        if self._stop.is_set():
            return CodedText(code=TextCode.RUNNER_STOPPING)
        if self._live() >= self._limits.runs:
            return CodedText(code=TextCode.TOO_MANY_RUNS, most=self._limits.runs)
        available = self._memory()
        if available is not None and available < self._limits.memory_floor:
            free, floor = available >> 20, self._limits.memory_floor >> 20
            return CodedText(code=TextCode.NO_MEMORY, count=free, most=floor)
        return None

    async def _start_run(self, start: Start) -> None:
        try:
            if start.spec.worktree is None:
                # Before the agent can change anything; a worktree's branch has a base of its own.
                git, folder = self._worktrees.git, start.spec.directory
                await self._starts.keep(git, start.session, folder)
            process = await start_process(
                with_agent_server(start, self._hub.url, self._ca_file),
                self.home,
                self._worktrees,
                self._limits,
                self._times,
                self._own,
                lambda: start.run not in self._unwanted,
            )
        except (LaunchError, UsageError) as error:
            self._refuse(start.run, str(error))
        except OSError as error:
            self._refuse(start.run, f"cannot write the run's folder: {error}")
        else:
            self._add_run(start.run, start.session, process)
            # What came after it was last looked at.
            if (force := self._unwanted.get(start.run)) is not None:
                self._group.start_soon(partial(self._runs[start.run].stop, force=force))
            if start.run in self._unneeded:
                self._runs[start.run].forget()
        finally:
            del self._starting[start.run]
            self._unwanted.pop(start.run, None)
            self._unneeded.discard(start.run)

    def _refuse(self, run: str, why: str | CodedText) -> None:
        """Refuse a run: for a reason of ours, or with the message of who could not start it."""
        coded = why if isinstance(why, CodedText) else None
        reason = why if isinstance(why, str) else coded_text(why)
        log.info("run %s: refused: %s", run, reason)
        # The hub ends it when it hears that. A repeated `Start` that it had sent before must not
        # start it then.
        self._remember(run, why)
        self._post(Refused(run=run, reason=reason, coded=coded))

    def _post(self, header: Header, *lines: bytes) -> None:
        """Send it to the connected hub; the next hub gets all that matters from `Hello`."""
        if self._greeted:
            self._outbox.append((header, lines))
            self._outgoing.set()

    # --- requests of the hub ---

    async def _answer_request(self, request: str, lines: list[bytes]) -> None:
        refused, line = await self._requests.do(lines)
        self._post(Reply(request=request, refused=refused), line)

    def _in_use(self, folder: Path, branch: str) -> bool:
        """Whether a run works in this folder, or is being started on this branch."""
        if any(start.spec.worktree == branch for start in self._starting.values()):
            return True
        folders = [run.directory for run in self._runs.values() if run.live]
        return any(Path(place).resolve().is_relative_to(folder) for place in folders if place)

    # --- the machine's socket ---

    async def _connect(self) -> None:
        """Connect, exchange frames, and reconnect, for ever. Handles all failures."""
        attempt = 0
        last_error = ""
        while True:
            socket: HubSocket | None = None
            try:
                socket = await self._hub.dial("/runner")
                await self._handshake(socket)
                attempt, last_error = 0, ""
                await self._exchange(socket)
            except (LinkRefused, LinkClosed) as error:
                if str(error) != last_error:  # once, not at every attempt
                    log.info("%s", error)
                last_error = str(error)
            except LinkError as error:
                log.warning("dropped the machine's connection: %s", error)
                if socket is not None:
                    await socket.close(1002, str(error))
            except Exception:
                log.exception("dropped the machine's connection")
            finally:
                self._hub.connected.clear()
                self._greeted = False
                self._outbox.clear()
                if socket is not None:
                    await socket.close()
            if self._hub.next_address():
                await anyio.sleep(self._hub.redial.pause(attempt))
                attempt += 1
            else:  # another hub may be there at once; its runners do not all come at once
                await anyio.sleep(random.uniform(0, NEXT_SECONDS))  # noqa: S311  (no secret)

    async def _handshake(self, socket: HubSocket) -> None:
        self._greeted = True  # what happens from here on is sent after `Hello`
        reports = [run.report for run in self._runs.values()]
        reports += [
            RunReport(run=start.run, session=start.session, said=0, written=0)
            for start in self._starting.values()
        ]
        await socket.send(
            Hello(
                machine=self.name,
                runner=self._id,
                protocol=PROTOCOL,
                version=quarterdeck.__version__,
                pid=os.getpid(),
                runs=tuple(reports),
                can=(MACHINE_REQUESTS, SANDBOX, EARLIER),
                closed=tuple(str(folder.absolute()) for folder in self._closed),
                worktrees=str(self.home.worktrees.absolute()),
            )
        )
        try:
            with anyio.fail_after(self._times.greeting):
                header, _ = await socket.receive()
        except TimeoutError:
            raise LinkError("the hub did not send Welcome in time") from None
        if not isinstance(header, Welcome):
            raise LinkError(f"the hub began with {type(header).__name__}, not with Welcome")
        if header.protocol != PROTOCOL:
            raise LinkError(f"the hub uses protocol {header.protocol}, this runner {PROTOCOL}")
        self._hub.note_hello(header.hub)

    async def _exchange(self, socket: HubSocket) -> None:
        parts = (self._send, self._receive, self._send_vitals)
        await run_together(*(partial(part, socket) for part in parts))

    async def _send(self, socket: HubSocket) -> None:
        while True:
            while self._outbox:
                header, lines = self._outbox.pop(0)
                await socket.send(header, lines)
            self._outgoing.clear()
            await self._outgoing.wait()

    async def _send_vitals(self, socket: HubSocket) -> None:
        while True:
            await socket.send(
                Vitals(
                    runs=self._live(),
                    memory_available=self._memory() or 0,
                    load=machine.load(),
                    at=int(time.time() * 1000),
                )
            )
            await anyio.sleep(self._times.vitals)

    async def _receive(self, socket: HubSocket) -> None:
        while True:
            header, lines = await socket.receive()
            match header:
                case Start():
                    self._accept_start(header)
                case UnreadableStart(run=run, reason=reason):
                    self._refuse(run, reason)
                case Stop(run=run, force=force):
                    self._end_run(run, force)
                case MachineRequest(request=request):
                    self._group.start_soon(self._answer_request, request, lines)
                case Forget(run=run):
                    if (known := self._runs.get(run)) is not None:
                        known.forget()
                    elif run in self._starting:
                        self._unneeded.add(run)
                case _:
                    raise LinkError(
                        f"{type(header).__name__} does not belong on the machine's socket"
                    )

    def _end_run(self, run: str, force: bool) -> None:
        if (known := self._runs.get(run)) is not None:
            self._group.start_soon(partial(known.stop, force=force))
        elif run in self._starting:
            self._unwanted[run] = force or self._unwanted.get(run, False)
        # Otherwise it has ended: its end was sent, or is no longer known here.
