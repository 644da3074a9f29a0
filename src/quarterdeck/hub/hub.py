"""The hub: all sessions, all machines; commands in, events out.

Owns which sessions are in memory and who gets a command; what a command means for a session is
`session`'s business. It holds no state that the journal does not: after a restart it reads from
there what runs, and goes on.

The module is long because it is the whole API of the hub: each front finds every call here.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.errors import (
    Conflict,
    JournalError,
    NotFound,
    QuarterdeckError,
    StaleFence,
    StaleLease,
    UsageError,
)
from quarterdeck.domain.ids import new_id
from quarterdeck.hub.agent_tokens import agent_token, read_agent_token
from quarterdeck.hub.call_record import CHANGES, CHANGES_NAME, CallRecord
from quarterdeck.hub.checkpoints import find_checkpoint
from quarterdeck.hub.cli_access import CliAccess
from quarterdeck.hub.cli_tokens import CliTokens
from quarterdeck.hub.closed_files import ClosedFiles
from quarterdeck.hub.decisions.inputs import Adopt, Create
from quarterdeck.hub.decisions.starts import check_machine, check_options
from quarterdeck.hub.ended_asks import waiting_asks
from quarterdeck.hub.fleet import Fleet, PeerOffline, RemoteAgent
from quarterdeck.hub.inbound_clis import InboundClis
from quarterdeck.hub.lines import take_content
from quarterdeck.hub.live import Live
from quarterdeck.hub.moves import Moves
from quarterdeck.hub.new_sessions import check_new, origin_of
from quarterdeck.hub.permissions.deadlines import overdue
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.hub.permissions.sandbox import owners_rules, sandbox_request
from quarterdeck.hub.permissions.service import PolicyService
from quarterdeck.hub.ports import Machines, RunPort
from quarterdeck.hub.program_specs import program_spec
from quarterdeck.hub.programs import Dialler, Programs
from quarterdeck.hub.reviews import Reviews
from quarterdeck.hub.rewinds import rewind
from quarterdeck.hub.root_clis import session_with
from quarterdeck.hub.runners import Runners
from quarterdeck.hub.session import Session
from quarterdeck.hub.session_memory import LoadedSessions
from quarterdeck.hub.session_process import ProcessEvents
from quarterdeck.hub.session_requests import check_answerer, submit
from quarterdeck.hub.shell import carry_out, handle
from quarterdeck.hub.supervision.budgets import Limits, usage_report
from quarterdeck.hub.supervision.supervisor import Supervisor
from quarterdeck.hub.supervision.watchdog import Timeouts
from quarterdeck.hub.transcript_in_use import TranscriptInUse
from quarterdeck.hub.workers import Workers
from quarterdeck.hub.worktrees import Worktrees, folder_of
from quarterdeck.journal.base import Follower, Journal, Owner
from quarterdeck.journal.ownership import lease_for
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.audit import AuditKind, AuditPage
from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.protocol.events import Event, PromptQueued, RunStarting, SessionCreated
from quarterdeck.protocol.modes import resumed_spec
from quarterdeck.protocol.runner_frames import Program, RunReport
from quarterdeck.protocol.sandbox import SandboxRequest
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import INBOUND, LOCAL, PROGRAM, UNMANAGED, Origin, SessionSpec
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.protocol.usage import UsageBy, UsageReport
from quarterdeck.protocol.views import AskView, Deltas, MachineView, Piece
from quarterdeck.runtime.tasks import background_tasks

log = logging.getLogger(__name__)

CLOCK_SECONDS = 1.0
"""How often questions that may not wait for ever are looked at."""
RESTORED_AT_ONCE = 10_000
"""Events that are folded before the hub serves, of all sessions together: a third of a second."""
STOP_SECONDS = 3.0
"""How long the snapshots of all sessions may take when the hub stops."""
ORPHANS, RETENTION = "clock", "retention"
"""The leases of what one hub does for all."""
ORPHAN_SECONDS = 5.0
"""How often machines without a hub are looked for."""
CLOCK_AT_ONCE = 16
"""Sessions that are looked at before others may go on."""


class _AllMachines:
    """Machines of both kinds: with a runner, and CLIs that dial."""

    def __init__(
        self,
        runners: Runners,
        inbound: InboundClis,
        programs: Programs,
        run_env: Callable[[str], Mapping[str, str]],
        sandbox: Callable[[str, SessionSpec], SandboxRequest],
        agent_token: Callable[[str, str], str],
    ) -> None:
        self._runners = runners
        self._agent_token = agent_token
        self._inbound = inbound
        self._programs = programs
        self._run_env = run_env
        self._sandbox = sandbox

    def start(self, run: str, session: str, spec: SessionSpec, origin: Origin) -> RunPort:
        """A CLI can be started by a runner only. What the session's own variables say, holds."""
        sandbox = self._sandbox(session, spec)
        if more := self._run_env(run):
            spec = replace(spec, env={**more, **spec.env})
        token = self._agent_token(session, run) if spec.agents else ""
        return self._runners.start(run, session, spec, origin, sandbox, token)

    def attach(self, run: str, session: str, machine: str, *, said: int) -> RunPort:
        """Take hold of a run where it is."""
        if machine == INBOUND:
            return self._inbound.attach(run, session, said=said)
        if machine == PROGRAM:
            return self._programs.attach(run, session, said=said)
        return self._runners.attach(run, session, machine, said=said)


