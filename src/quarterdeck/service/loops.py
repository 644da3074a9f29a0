"""The loops of a hub: each is a task of the service, and goes on after a restart.

Owns the hub's own token for its loops. A loop talks to this hub as it would to any other: by the
public client. The commands of a loop run here, so its sessions must be on this machine. They run in
a sandbox like that of the sessions, because agents may have changed the files that they run.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.client.hub import HubClient
from quarterdeck.domain.errors import Conflict, LaunchError, NotFound, QuarterdeckError, UsageError
from quarterdeck.domain.ids import is_id
from quarterdeck.domain.structs import DECODE_ERRORS
from quarterdeck.fronts.http import Access
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.hub.permissions.sandbox import owners_rules, sandbox_request
from quarterdeck.loop.folder import check_directory
from quarterdeck.loop.hub_worker import HubWorker
from quarterdeck.loop.report import write_reports
from quarterdeck.loop.runner import new_loop, run_loop
from quarterdeck.loop.shapes import LoopAction, LoopShape, NewLoop, request_of, shape_of
from quarterdeck.loop.spec import StopReason
from quarterdeck.loop.state import LoopState, Stopped
from quarterdeck.loop.store import LoopStore, ManifestError
from quarterdeck.protocol.roles import Role
from quarterdeck.protocol.sandbox import SandboxRequest
from quarterdeck.protocol.sessions import LOCAL, SessionSpec
from quarterdeck.runtime.files import replace_file
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.service.loop_boxes import sandboxes

log = logging.getLogger(__name__)

OWN_TOKEN = "loops.token"  # noqa: S105 - the name of a file
OWN_NAME = "loop"
RETRY_SECONDS = 10.0
MOST_TRIES = 3
"""How often a loop is started that cannot work: its folder is gone, or its CLI."""
LONGEST_LOOP = 366 * 86_400.0
"""Seconds. A loop works for a year at most, and keeps its token."""
MOST_LOOPS = 20
"""Loops that may run in one hub at a time."""


def own_loop_token(home: Path, access: Access, name: str = OWN_TOKEN) -> str:
    """The token with which loops use this hub; created if it is missing, not valid, or may end
    before a loop does.
    """
    file = home / name
    if file.exists():
        token = file.read_text().strip()
        known = next((grant for grant in access.grants() if f"_{grant.id}_" in token), None)
        soon = time.time() + LONGEST_LOOP
        if known is not None and known.expires is not None and known.expires > soon:
            return token
        if known is not None and known.expires is None:
            access.revoke(known.id)  # one of an older version, which would never end
    token = access.make_token(OWN_NAME, Role.OWNER, seconds=2 * LONGEST_LOOP)
    replace_file(file, token.encode())
    return token


class Loops:
    """The loops of one hub; it starts none before `running`."""

    def __init__(
        self, home: Path, resolve: Callable[[SessionSpec], SessionSpec], policies: Policies
    ) -> None:
        """`resolve` gives a session's spec with the defaults of its project and the hub."""
        self._home = home
        self._resolve = resolve
        self._policies = policies
        self._store = LoopStore(home)
        self._tasks: TaskGroup | None = None
        self._connect: Callable[[], HubClient] | None = None
        self._running: set[str] = set()
        # Of its own: manifests are large, and nobody else is to wait for those who read them.
        self._reading = anyio.CapacityLimiter(2)

    @asynccontextmanager
    async def run(self, access: Access, address: str, ca_file: Path | None) -> AsyncIterator[None]:
        """Run loops while the block runs; those that were cut off go on."""

        def connect() -> HubClient:
            # A hub without loops has no token for them, and loads no HTTP client.
            token = own_loop_token(self._home, access)
            return HubClient(address, token, insecure=True, ca_file=ca_file)

        async with background_tasks() as tasks:
            self._connect, self._tasks = connect, tasks
            for state in await anyio.to_thread.run_sync(self._store.all):
                if state.host == "hub" and state.stopped is None:
                    self._launch(state)
            try:
                yield
            finally:
                self._tasks = None

    # --- what the API does ---

    async def list(self) -> tuple[LoopShape, ...]:
        """All loops of this machine, newest first."""
        return await anyio.to_thread.run_sync(self._shapes, limiter=self._reading)

    def _shapes(self) -> tuple[LoopShape, ...]:
        return tuple(self._shape(state) for state in self._store.all())

    def _shape(self, state: LoopState) -> LoopShape:
        runs = state.id in self._running or self._store.runs(state.id)
        return shape_of(state, runs=runs)

    async def load(self, loop: str) -> LoopState:
        """One loop. Raises `NotFound`."""
        return await anyio.to_thread.run_sync(self._store.load, loop, limiter=self._reading)

    async def start(self, new: NewLoop, by: str) -> LoopShape:
        """Start a loop. Raises `UsageError`, `Conflict`."""
        if self._tasks is None:
            raise Conflict("stopping", "the hub is stopping")
        if new.loop is not None:
            if not is_id(new.loop):
                raise UsageError("loop: not an id")
            try:
                return self._shape(await self.load(new.loop))
            except NotFound:
                pass
        self._check(new)
        await anyio.to_thread.run_sync(check_directory, new.spec.directory)
        if len(self._running) >= MOST_LOOPS:
            raise Conflict("too_many_loops", f"{MOST_LOOPS} loops are running already")
        state = new_loop(new.spec, host="hub", by=by)
        state = replace(
            state, id=new.loop or state.id, settings=Raw(msgspec.json.encode(new.session))
        )
        if state.id in self._running:  # another request with this id was faster
            return self._shape(state)
        self._running.add(state.id)
        try:
            await anyio.to_thread.run_sync(self._store.save, state)
        except ManifestError:
            self._running.discard(state.id)
            raise
        self._launch(state)
        return self._shape(state)

    def _check(self, new: NewLoop) -> None:
        """Refuse a loop whose commands could not run."""
        session = self._resolve(new.session)
        if session.machine not in {None, LOCAL}:
            raise UsageError("session.machine: a loop works on the hub's machine")

    async def control(self, loop: str, action: LoopAction, by: str) -> LoopShape:
        """Pause, resume or stop a loop, of the hub or of a terminal of its user."""
        state = await self.load(loop)
        if state.stopped is not None:
            raise Conflict("loop_stopped", f"the loop has stopped: {state.stopped.text}")
        if loop not in self._running and not await anyio.to_thread.run_sync(self._store.runs, loop):
            raise Conflict("loop_stopped", "no process runs the loop")
        await anyio.to_thread.run_sync(self._store.want, loop, request_of(action, by))
        return self._shape(state)

    # --- running ---

    def _launch(self, state: LoopState) -> None:
        assert self._tasks is not None
        self._running.add(state.id)
        self._tasks.start_soon(self._run, state)

    async def _run(self, state: LoopState) -> None:
        """Run a loop to its end. Whatever happens to it, the hub goes on."""
        tries = 0
        try:
            while True:
                try:
                    await self._run_once(state)
                    return
                except (UsageError, LaunchError) as error:
                    tries += 1
                    log.warning("loop %s cannot work: %s", state.id, error)
                    if tries >= MOST_TRIES:
                        await self._give_up(state.id, str(error))
                        return
                except QuarterdeckError as error:
                    log.warning("loop %s is tried again: %s", state.id, error)
                except Exception:
                    log.exception("loop %s failed, and is tried again", state.id)
                await anyio.sleep(RETRY_SECONDS)
                state = await self.load(state.id)
        finally:
            self._running.discard(state.id)

    async def _run_once(self, state: LoopState) -> None:
        assert self._connect is not None
        try:
            template = msgspec.json.decode(bytes(state.settings), type=SessionSpec)
        except DECODE_ERRORS as error:
            raise UsageError(f"its manifest cannot be read: {error}") from error

        async def sandbox_request() -> SandboxRequest:
            return self._sandbox_of(replace(template, directory=state.spec.directory))

        async with self._connect() as client:
            worker = HubWorker(client, template)
            await run_loop(state, worker, self._store, box=sandboxes(state.id, sandbox_request))

    def _sandbox_of(self, given: SessionSpec) -> SandboxRequest:
        """The sandbox of a session, by the rules that hold now."""
        spec = self._resolve(given)
        rules = owners_rules(self._policies.rules_for(spec), self._policies.grants)
        return sandbox_request(spec, rules, OWN_NAME)

    async def _give_up(self, loop: str, why: str) -> None:
        state = await self.load(loop)
        stopped = Stopped(reason=StopReason.FAILED, text=why[:1000], at=time.time())
        state = replace(state, stopped=stopped)
        await anyio.to_thread.run_sync(self._store.save, state)
        await anyio.to_thread.run_sync(write_reports, self._store, state)
