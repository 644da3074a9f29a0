"""The core of a session: its hold on the journal and on its process.

Owns the order in which things happen to a session, one at a time, and what is in memory of it:
never anything that the journal does not have. What cannot be journalled has not happened, and what
is in memory is then read from the journal again. `session` stands above it and knows what people
and processes want; below it are the journal, the machines, and `run`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from msgspec.structs import replace

from quarterdeck.domain.errors import Conflict, NotFound, UsageError
from quarterdeck.domain.ids import new_id
from quarterdeck.hub.live import Live
from quarterdeck.hub.permissions.answers import Reply
from quarterdeck.hub.permissions.context import CallQuestion, PolicyContext, Ruling
from quarterdeck.hub.permissions.modes import resumed_spec
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.hub.ports import DIALLED, Machines, RunPort
from quarterdeck.hub.run import Run
from quarterdeck.hub.supervision.supervisor import Supervisor
from quarterdeck.journal.base import Journal, Stored
from quarterdeck.journal.views import PromptView, SessionView, fold
from quarterdeck.policy.grants import Grant
from quarterdeck.protocol.commands import AnswerAsk
from quarterdeck.protocol.events import (
    AskOpened,
    Event,
    RunEnded,
    RunStarted,
    RunStarting,
    Sent,
    SpecChanged,
    Switched,
)
from quarterdeck.protocol.sessions import Origin, SessionSpec
from quarterdeck.wire.requests import CanUseTool, decode_request

PAGE = 2000
"""Events read at once when a session is restored."""


def check_machine(spec: SessionSpec, session: str) -> None:
    """Raise `Conflict` where no runner could start a CLI: one dialled, from nobody knows where."""
    if spec.machine == DIALLED:
        raise Conflict(
            "dial_again",
            f"the CLI of {session} dialled from a machine that has no runner here: have it dial"
            f" again, as `quarterdeck token --cli --session {session}` tells, or start a runner"
            " there before it dials",
        )


class _InOrder:
    """A lock, and what is to be done first by whoever has it.

    No generator that is made anew: every line of every CLI passes here.
    """

    def __init__(self, order: asyncio.Lock, first: Callable[[], Awaitable[None]]) -> None:
        self._order = order
        self._first = first

    async def __aenter__(self) -> None:
        await self._order.acquire()
        try:
            await self._first()
        except BaseException:
            self._order.release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._order.release()


class SessionCore:
    """What a session is in memory, and how that stays what the journal says."""

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
        self._policies = policies or Policies()
        self._supervisor = supervisor or Supervisor()
        self._journal = journal
        self._machines = machines
        self._live = live
        self._order = asyncio.Lock()
        self._ordered = _InOrder(self._order, self._catch_up)
        self._stale = False
        self._view = view
        self._run: Run | None = None
        self._port: RunPort | None = None
        self._run_held: str | None = None

    @property
    def view(self) -> SessionView:
        """What the journal makes of the session so far."""
        if self._view is None:
            raise NotFound("session", self.id)
        return self._view

    @property
    def known(self) -> bool:
        """Whether anything of it is in the journal."""
        return self._view is not None

    @property
    def running(self) -> bool:
        """Whether it has a process, as far as anybody knows."""
        return self._run is not None

    @property
    def needed(self) -> bool:
        """Whether it has to stay in memory: the journal does not tell all of it, or it acts alone.

        A session that has no process acts alone if the clock may resume it, or may tell that a
        budget has room again.
        """
        if self._view is None or self._run is not None or self._stale or self._order.locked():
            return True
        return bool(self._view.account.budgets) or self._supervisor.restarts(self._view)

    @property
    def _policy_context(self) -> PolicyContext:
        return PolicyContext(self._policies, lambda: self.view)

    # --- from the journal ----------------------------------------------------------------------

    async def restore(self) -> None:
        """Become what the journal says, and take hold again of a process that may still run."""
        async with self._order:
            await self._reload()

    def _in_order(self) -> _InOrder:
        """One thing at a time, and each on top of what the journal has."""
        return self._ordered

    async def _catch_up(self) -> None:
        """Before something is done: what is in memory may not be what the journal has."""
        if self._stale:
            await self._reload()
            await self._supervisor.load(self._journal)

    async def _reload(self) -> None:
        """Forget what is in memory for what is in the journal.

        At the start; and after an append that failed, or that nobody waited for any more: what was
        thought to happen with it has not happened, or has without our knowing.
        """
        self._stale = True
        await self._journal.append(self.id, [])  # what is under way is stored before we read
        view = self._view = await self._journal.summary(self.id)
        held, self._run = self._run_held, None
        if view is None or view.run is None:
            port, self._port, self._run_held = self._port, None, None
            if port is not None:
                port.forget()
        else:
            events = await self._events_after(view.run_began - 1)
            self._run = Run(self.id, view.run, view.spec, view.holds)
            self._run.restore(events, view.holds)
            self._run.watch.touch(self._supervisor.now)
            if self._port is None or held != view.run:
                self._port, self._run_held = self._hold(view, self._run, events), view.run
            for _, event in events:
                if isinstance(event, Sent) and event.run == view.run:
                    self._port.write(event.number, bytes(event.line))
            if view.afresh or view.account.stopping:
                self._port.stop()
        self._stale = False

    async def _events_after(self, seq: int) -> list[tuple[int, Event]]:
        found: list[tuple[int, Event]] = []
        while page := await self._journal.read(self.id, after=seq, limit=PAGE):
            seq = page[-1].seq
            found += [(stored.at, stored.event) for stored in page]
        return found

    def _hold(self, view: SessionView, run: Run, events: Sequence[tuple[int, Event]]) -> RunPort:
        """Take hold of a process; one that its machine may never have heard of is asked for again.

        A machine that has heard of it does not start it twice.
        """
        begun = [event for _, event in events if isinstance(event, RunStarting | RunStarted)]
        match begun:
            case [RunStarting(origin=origin, machine=machine, mode=mode)] if machine != DIALLED:
                spec = replace(view.spec, mode=mode)
                with suppress(NotFound):  # another machine, which has not come back yet
                    return self._machines.start(run.run, self.id, spec, origin)
            case _:
                pass
        return self._machines.attach(run.run, self.id, view.machine or "", said=run.said)

    async def _grant(self, opened: AskOpened, reply: Reply, command: AnswerAsk, now: int) -> None:
        """Keep what is allowed for longer than once, before the CLI hears of it."""
        seconds = getattr(command.answer, "seconds", None)
        if not reply.always and seconds is not None:
            raise UsageError("seconds: only an answer for always has this")
        if not reply.always:
            return
        spec, request = self.view.spec, decode_request(opened.request)
        rules = reply.grants
        if not rules and isinstance(request, CanUseTool):
            given = request.input if reply.edit is None else reply.edit.input
            rules = await self._policy_context.narrowest(opened.tool, given)
        grant = Grant(
            id=new_id(),
            rules=rules,
            by=command.by,
            at=now,
            until=None if seconds is None else now + int(seconds * 1000),
            directory=None if spec.project else spec.directory,
            project=spec.project,
            ask=opened.ask,
        )
        await self._policies.grant(grant)

    # --- what changes it -----------------------------------------------------------------------

    async def record(self, *events: Event) -> None:
        """Journal what happened to it elsewhere."""
        async with self._in_order():
            await self._append(events)

    async def _rule(self, question: CallQuestion, spec: SessionSpec) -> Ruling:
        """What the rules say about a call.

        If nobody waits for it any more, lines may be in memory that are not in the journal.
        """
        try:
            return await self._policy_context.rule(question, spec)
        except BaseException:
            self._stale = True
            raise

    async def _append(self, events: Sequence[Event] = ()) -> None:
        """Journal these events and those that the run has recorded; then let its lines go."""
        run = self._run
        if run is not None:
            run.record(events, self._supervisor.now)
            events = run.take_recorded()
        if not events:
            return
        try:
            stored = await self._journal.append(self.id, events)
        except BaseException:
            # The events are in memory already, and not in the journal; or they will be there, and
            # nobody has waited for it.
            self._stale = True
            raise
        self._fold(stored)
        if self._port is not None:
            for event in events:
                if isinstance(event, Sent):
                    self._port.write(event.number, bytes(event.line))

    def _fold(self, stored: Sequence[Stored]) -> None:
        for one in stored:
            self._supervisor.note(self._view, one)
            self._view = fold(self._view, one)

    async def _start(self, origin: Origin, *events: Event, spec: SessionSpec | None = None) -> None:
        """Have a process started, and journal that with what it is started for.

        A conversation goes on in the mode that holds in it; `spec` says another way to start.
        """
        spec = spec or self._next_spec(origin, events)
        check_machine(spec, self.id)
        run = new_id()
        starting = RunStarting(
            run=run,
            machine=spec.machine or "",
            origin=origin,
            mode=spec.mode,
            skip_permissions=spec.skip_permissions,
        )
        await self._append([*events, starting])
        self._begin_run(starting)
        try:
            self._port = self._machines.start(run, self.id, spec, origin)
        except NotFound as error:
            self._run = self._port = self._run_held = None
            await self._append([RunEnded(run=run, reason=f"It was not started: {error}.")])
            raise

    def _begin_run(self, starting: RunStarting) -> None:
        """A run has begun, and that is journalled."""
        self._run = Run(self.id, starting.run, self.view.spec, self.view.holds)
        self._run.begin(starting, self._supervisor.now)
        self._run_held = starting.run

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

    async def _send_next(self) -> None:
        """Send the oldest queued prompt, if the CLI is ready for it."""
        run = self._run
        if run is None or not self._may_send(run):
            return
        following = self._next_unsent(run)
        if following is not None:
            again = following.run is not None
            now = self._supervisor.now
            run.prompt(following.prompt, following.content, now, again=again)
            await self._append()

    def _may_send(self, run: Run) -> bool:
        """Whether a prompt would begin at once, and may."""
        return run.idle and not self.view.afresh and not self._supervisor.held(self.view, run)

    def _next_unsent(self, run: Run) -> PromptView | None:
        """The oldest prompt that was not given to this run."""
        return next((one for one in self.view.unsent if one.run != run.run), None)
