"""One session in the hub's memory: its state, as the journal has it.

Owns the lock of a session, its state in memory, and the way to the journal: what is decided is
folded into the state, journalled, and folded into the view. Memory never has more than the journal:
what cannot be journalled has not happened, and memory is then read from the journal again. `shell`
has decisions made and their effects performed. Below are the journal and the machines.

It is long because it also restores a session from the journal, and lets it leave memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypedDict

from quarterdeck.domain.errors import JournalError, LaunchError, NotFound, StaleFence
from quarterdeck.domain.structs import Value
from quarterdeck.hub.decisions.base import State
from quarterdeck.hub.decisions.starts import spec_of
from quarterdeck.hub.fleet import Fleet
from quarterdeck.hub.live import Live
from quarterdeck.hub.permissions.context import CallQuestion, PolicyContext, Ruling
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.hub.ports import Machines, RunEnd, RunPort
from quarterdeck.hub.resume_gap import ResumeGap
from quarterdeck.hub.run import Run
from quarterdeck.hub.run_state import LineReport, RunState
from quarterdeck.hub.snapshots import SnapshotPace, is_current, restore_state, snapshot
from quarterdeck.hub.supervision.supervisor import Supervisor
from quarterdeck.hub.waiters import Waiters
from quarterdeck.journal.base import Journal, Snapshot
from quarterdeck.journal.views import fold
from quarterdeck.protocol.events import Event, RunEnded, RunStarting, Sent
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import INBOUND, UNMANAGED, SessionSpec, SessionState
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.wire.base import Message

log = logging.getLogger(__name__)

REST_SECONDS = 300.0
"""How long a run is idle before its state leaves memory: to restore it takes a few ms."""
PAGE = 500
"""Events read at once when a session is restored: others may go on between two pages."""


class _Conditions(TypedDict, total=False):
    """What the journal checks before it stores something."""

    after: int
    claim: str


class UnheardEnd(Value):
    """A run that has ended, and whose transcript is being read. Its machine keeps the end."""

    run: str
    end: RunEnd


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
        fleet: Fleet | None = None,
    ) -> None:
        self.id = id_
        self.fleet = fleet
        self.policies = policies or Policies()
        self.supervisor = supervisor or Supervisor()
        self.journal = journal
        self.machines = machines
        self.live = live
        self._order = asyncio.Lock()
        self._ordered = _InOrder(self._order, self._catch_up, self._check_journalled)
        self._stale = False
        self._disowned_for_good = False
        self._deferred = False
        self._rests = False
        self._view = view
        self.run: Run | None = None
        self._recorded: list[Event] = []
        """Events that are in the state of the run, and are to be journalled."""
        self.port: RunPort | None = None
        self.run_held: str | None = None
        """The run that the port belongs to."""
        self.starts_on: str | None = None
        """The machine of the last run that was begun here, before the journal has it."""
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
        if not self.held:
            return self._order.locked()
        if self._view is None or self.run is not None or self._stale or self._order.locked():
            return True
        return bool(self._view.account.budgets) or self.supervisor.restarts(self._view)

    @property
    def held(self) -> bool:
        """Whether this hub may act on it by itself. One that is alone may."""
        return self.fleet is None or self._view is None or self.fleet.holds(self._view)

    @property
    def run_state(self) -> RunState | None:
        """The state of its run, if it has one."""
        return None if self.run is None else self.run.state

    @property
    def state(self) -> State:
        """What decisions read."""
        return State(self.id, self._view, self.run_state)

    @property
    def disowned(self) -> bool:
        """Whether another hub took it from this object for good."""
        return self._disowned_for_good

    @property
    def policy_context(self) -> PolicyContext:
        return PolicyContext(self.policies, lambda: self.view)

    # --- from the journal ----------------------------------------------------------------------

    async def restore(self) -> None:
        """Load the session from the journal, and attach to a process that may still run."""
        async with self._order:
            try:
                if self.run is None and not self._disowned_for_good:
                    await self._reload()
            finally:
                self._deferred = False

    async def attach(self) -> None:
        """Attach to a process that may still run. The run is restored when it is first needed.

        For a run of many events: its machine must find it at once, and no other session waits.
        """
        async with self._order:
            if self._disowned_for_good:
                return
            self._stale = self._deferred = True
            if self.fleet is not None:  # another hub may have written to it
                self._view = await self.journal.summary(self.id)
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
        if self._disowned_for_good:
            raise StaleFence(f"session {self.id}")
        if self.fleet is not None and (self.run is None or not self.held):
            self._stale = True  # any hub may have written to it, or begun a run of it
        if self._stale:
            rested = self._rests
            await self._reload()
            if not rested:
                await self.supervisor.load(self.journal)

    def _check_journalled(self) -> None:
        """After each operation: one that failed halfway may have left events in memory only."""
        if self._recorded:
            self._stale = True

    async def _reload(self) -> None:
        """Replace the state in memory by the state in the journal.

        At the start, and after an append that failed or was cancelled: its events are not in the
        journal, or are there and not in memory.
        """
        self._stale = True
        self._recorded.clear()
        await self.journal.append(self.id, [])  # what is under way is stored before we read
        view = self._view = await self.journal.summary(self.id)
        self.run = None
        if view is not None and view.run is not None and not self.held:
            self.let_go()
            raise StaleFence(f"session {self.id}")
        if view is None or view.run is None:
            port, self.port, self.run_held = self.port, None, None
            if port is not None:
                port.forget()
        else:
            port = await self._hold(view, view.run)
            self.run = await self._restore_run(view, view.run, port)
            if view.afresh or view.account.stopping:
                port.stop()
        self._stale = self._deferred = self._rests = False

    def disown(self) -> None:
        """Another hub took it from this one. This object can do nothing more.

        If it comes back, another object stands for it.
        """
        self._disowned_for_good = True
        self.let_go()

    def let_go(self) -> None:
        """Its run is another hub's: nothing of it is kept here, and its process is told nothing."""
        self.run = self.port = self.run_held = self.unheard = None
        self._stale, self._deferred, self._rests = True, False, False
        self.live.supersede(self.id)
        self.waiters.end_all("another hub has taken over the session")

    async def _restore_run(self, view: SessionView, id_: str, port: RunPort) -> Run:
        """The run, from its snapshot and the events after it, or from all of its events.

        Lines that its machine may not have are sent again; it ignores those that it has.
        """
        stored = await self._snapshot_of(view, id_)
        found = None if stored is None else restore_state(stored.data, self.id, id_)
        run = Run(self.id, id_, view.spec, view.holds, state=found[0] if found else None)
        for number, line in sorted(found[1].items()) if found else ():
            port.write(number, line)
        after = stored.seq if stored is not None and found else view.run_began - 1
        self._pace.note_taken(None if stored is None else stored.data)
        async for each in self.events_after(after):
            run.restore_event(each.event, each.at)
            self._pace.note((each,))
            if isinstance(each.event, Sent) and each.event.run == id_:
                port.write(each.event.number, bytes(each.event.line))
        run.finish_restore(view.holds)
        run.watch.touch(self.supervisor.now)
        return run

    async def events_after(self, seq: int) -> AsyncIterator[Stored]:
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
        if run is None or self._recorded or not self.needs_snapshot:
            return
        try:
            data = self._snapshot(run, ())
            await self.journal.append(self.id, [], snapshot=data, **self._conditions())
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
        waits = self._recorded or self.gap.is_unanswered(run.run)
        # One that connected itself is recognised by what it said.
        if acts or waits or view.state is not SessionState.IDLE or view.machine == INBOUND:
            return
        self.run = None
        self._stale = self._deferred = self._rests = True

    def _snapshot(self, run: Run, events: Sequence[Event]) -> bytes | None:
        """The state after these events, which are recorded and not journalled yet."""
        if self.port is None or not run.state.said:
            return self._pace.note_taken(
                None
            )  # its CLI may have read nothing yet: it is sent all again
        sent = {each.number: bytes(each.line) for each in events if isinstance(each, Sent)}
        return self._pace.note_taken(snapshot(run.state, self.port.unwritten() | sent))

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
            spec = spec_of(view, starting)
            # Another machine, which has not come back yet, or without the sandbox that must be.
            with suppress(NotFound, LaunchError):
                return self.machines.start(run, self.id, spec, starting.origin)
        return self.machines.attach(run, self.id, view.machine or "", said=view.said)

    # --- what changes it -----------------------------------------------------------------------

    async def rule(self, question: CallQuestion, spec: SessionSpec) -> Ruling:
        """What the rules say about a call.

        If it is cancelled, lines may be in memory that are not in the journal.
        """
        try:
            return await self.policy_context.rule(question, spec)
        except BaseException:
            self._stale = True
            raise

    def note(self, event: Event, message: Message | None, at: int) -> LineReport | None:
        """Fold an event that is to be journalled into the state of the run, at a time in ms.

        `message` is what its line says, if it is known. Returns the report on a line of the CLI.
        """
        self._recorded.append(event)
        return None if self.run is None else self.run.state.evolve(event, at, message)

    async def append(self) -> list[Event]:
        """Journal the noted events, and fold them into the view. Returns them."""
        if self._disowned_for_good:
            raise StaleFence(f"session {self.id}")
        recorded, self._recorded = self._recorded, []
        if not recorded:
            return recorded
        run = self.run
        takes = 0 if self.fleet is None else self.fleet.takes
        for event in recorded:
            if isinstance(event, RunStarting):
                self.starts_on = event.machine or None
        data = self._snapshot(run, recorded) if run is not None and self._pace.due else None
        try:
            stored = await self.journal.append(
                self.id, recorded, snapshot=data, **self._conditions()
            )
        except StaleFence:
            self._stale = True
            if self.fleet is not None and self.fleet.takes == takes:  # else it may be back already
                self._note_disowned(recorded)
            raise
        except BaseException:
            # The events are in memory, and not in the journal; or a cancelled append stores them
            # later.
            self._stale = True
            raise
        if self._disowned_for_good:  # another hub goes on behind what was just stored
            raise StaleFence(f"session {self.id}")
        if data is None:
            self._pace.note(stored)
        self._fold(stored)
        return recorded

    def _conditions(self) -> _Conditions:
        """What must hold when something is journalled: with several hubs this one must own it."""
        if self.fleet is None:
            return {}
        return {"after": 0 if self._view is None else self._view.head, "claim": self.fleet.id}

    def _note_disowned(self, events: Sequence[Event]) -> None:
        """The journal says that another hub owns it, or the machine of the run to begin."""
        started = next((each for each in events if isinstance(each, RunStarting)), None)
        view = self._view
        machine = None if view is None else view.machine
        if started is not None and (view is None or view.run is None):
            machine = started.machine
        if self.fleet is not None:
            self.fleet.stale(self.id, machine)

    def _fold(self, stored: Sequence[Stored]) -> None:
        """Fold what is journalled into the view. Runs begin and end with it."""
        for one in stored:
            self.supervisor.note(self._view, one)
            self._view = fold(self._view, one)
            match one.event:
                case RunStarting() as starting:
                    self._begin_run(starting)
                case RunEnded(run=run) if self.run is not None and self.run.run == run:
                    self.run = self.unheard = None
                case _:
                    pass

    def _begin_run(self, starting: RunStarting) -> None:
        """A run has begun, and that is journalled."""
        self._pace = SnapshotPace()
        self.run = Run(self.id, starting.run, self.view.spec, self.view.holds)
        self.run.begin(starting, self.supervisor.now)
        self.run_held = starting.run
        origin = starting.origin
        self.continues = None if origin.fork or origin.at else origin.cli_session
