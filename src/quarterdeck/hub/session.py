"""One session in the hub's memory: the shell around its events.

Owns the order in which things happen to a session, one at a time: take the lock, look up facts,
decide, journal, and only then act. Memory never has more than the journal: what cannot be
journalled has not happened, and memory is then read from the journal again. `run` decides what
lines mean; `session_commands`, `session_answers` and `session_requests` do what people want;
`session_process` takes the news of the process. Below are the journal and the machines.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress

from msgspec.structs import replace

from quarterdeck.domain.errors import Conflict, JournalError, LaunchError, NotFound
from quarterdeck.domain.ids import new_id
from quarterdeck.domain.structs import Value
from quarterdeck.hub.live import Live
from quarterdeck.hub.permissions.context import CallQuestion, PolicyContext, Ruling
from quarterdeck.hub.permissions.modes import resumed_spec
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.hub.ports import DIALLED, PROGRAM, UNMANAGED, Machines, RunEnd, RunPort
from quarterdeck.hub.resume_gap import ResumeGap
from quarterdeck.hub.run import Run
from quarterdeck.hub.snapshots import SnapshotPace, is_current, restored, snapshot
from quarterdeck.hub.supervision.supervisor import Actions, Supervisor
from quarterdeck.hub.waiters import Waiters
from quarterdeck.journal.base import Journal, Snapshot, Stored
from quarterdeck.journal.views import PromptView, SessionView, fold
from quarterdeck.protocol.events import (
    Event,
    RunEnded,
    RunStarting,
    Sent,
    SpecChanged,
    Switched,
)
from quarterdeck.protocol.sessions import Origin, SessionSpec, SessionState
from quarterdeck.runtime.off_loop import large_turn

log = logging.getLogger(__name__)

REST_SECONDS = 300.0
"""How long a run is idle before its state leaves memory: to restore it takes a few ms."""
PAGE = 500
"""Events read at once when a session is restored: others may go on between two pages."""
LOOK_BACK = 32
"""How many events are read to find the end of the last run; then so many times more."""


class UnheardEnd(Value):
    """A run that has ended, and whose transcript is being read. Its machine keeps the end."""

    run: str
    end: RunEnd


def check_machine(spec: SessionSpec, session: str) -> None:
    """Raise `Conflict` if no runner can start a CLI: it dialled, from an unknown machine."""
    if spec.machine == PROGRAM:
        raise Conflict(
            "program_ended",
            f"the agent of {session} belonged to a program on a machine that has no runner here:"
            " start the program again, or start a runner there before it connects",
        )
    if spec.machine == DIALLED:
        raise Conflict(
            "dial_again",
            f"the CLI of {session} dialled from a machine that has no runner here: have it dial"
            f" again, as `quarterdeck token --cli --session {session}` tells, or start a runner"
            " there before it dials",
        )


class _InOrder:
    """A lock, with a function that is called after each acquire and one before each release.

    A class, not a generator function: every line of every CLI passes here.
    """

    def __init__(
        self,
        order: asyncio.Lock,
        first: Callable[[], Awaitable[None]],
        last: Callable[[], None],
    ) -> None:
        self._order = order
        self._first = first
        self._last = last

    async def __aenter__(self) -> None:
        await self._order.acquire()
        try:
            await self._first()
        except BaseException:
            self._order.release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._last()
        self._order.release()


class Session:
    """A session in the hub's memory."""

    def __init__(
        self,
        id_: str,
        journal: Journal,
        machines: Machines,
        live: Live,
        view: SessionView | None = None,
        supervisor: Supervisor | None = None,
        policies: Policies | None = None,
    ) -> None:
        self.id = id_
        self.policies = policies or Policies()
        self.supervisor = supervisor or Supervisor()
        self.journal = journal
        self.machines = machines
        self.live = live
        self._order = asyncio.Lock()
        self._ordered = _InOrder(self._order, self._catch_up, self._check_journalled)
        self._stale = False
        self._deferred = False
        self._rests = False
        self._view = view
        self.run: Run | None = None
        self.port: RunPort | None = None
        self.run_held: str | None = None
        """The run that the port belongs to."""
        self.continues: str | None = None
        """The conversation that its process goes on with, known before the CLI tells it."""
        self.waiters = Waiters()
        self.greet_by: float | None = None
        """When `initialize` must be answered, by the monotonic clock."""
        self.unheard: UnheardEnd | None = None
        self.gap = ResumeGap()
        self._pace = SnapshotPace()

    @property
    def view(self) -> SessionView:
        """The session's view."""
        if self._view is None:
            raise NotFound("session", self.id)
        return self._view

    @property
    def known(self) -> bool:
        """Whether anything of it is in the journal."""
        return self._view is not None

    @property
    def running(self) -> bool:
        """Whether it has a process, as far as the hub knows."""
        deferred = self._deferred and self._view is not None and self._view.run is not None
        return self.run is not None or deferred

    @property
    def needed(self) -> bool:
        """Whether it has to stay in memory: the journal does not tell all of it, or it acts alone.

        A session that has no process acts alone if the clock may resume it, or may tell that a
        budget has room again.
        """
        if self._view is None or self.run is not None or self._stale or self._order.locked():
            return True
        return bool(self._view.account.budgets) or self.supervisor.restarts(self._view)

    @property
    def policy_context(self) -> PolicyContext:
        return PolicyContext(self.policies, lambda: self.view)

    # --- from the journal ----------------------------------------------------------------------

    async def restore(self) -> None:
        """Load the session from the journal, and attach to a process that may still run."""
        async with self._order:
            try:
                if self.run is None:  # a command may have restored it
                    await self._reload()
            finally:
                self._deferred = False

    async def attach(self) -> None:
        """Attach to a process that may still run. The run is restored when it is first needed.

        For a run of many events: its machine must find it at once, and no other session waits.
        """
        async with self._order:
            self._stale = self._deferred = True
            if self._view is not None and self._view.run is not None:
                await self._hold(self._view, self._view.run)

    @property
    def restoring(self) -> bool:
        """Whether its run is yet to be restored for the first time."""
        return self._deferred

    def in_order(self) -> _InOrder:
        """One operation at a time, each on top of the state in the journal."""
        return self._ordered

    async def _catch_up(self) -> None:
        """Before each operation: load the session again if memory and journal may differ."""
        if self._stale:
            rested = self._rests
            await self._reload()
            if not rested:
                await self.supervisor.load(self.journal)

    def _check_journalled(self) -> None:
        """After each operation: one that failed halfway may have left events in memory only."""
        if self.run is not None and self.run.has_recorded:
            self._stale = True

    async def _reload(self) -> None:
        """Replace the state in memory by the state in the journal.

        At the start, and after an append that failed or was cancelled: its events are not in the
        journal, or are there and not in memory.
        """
        self._stale = True
        await self.journal.append(self.id, [])  # what is under way is stored before we read
        view = self._view = await self.journal.summary(self.id)
        self.run = None
        if view is None or view.run is None:
            port, self.port, self.run_held = self.port, None, None
            if port is not None:
                port.forget()
        else:
            port = await self._hold(view, view.run)
            self.run = await self._restored(view, view.run, port)
            if view.afresh or view.account.stopping:
                port.stop()
        self._stale = self._deferred = self._rests = False

    async def _restored(self, view: SessionView, id_: str, port: RunPort) -> Run:
        """The run, from its snapshot and the events after it, or from all of its events.

        Lines that its machine may not have are sent again; it ignores those that it has.
        """
        stored = await self._snapshot_of(view, id_)
        found = None if stored is None else restored(stored.data, self.id, id_)
        run = Run(self.id, id_, view.spec, view.holds, state=found[0] if found else None)
        for number, line in sorted(found[1].items()) if found else ():
            port.write(number, line)
        after = stored.seq if stored is not None and found else view.run_began - 1
        self._pace.taken(None if stored is None else stored.data)
        async for each in self._events_after(after):
            run.restore_event(each.event, each.at)
            self._pace.note((each,))
            if isinstance(each.event, Sent) and each.event.run == id_:
                port.write(each.event.number, bytes(each.event.line))
        run.restored(view.holds)
        run.watch.touch(self.supervisor.now)
        return run

    async def _events_after(self, seq: int) -> AsyncIterator[Stored]:
        """The events after a number. They are never all in memory."""
        while page := await self.journal.read(self.id, after=seq, limit=PAGE):
            seq = page[-1].seq
            for stored in page:
                yield stored

    # --- snapshots -----------------------------------------------------------------------------

    async def _snapshot_of(self, view: SessionView, run: str) -> Snapshot | None:
        """The snapshot of a run, if it has one that can be used."""
        found = await self.journal.latest_snapshot(self.id)
        if found is None or not view.run_began <= found.seq <= view.head:
            return None
        return found if is_current(found.data, run) else None

    async def events_to_fold(self) -> int:
        """How many events it takes to restore its run."""
        view = self.view
        if view.run is None:
            return 0
        found = await self._snapshot_of(view, view.run)
        return view.head - (view.run_began if found is None else found.seq)

    @property
    def needs_snapshot(self) -> bool:
        """Whether `store_snapshot` would store one."""
        return self.run is not None and not self._stale and self._pace.worth_it

    async def store_snapshot(self) -> None:
        """Store the state of the run, if enough has happened since that was done.

        The caller has the lock. If it cannot be stored, nothing is lost but time at a restart.
        """
        run = self.run
        if run is None or run.has_recorded or not self.needs_snapshot:
            return
        try:
            await self.journal.append(self.id, [], snapshot=self._snapshot(run, ()))
        except JournalError as error:
            log.warning("session %s: no snapshot is stored: %s", self.id, error)

    def rest(self) -> None:
        """Have the state of a run that has long been idle leave memory.

        The journal has all of it: whatever happens next to the session restores it first.
        """
        run, view = self.run, self._view
        if run is None or view is None or self._stale or self._order.locked():
            return
        if not run.idle or self.supervisor.now - view.updated < REST_SECONDS * 1000:
            return
        account = view.account
        acts = view.unsent or account.budgets or account.alarms or self.unheard or self.waiters
        waits = run.has_recorded or self.gap.unanswered(run.run)
        # One that dialled is recognised by what it said.
        if acts or waits or view.state is not SessionState.IDLE or view.machine == DIALLED:
            return
        self.run = None
        self._stale = self._deferred = self._rests = True

    def _snapshot(self, run: Run, events: Sequence[Event]) -> bytes | None:
        """The state after these events, which are recorded and not journalled yet."""
        if self.port is None or not run.state.said:
            return self._pace.taken(None)  # its CLI may have read nothing yet: it is sent all again
        sent = {each.number: bytes(each.line) for each in events if isinstance(each, Sent)}
        return self._pace.taken(snapshot(run.state, self.port.unwritten() | sent))

    # --- its process ---------------------------------------------------------------------------

    async def _hold(self, view: SessionView, run: str) -> RunPort:
        """Attach to a process. One that its machine may not know is requested again.

        A machine that knows the run does not start it twice.
        """
        if self.port is None or self.run_held != run:
            self.port, self.run_held = await self._find_port(view, run), run
        return self.port

    async def _find_port(self, view: SessionView, run: str) -> RunPort:
        if not view.account.up_since and view.machine not in UNMANAGED:
            (stored, *_) = await self.journal.read(self.id, after=view.run_began - 1, limit=1)
            starting = stored.event
            assert isinstance(starting, RunStarting)
            spec = replace(view.spec, mode=starting.mode)
            # Another machine, which has not come back yet, or without the sandbox that must be.
            with suppress(NotFound, LaunchError):
                return self.machines.start(run, self.id, spec, starting.origin)
        return self.machines.attach(run, self.id, view.machine or "", said=view.said)

    # --- what changes it -----------------------------------------------------------------------

    async def record(self, *events: Event) -> None:
        """Journal events that others made."""
        async with self.in_order():
            await self.append(events)

    async def rule(self, question: CallQuestion, spec: SessionSpec) -> Ruling:
        """What the rules say about a call.

        If it is cancelled, lines may be in memory that are not in the journal.
        """
        try:
            return await self.policy_context.rule(question, spec)
        except BaseException:
            self._stale = True
            raise

    async def append(self, events: Sequence[Event] = ()) -> None:
        """Journal these events and those that the run has recorded; then write the lines."""
        run = self.run
        if run is not None:
            run.record(events, self.supervisor.now)
            events = run.take_recorded()
        if not events:
            return
        data = self._snapshot(run, events) if run is not None and self._pace.due else None
        try:
            stored = await self.journal.append(self.id, events, snapshot=data)
        except BaseException:
            # The events are in memory, and not in the journal; or a cancelled append stores them
            # later.
            self._stale = True
            raise
        self._fold(stored)
        if data is None:
            self._pace.note(stored)
        if self.port is not None:
            for event in events:
                if isinstance(event, Sent):
                    self.port.write(event.number, bytes(event.line))

    def _fold(self, stored: Sequence[Stored]) -> None:
        for one in stored:
            self.supervisor.note(self._view, one)
            self._view = fold(self._view, one)

    async def start(self, origin: Origin, *events: Event, spec: SessionSpec | None = None) -> None:
        """Start a process, and journal that together with the events that it is started for.

        A conversation goes on in the mode that holds in it; `spec` says another way to start.
        """
        spec = spec or self._next_spec(origin, events)
        check_machine(spec, self.id)
        run = new_id()
        written = await self._written_before(events)
        starting = RunStarting(
            run=run,
            machine=spec.machine or "",
            origin=origin,
            mode=spec.mode,
            skip_permissions=spec.skip_permissions,
            written=written,
        )
        await self.append([*events, starting])
        self.begin_run(starting)
        try:
            self.port = self.machines.start(run, self.id, spec, origin)
        except (NotFound, LaunchError) as error:
            self.run = self.port = self.run_held = None
            reason = f"It was not started: {error}."
            await self.append([RunEnded(run=run, reason=reason, written=written)])
            raise

    async def _written_before(self, events: Sequence[Event]) -> tuple[str, ...]:
        """The files that its runs have written, after events that are not journalled yet.

        The end of the last run has them. It is near the end of the journal.
        """
        for event in reversed(events):
            if isinstance(event, RunEnded):
                return event.written
        view = self._view
        if view is None or not view.run_began:
            return ()
        after, first = view.head, view.run_began - 1
        while after > first:
            after = max(first, view.head - LOOK_BACK * (view.head - after or 1))
            found = [each.event async for each in self._events_after(after)]
            for event in reversed(found):
                if isinstance(event, RunEnded | RunStarting):
                    return event.written
        return ()

    def begin_run(self, starting: RunStarting) -> None:
        """A run has begun, and that is journalled."""
        self._pace = SnapshotPace()
        self.run = Run(self.id, starting.run, self.view.spec, self.view.holds)
        self.run.begin(starting, self.supervisor.now)
        self.run_held = starting.run
        origin = starting.origin
        self.continues = None if origin.fork or origin.at else origin.cli_session

    def _next_spec(self, origin: Origin, events: Sequence[Event]) -> SessionSpec:
        """What the next process is started with, after events that are not journalled yet."""
        spec, mode = self.view.spec, self.view.mode
        for event in events:
            match event:
                case SpecChanged(spec=changed):
                    spec = changed
                case Switched(mode=str(switched)):
                    mode = switched
                case _:
                    pass
        return spec if origin.cli_session is None else resumed_spec(spec, mode)

    async def send_next(self) -> None:
        """Send the oldest queued prompt, if the CLI is ready for it."""
        run = self.run
        if run is None or not self.may_send(run):
            return
        following = self.next_unsent(run)
        if following is not None:
            again = following.run is not None
            await large_turn(len(memoryview(following.content)))
            now = self.supervisor.now
            run.prompt(following.prompt, following.content, now, again=again)
            await self.append()

    def may_send(self, run: Run) -> bool:
        """Whether a prompt would begin at once, and may."""
        return run.idle and not self.view.afresh and not self.supervisor.held(self.view, run)

    def next_unsent(self, run: Run) -> PromptView | None:
        """The oldest prompt that was not given to this run."""
        return next((one for one in self.view.unsent if one.run != run.run), None)

    async def apply(self, actions: Actions) -> None:
        """Do what the supervisor wants done: journal it first."""
        if actions.events or (self.run is not None and self.run.has_recorded):
            await self.append(actions.events)
        if self.port is not None and (actions.end or actions.kill):
            self.port.stop(force=actions.kill)