_STARTING = (cmd.SendPrompt, cmd.ResumeSession, cmd.AnswerAsk, cmd.RewindSession)
"""Commands that start a run of a session that has none."""


def _machine_of(view: SessionView) -> str:
    """Where a session runs, or would run."""
    return (view.machine if view.run is not None else view.spec.machine) or LOCAL


def _is_on(session: Session, machine: str) -> bool:
    """Whether a session runs on a machine, or is just being started there."""
    if session.known and _machine_of(session.view) == machine:
        return True
    running = session.known and session.view.run is not None
    return not running and (session.starts_on or LOCAL) == machine


class Hub:
    """The service behind every front."""

    def __init__(
        self,
        journal: Journal,
        check_runner: Callable[[str], str | None],
        *,
        cli_secret: bytes | None = None,
        cli_tokens: CliTokens | None = None,
        machines: Machines | None = None,
        run_env: Callable[[str], Mapping[str, str]] = lambda _: {},
        limits: Limits | None = None,
        timeouts: Timeouts | None = None,
        now: Callable[[], float] = time.time,
        policies: Policies | None = None,
        transcripts_in_use: TranscriptInUse | None = None,
        check_program: Callable[[str], Dialler | None] = lambda _: None,
        fleet: Fleet | None = None,
    ) -> None:
        """`run_env` gives variables for the CLI of a run, by its id. `fleet`: with other hubs."""
        self.fleet = fleet
        self._transcripts_in_use = transcripts_in_use
        self.runners = Runners(self._owner, check_runner)
        self._secret = cli_secret or os.urandom(32)
        tokens = cli_tokens or CliTokens(self._secret)
        self.inbound = InboundClis(tokens, self._owner, self._adopt, self._said_at_root)
        self.programs = Programs(self._owner, check_program, self._adopt_program)
        self.program_ask_seconds: float | None = None
        """How long a question of a program's agent waits; None: without limit."""
        self._machines = machines or _AllMachines(
            self.runners,
            self.inbound,
            self.programs,
            run_env,
            self._sandbox_of,
            lambda session, run: agent_token(self._secret, session, run),
        )
        self._journal = journal
        if fleet is not None:
            fleet.disown = self._disown
            self.runners.claim = self._claim
            self.runners.is_journalled = self._is_journalled
            self.runners.requests.remote = fleet.run_remote
            self.inbound.remote = lambda uuid: session_with(journal, uuid, fleet.holds)
        self._sessions = LoadedSessions()
        sessions = (
            self._find,
            lambda id_: self._sessions.keep(self._make(id_, None)),
            self._sessions.forget,
        )
        self.calls = CallRecord(*sessions)
        changes = CallRecord(*sessions, record=CHANGES, name=CHANGES_NAME)
        self.cli_access = CliAccess(self.inbound, self.session, self._find, changes.add_note)
        self._live = Live()
        self._tasks: TaskGroup | None = None
        self._beginning: dict[str, int] = {}
        """How many tasks are about to begin each session that is not journalled yet."""
        self.policies = policies or Policies()
        self.policies.far = self.runners.private_on
        self.workers = Workers()
        self.policy = PolicyService(journal, self.policies, workers=self.workers)
        self._supervisor = Supervisor(limits, timeouts, now=now)
        closed = ClosedFiles(self.policies)
        self.worktree_service = Worktrees(self.runners.requests, self._find, closed)
        self.reviews = Reviews(self.runners.requests, self._find, closed)
        self._moves = Moves(
            journal, self.runners.requests, self.runners.is_connected, lambda: self.runners.local
        )

    def change(self, *, limits: Limits | None = None, timeouts: Timeouts | None = None) -> None:
        """Have other limits, or other timeouts, from now on."""
        self._supervisor.limits = limits or self._supervisor.limits
        self._supervisor.timeouts = timeouts or self._supervisor.timeouts

    def _sandbox_of(self, id_: str, spec: SessionSpec) -> SandboxRequest:
        """What the machine of a session is asked for, by the rules that hold now."""
        session = self._sessions.get(id_)
        view = session.view if session is not None and session.known else None
        rules = owners_rules(self.policies.rules_for(spec), self.policies.grants)
        return sandbox_request(spec, rules, view.user if view else "")

    def _owner(self, id_: str) -> ProcessEvents | None:
        session = self._sessions.get(id_)
        return None if session is None else ProcessEvents(session)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Load the running sessions from the journal, and run the clock, while the block runs."""
        await self._supervisor.load(self._journal)
        later = await self._take_up()
        try:
            async with background_tasks() as tasks:
                tasks.start_soon(self._restore_later, later)
                tasks.start_soon(self._keep_clock)
                if self.fleet is not None:
                    tasks.start_soon(self.fleet.show)
                    if self.runners.local != LOCAL:  # its runner dials no other hub
                        await self._claim(self.runners.local)
                self.inbound.run_in(tasks)
                self._tasks = tasks
                yield
        finally:
            with anyio.move_on_after(STOP_SECONDS, shield=True):
                await self._store_snapshots()
            await self.workers.close()

    async def _take_up(self, machine: str | None = None) -> list[Session]:
        """Load the running sessions, or those of a machine that this hub has just taken.

        Returns those whose runs are yet to be restored. With several hubs none is loaded before its
        runner is here.
        """
        after: str | None = None
        left = RESTORED_AT_ONCE
        later: list[Session] = []
        while page := await self._journal.summaries(after=after, limit=500, archived=None):
            after = page[-1].session
            for view in page:
                self._supervisor.know(view)
                if self.fleet is not None and _machine_of(view) != machine:
                    continue
                if view.run is None and not self._supervisor.restarts(view):
                    continue
                session = self._sessions.keep(self._make(view.session, view))
                events = await session.events_to_fold()
                if events <= left or view.machine == INBOUND:  # which CLI it is, the run tells
                    left -= events
                    await session.restore()
                else:
                    await session.attach()
                    later.append(session)
        return later

    async def _restore_later(self, sessions: list[Session]) -> None:
        """Restore long runs while the hub serves already, the shortest first."""
        for session in sorted(sessions, key=lambda one: one.view.head - one.view.run_began):
            try:
                await session.restore()
            except (
                QuarterdeckError
            ) as error:  # the next command tries again, and fails with the reason
                log.error("session %s cannot be restored: %s", session.id, error)

    async def _store_snapshots(self) -> None:
        """Before an orderly stop: the next start then has less to fold."""
        for session in self._sessions:
            if session.needs_snapshot:
                async with session.in_order():
                    await session.store_snapshot()

    # --- with other hubs -----------------------------------------------------------------------

    async def _claim(self, machine: str) -> None:
        """A machine's runner is here: have its sessions in memory, as the journal has them."""
        if self.fleet is None:
            return
        later: list[Session] = []

        async def load() -> None:
            later.extend(await self._take_up(machine))

        await self.fleet.take(machine, load)
        if later and self._tasks is not None:
            self._tasks.start_soon(self._restore_later, later)

    async def _is_journalled(self, machine: str, report: RunReport) -> bool:
        """Whether the journal has a run of a machine. If so, the machine is loaded again."""
        view = await self._journal.summary(report.session)
        if view is None or view.run != report.run or _machine_of(view) != machine:
            return False
        self._disown(machine, None)
        return True

    async def keep_orphans(self) -> None:
        """Look after sessions whose hub is gone, until their machines come to some hub.

        One hub does so for all, under the lease `ORPHANS`.
        """
        fleet = self.fleet
        assert fleet is not None

        async def load(machine: str) -> None:
            later = await self._take_up(machine)
            if later and self._tasks is not None:
                self._tasks.start_soon(self._restore_later, later)

        while True:
            try:
                await fleet.adopt(load, lease_for(ORPHANS))
            except StaleLease:
                raise  # another hub does so
            except JournalError as error:
                log.error("whether each machine has a hub is not known: %s", error)
            await anyio.sleep(ORPHAN_SECONDS)

    def _disown(self, machine: str, session: str | None) -> None:
        """Another hub holds a machine now, or one session alone: forget all of it."""
        if self.fleet is None:
            return
        lost = [
            each
            for each in self._sessions
            if each.id == session or (session is None and _is_on(each, machine))
        ]
        self.fleet.lose(machine, session)
        if session is None:
            self.runners.disown(machine)
        for each in lost:
            port = each.port
            each.disown()
            if session is not None and port is not None:
                port.forget()  # the socket of a CLI or of a program; it dials again
            self._sessions.forget(each.id)

    async def _route(self, command: AnyCommand) -> Outcome:
        """Have the hub that owns a session, or is to start one, do a command."""
        fleet = self.fleet
        assert fleet is not None
        if isinstance(command, cmd.CreateSession):
            command = await self._with_machine(
                replace(command, session=command.session or new_id())
            )

        async def find() -> Owner | None:
            view, machine = await self._place_of(command)
            return await fleet.owner(view, machine)

        def here() -> Awaitable[Outcome]:
            return self.submit_here(command)

        try:
            return await fleet.route(find, here, command)
        except PeerOffline:
            if not await self._take_from_dead_hub(command):
                raise
            return await fleet.route(find, here, command)

    async def _take_from_dead_hub(self, command: AnyCommand) -> bool:
        """A person moves a session away from a machine whose hub is away, too: take that machine.

        Its fence is raised: the other hub can write nothing more to its sessions. If that hub is
        there after all, its runner connects anew, to any hub.
        """
        if not isinstance(command, cmd.MoveSession):
            return False
        view = await self._journal.summary(command.session)
        if view is None or view.run is None or view.machine in UNMANAGED:
            return False
        await self._claim(_machine_of(view))
        return True

    async def _with_machine(self, command: cmd.CreateSession) -> cmd.CreateSession:
        """The command with the name of the machine: `local` is another one for each hub."""
        spec = self.worktree_service.resolve(command.spec)
        if spec.machine is not None:
            return command
        machine = self.runners.local
        if machine == LOCAL and not any(each.name == LOCAL for each in self.runners.machines()):
            there = sorted(
                (each for each in await self.machines() if each.connected),
                key=lambda each: (each.runs, each.name),
            )
            machine = there[0].name if there else LOCAL
        return replace(command, spec=replace(command.spec, machine=machine))

    async def _place_of(self, command: AnyCommand) -> tuple[SessionView | None, str | None]:
        """The session of a command, and the machine on which it may start a run."""
        match command:
            case cmd.CreateSession(spec=spec):
                return None, self.worktree_service.resolve(spec).machine or LOCAL
            case cmd.ForkSession(session=id_):
                view = await self._journal.summary(id_)
                return None, None if view is None else view.spec.machine or LOCAL
            case cmd.MoveSession(session=id_, machine=machine):
                return await self._journal.summary(id_), machine
            case cmd.AnswerAsk(ask=ask):
                view = await self._journal.summary(ask.partition(".")[0])
            case _:
                view = await self._journal.summary(command.session)
        if view is None or view.spec.machine in UNMANAGED or not isinstance(command, _STARTING):
            return view, None
        return view, view.spec.machine or LOCAL

    # --- commands ------------------------------------------------------------------------------

    async def submit(self, command: AnyCommand) -> Outcome:
        """Do what a command asks for; with several hubs, where its session is."""
        return await (self.submit_here(command) if self.fleet is None else self._route(command))

    async def submit_here(self, command: AnyCommand) -> Outcome:
        """Do what a command asks for, in this hub."""
        match command:
            case cmd.CreateSession():
                return await self.spawn(command)
            case cmd.ForkSession():
                return await self._fork(command)
            case cmd.DeleteSession():
                return await self._delete(command)
            case cmd.MoveSession(session=id_):
                session = await self._find(id_)
                await self._check_owner(session)
                return await self._moves.move(session, command)
            case cmd.AnswerAsk(ask=ask):
                session = await self._find(ask.partition(".")[0], ask)
                await check_answerer(session, command)
            case _:
                session = await self._find(command.session)
        if isinstance(command, cmd.ResumeSession | cmd.SendPrompt):
            await self._check_owner(session)
        if isinstance(command, cmd.RewindSession):
            return await rewind(session, command)
        return await submit(session, command)

    def agent_of(self, token: str) -> SessionView | None:
        """The session whose agent has this token; None for a wrong one, or if its run has ended."""
        found = read_agent_token(self._secret, token)
        view = self.view(found.session) if found is not None else None
        if found is None or view is None or view.run != found.run or not view.spec.agents:
            return None
        return view

    def agent_token_of(self, session: str, run: str) -> str:
        """The token of a run, for another hub that has checked it; `agent_of` checks the run."""
        return agent_token(self._secret, session, run)

    async def remote_agent(self, token: str) -> RemoteAgent | None:
        """The other hub that has the session whose agent has this token; None for a wrong one."""
        found = read_agent_token(self._secret, token)
        if self.fleet is None or found is None:
            return None
        view = await self._journal.summary(found.session)
        if view is None or view.run != found.run or not view.spec.agents:
            return None
        owner = await self.fleet.owner(view, None)
        if owner is None:
            return None
        return RemoteAgent(owner=owner, session=found.session, run=found.run)

    async def spawn(
        self, command: cmd.CreateSession, lineage: tuple[str, ...] = (), person: str = ""
    ) -> Outcome:
        """Create a session, for a person or for the agent of the last session of a lineage.

        The spec of an agent is taken as it is: what it inherits is complete.
        """
        id_ = command.session or new_id()
        if "." in id_:
            raise UsageError("session: an id has no dot")
        events: list[Event] = []
        prompt = None
        if command.prompt:  # first: a large one takes a while, and another task may be faster
            prompt = command.prompt_id or new_id()
            content = await take_content(command.prompt)
            events.append(PromptQueued(prompt=prompt, content=content, by=command.by))
        if await self._is_made(id_):
            return Outcome(session=id_, repeated=True)
        spec = command.spec if lineage else self._resolve(command.spec)
        created = SessionCreated(spec=spec, by=command.by, lineage=lineage, person=person)
        self.policies.check(created.spec.policy)
        check_new(spec)
        origin = await origin_of(command, spec, self.runners.requests)
        if not await self._begin(id_, created, events, origin):
            return Outcome(session=id_, repeated=True)
        return Outcome(session=id_, prompt=prompt)

    def _resolve(self, spec: SessionSpec) -> SessionSpec:
        """The spec of a person's session, with the defaults of its project and of its policy."""
        spec = self.worktree_service.resolve(spec)
        given = any(policy.agents for policy in self.policies.rules_for(spec).policies)
        return replace(spec, agents=True) if given and not spec.agents else spec

    def _said_at_root(self, id_: str, run: str, uuid: str) -> bool:
        session = self._sessions.get(id_)
        return session is not None and ProcessEvents(session).said_at_root(run, uuid)

    async def _adopt(
        self, id_: str, back: bool, address: str | None, at_root: bool = False
    ) -> None:
        """A CLI that the hub did not start has connected: begin or continue a session with it.

        One that was there before (`back`) and has no run any more was ended, and stays so. What it
        began is resumed by the runner at the same address, if there is one.
        """
        session = await self._inbound_session(id_)
        if back and session.known:
            return
        machine = self.runners.at(address) or INBOUND
        spec = SessionSpec(directory="/", machine=None if machine == LOCAL else machine)
        created = SessionCreated(spec=spec, by="cli")
        starting = RunStarting(run=new_id(), machine=INBOUND, at_root=at_root)
        try:
            await handle(session, Adopt(created=created, starting=starting))
        except StaleFence as error:  # it has a process, at another hub
            log.warning("a CLI connected for session %s: %s", id_, error)

    async def _inbound_session(self, id_: str) -> Session:
        """The session of a CLI or program that connected; with several hubs it is this hub's."""
        try:
            session = await self._find(id_)
        except NotFound:
            session = self._sessions.keep(self._make(id_, None))
        if self.fleet is not None:
            view = session.view if session.known else None
            if view is not None and view.run is not None and view.machine in UNMANAGED:
                if not session.held:
                    await self.fleet.take_session(id_)
                    await session.restore()
            else:
                self.fleet.own_session(id_)
        return session

    async def _adopt_program(self, hello: Program, by: str, address: str | None) -> bool:
        """A program has connected: begin its session, or find it. False: its run is over.

        What it began can be resumed by the runner at the same address, if there is one. Raises
        `UsageError` if what it says of itself is no session.
        """
        session = await self._inbound_session(hello.session)
        if session.known:
            return session.view.run == hello.run
        machine = self.runners.at(address) or PROGRAM
        spec, complete = program_spec(hello)
        spec = replace(
            spec,
            machine=None if machine == LOCAL else machine,
            ask_timeout=self.program_ask_seconds,
        )
        starting = RunStarting(
            run=hello.run,
            machine=PROGRAM,
            mode=hello.mode,
            skip_permissions=hello.skip_permissions,
            own_options=not complete,
        )
        created = SessionCreated(spec=spec, by=by)
        await handle(session, Adopt(created=created, starting=starting))
        return session.view.run == hello.run

    async def _fork(self, command: cmd.ForkSession) -> Outcome:
        id_ = command.copy or new_id()
        if "." in id_:
            raise UsageError("copy: an id has no dot")
        parent = (await self._find(command.session)).view
        if await self._is_made(id_):
            return Outcome(session=id_, repeated=True)
        if parent.cli_session is None:
            raise Conflict("nothing_said", "there is nothing to fork: no turn has begun yet")
        spec = resumed_spec(parent.spec, parent.mode)
        check_machine(spec, parent.session)
        check_options(parent)
        created = SessionCreated(spec=spec, by=command.by, parent=parent.session)
        origin = Origin(cli_session=parent.cli_session, fork=True, at=command.at)
        if command.before is not None:
            origin = await self._before(parent, command.before)
        if command.worktree is not None:
            if command.worktree == spec.worktree:
                raise UsageError("worktree: the session itself works on this branch")
            created = replace(created, spec=replace(spec, worktree=command.worktree))
            origin = replace(origin, folder=folder_of(parent))
        if not await self._begin(id_, created, [], origin):
            return Outcome(session=id_, repeated=True)
        if command.name:
            rename = cmd.RenameSession(session=id_, name=command.name, by=command.by)
            await handle(self._sessions[id_], rename)
        return Outcome(session=id_)

    async def _before(self, parent: SessionView, prompt: str) -> Origin:
        """Where a fork begins that has not seen a prompt of the parent."""
        point = await find_checkpoint(
            lambda after, limit: self._journal.read(parent.session, after=after, limit=limit),
            prompt,
        )
        if point.before is None:
            return Origin()
        conversation = point.conversation or parent.cli_session
        return Origin(cli_session=conversation, fork=True, at=point.before)

    async def _begin(
        self, id_: str, created: SessionCreated, more: list[Event], origin: Origin
    ) -> bool:
        """Begin a session. False: another task was faster. What that fails to do, this one does."""
        if origin.cli_session is not None and not origin.fork:
            self._check_free(origin.cli_session, id_)
        session = self._sessions.keep(self._make(id_, None))
        self._beginning[id_] = self._beginning.get(id_, 0) + 1
        try:
            async with session.in_order():
                if session.known:
                    return False
                await carry_out(session, Create(created=created, more=tuple(more), origin=origin))
                return True
        finally:
            if left := self._beginning.pop(id_) - 1:
                self._beginning[id_] = left
            elif not session.known and self._sessions.get(id_) is session:
                self._sessions.forget(id_)

    async def _is_made(self, id_: str) -> bool:
        """Whether the journal has a session. One that is only in memory may never be stored."""
        session = self._sessions.get(id_)
        known = session is not None and session.known
        return known or await self._journal.summary(id_) is not None

    async def _delete(self, command: cmd.DeleteSession) -> Outcome:
        session = await self._find(command.session)
        if session.running:
            raise Conflict("running", "the session has a process; stop it first")
        if self.fleet is None:
            await self._journal.delete(command.session, by=command.by)
        else:
            head = session.view.head
            await self._journal.delete(
                command.session,
                by=command.by,
                after=head,
                claim=self.fleet.id,
                lease=lease_for(RETENTION),
            )
        await self.policies.forget(command.session)
        self._sessions.forget(command.session)
        return Outcome(session=command.session)

    # --- what can be read ------------------------------------------------------------------------

    @property
    def epoch(self) -> str:
        """Names the journal."""
        return self._journal.epoch

    @property
    def position(self) -> int:
        """The position of the last event."""
        return self._journal.position

    async def reaches(self, position: int) -> bool:
        """Whether the journal has come to this position, also by another hub."""
        return await self._journal.reaches(position)

    async def sessions(
        self, *, after: str | None = None, limit: int = 100, archived: bool = False
    ) -> list[SessionView]:
        """Sessions, newest first."""
        return await self._journal.summaries(after=after, limit=limit, archived=archived)

    async def session(self, session: str) -> SessionView:
        """One session."""
        view = await self._journal.summary(session)
        if view is None:
            raise NotFound("session", session)
        return view

    def view(self, session: str) -> SessionView | None:
        """A session that is in memory."""
        found = self._sessions.get(session)
        if found is None or not found.known or not found.held:
            return None
        return found.view if self.fleet is None or found.view.run is not None else None

    async def events(self, session: str, *, after: int = 0, limit: int = 1000) -> list[Stored]:
        """A session's history."""
        await self.session(session)
        return await self._journal.read(session, after=after, limit=limit)

    async def asks(self, *, session: str | None = None, ended: bool = False) -> list[AskView]:
        """The open questions; also (`ended`) those whose agent has ended and that wait still."""
        asks = await self._journal.open_asks()
        if ended:
            asks += await waiting_asks(self._journal, session)
        found = [ask for ask in asks if session is None or ask.session == session]
        return sorted(found, key=lambda ask: ask.at)

    async def audit(
        self,
        *,
        session: str | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 1000,
    ) -> list[Stored]:
        """Who or what let each call pass, or did not."""
        return await self._journal.audit(session=session, after=after, before=before, limit=limit)

    async def audit_page(
        self,
        kind: AuditKind,
        *,
        before: int,
        after: int = 0,
        session: str | None = None,
        limit: int = 1000,
    ) -> AuditPage:
        """Entries of one kind in the audit log."""
        return await self._journal.audit_page(
            kind, session=session, after=after, before=before, limit=limit
        )

    async def usage(
        self, by: UsageBy, *, since: int | None = None, until: int | None = None
    ) -> UsageReport:
        """What was used."""
        return await usage_report(self._journal, by, since, until)

    async def machines(self) -> list[MachineView]:
        """The machines."""
        here = self.runners.machines()
        if self.fleet is None:
            return here
        names = {each.name for each in here if each.connected}
        far = [each for each in await self.fleet.remote_machines() if each.name not in names]
        known = names | {each.name for each in far}
        return [each for each in here if each.connected or each.name not in known] + far

    def follow(
        self, cursors: Mapping[str, int] | None = None, *, after: int | None = None
    ) -> Follower:
        """Events as they happen."""
        return self._journal.follow(cursors, after=after)

    @property
    def live_text(self) -> Live:
        """The text that is being made, for the way to other hubs."""
        return self._live

    def machines_here(self) -> list[MachineView]:
        """The machines of this hub alone."""
        return self.runners.machines()

    async def ask_machine(self, machine: str, request: Raw) -> tuple[bool, bytes]:
        """Have a machine that is connected here do something, for another hub."""
        return await self.runners.requests.ask(machine, request, here=True)

    def live(self, listener: Callable[[Deltas], None]) -> Callable[[], None]:
        """Deltas as they come."""
        return self._live.listen(listener)

    def so_far(self, session: str) -> tuple[Deltas, ...]:
        """The text of messages that are still being made."""
        return self._live.so_far(session)

    def pieces(self, listener: Callable[[Piece], None]) -> Callable[[], None]:
        """Lines that are not journalled, as they come."""
        return self._live.listen_to_pieces(listener)

    # --- inside --------------------------------------------------------------------------------

    def _make(self, id_: str, view: SessionView | None) -> Session:
        return Session(
            id_,
            self._journal,
            self._machines,
            self._live,
            view,
            self._supervisor,
            self.policies,
            self.fleet,
        )

    async def _find(self, id_: str, ask: str | None = None) -> Session:
        session = self._sessions.get(id_)
        if session is None or not session.held:
            view = await self._journal.summary(id_)
            if view is None:
                raise NotFound("session" if ask is None else "question", ask or id_)
            # While we read, another task may have been faster: then its object is the one. Or
            # another hub has taken the session from the object that was here: it is done for.
            session = self._sessions.get(id_) or self._make(id_, view)
        return self._sessions.keep(session)

    async def _check_owner(self, session: Session) -> None:
        if not session.running and session.view.cli_session is not None:
            if self._transcripts_in_use is not None:
                await self._transcripts_in_use.check(session.view)
            self._check_free(session.view.cli_session, session.id)

    def _check_free(self, cli_session: str, for_session: str) -> None:
        """Two processes on one conversation would spoil it for both."""
        for other in self._sessions:
            if other.id == for_session or not other.running:
                continue
            if cli_session in {other.view.cli_session, other.continues}:
                raise Conflict(
                    "cli_session_in_use", f"the session {other.id} runs this conversation"
                )

    async def _keep_clock(self) -> None:
        while True:
            await anyio.sleep(CLOCK_SECONDS)
            await self._tick_sessions()
            if self.fleet is not None:
                await self._tick_fleet(self.fleet)
            try:
                await self.programs.tick()
            except QuarterdeckError as error:  # the next second tries again
                log.error("programs: %s", error)
            try:
                await self.policies.refresh()
            except OSError as error:  # what holds, holds on
                log.error("the policies cannot be looked at: %s", error)

    async def _tick_fleet(self, fleet: Fleet) -> None:
        """See what other hubs have taken, and what their sessions have spent."""
        try:
            await fleet.look()
            await self._supervisor.load(self._journal)
        except JournalError as error:
            log.error("what other hubs do cannot be seen: %s", error)

    async def _tick_sessions(self) -> None:
        """A method of its own: while the clock waits, it must hold no session."""
        now = time.time() * 1000
        for number, session in enumerate(self._sessions):
            if session.restoring:
                continue  # it would hold up all others
            if not session.held:
                self._sessions.release(session)
                continue
            if number % CLOCK_AT_ONCE == 0:  # hundreds must not hold up what comes meanwhile
                await anyio.lowlevel.checkpoint()
            try:
                await ProcessEvents(session).tick()
            except QuarterdeckError as error:  # the clock must not stop for a full disk
                log.error("session %s: %s", session.id, error)
            for _, answer in list(overdue(session.view, now)) if session.known else ():
                await self._answer_late(session, answer)
            self._sessions.release(session)

    async def _answer_late(self, session: Session, answer: cmd.AnswerAsk) -> None:
        try:
            await submit(session, answer)
        except QuarterdeckError as error:
            log.debug("a question settled itself before its time limit did: %s", error)
