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
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
from msgspec.structs import replace

from quarterdeck.domain.errors import Conflict, NotFound, QuarterdeckError, UsageError
from quarterdeck.domain.ids import new_id
from quarterdeck.hub import session_answers, session_commands
from quarterdeck.hub.agent_tokens import agent_token, read_agent_token
from quarterdeck.hub.api import Deltas, MachineView, Piece
from quarterdeck.hub.checkpoints import find_checkpoint
from quarterdeck.hub.cli_access import CliAccess
from quarterdeck.hub.cli_tokens import CliTokens
from quarterdeck.hub.closed_files import ClosedFiles
from quarterdeck.hub.ended_asks import waiting_asks
from quarterdeck.hub.inbound_clis import InboundClis
from quarterdeck.hub.lines import take_content
from quarterdeck.hub.live import Live
from quarterdeck.hub.loaded import LoadedSessions
from quarterdeck.hub.new_sessions import check_new, origin_of
from quarterdeck.hub.permissions.deadlines import overdue
from quarterdeck.hub.permissions.modes import resumed_spec
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.hub.permissions.sandbox import owners_rules, sandbox_request
from quarterdeck.hub.permissions.service import PolicyService
from quarterdeck.hub.ports import DIALLED, PROGRAM, Machines, RunPort
from quarterdeck.hub.programs import Dialler, Programs
from quarterdeck.hub.reviews import Reviews
from quarterdeck.hub.runners import LOCAL, Runners
from quarterdeck.hub.session import Session, check_machine
from quarterdeck.hub.session_commands import HANDLERS
from quarterdeck.hub.session_process import ProcessEvents
from quarterdeck.hub.supervision.budgets import Limits
from quarterdeck.hub.supervision.supervisor import Supervisor
from quarterdeck.hub.supervision.watchdog import Timeouts
from quarterdeck.hub.transcript_in_use import TranscriptInUse
from quarterdeck.hub.usage import usage_report
from quarterdeck.hub.workers import Workers
from quarterdeck.hub.worktrees import Worktrees
from quarterdeck.journal.base import Follower, Journal, Stored
from quarterdeck.journal.usage import UsageBy, UsageReport
from quarterdeck.journal.views import AskView, SessionView
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.protocol.events import Event, PromptQueued, RunStarting, SessionCreated
from quarterdeck.protocol.runner_frames import Program
from quarterdeck.protocol.sandbox import SandboxRequest
from quarterdeck.protocol.sessions import Origin, SessionSpec
from quarterdeck.runtime.tasks import background_tasks

log = logging.getLogger(__name__)

CLOCK_SECONDS = 1.0
"""How often questions that may not wait for ever are looked at."""
RESTORED_AT_ONCE = 10_000
"""Events that are folded before the hub serves, of all sessions together: a third of a second."""
STOP_SECONDS = 3.0
"""How long the snapshots of all sessions may take when the hub stops."""
CLOCK_AT_ONCE = 16
"""Sessions that are looked at before others may go on."""


class _AllMachines:
    """Machines of both kinds: with a runner, and CLIs that dial."""

    def __init__(
        self,
        runners: Runners,
        dialled: InboundClis,
        programs: Programs,
        run_env: Callable[[str], Mapping[str, str]],
        sandbox: Callable[[str, SessionSpec], SandboxRequest],
        agent_token: Callable[[str, str], str],
    ) -> None:
        self._runners = runners
        self._agent_token = agent_token
        self._dialled = dialled
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
        if machine == DIALLED:
            return self._dialled.attach(run, session, said=said)
        if machine == PROGRAM:
            return self._programs.attach(run, session, said=said)
        return self._runners.attach(run, session, machine, said=said)


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
        elsewhere: TranscriptInUse | None = None,
        check_program: Callable[[str], Dialler | None] = lambda _: None,
    ) -> None:
        """`run_env` gives variables for the CLI of a run, by its id."""
        self._elsewhere = elsewhere
        self.runners = Runners(self._owner, check_runner)
        self._secret = cli_secret or os.urandom(32)
        tokens = cli_tokens or CliTokens(self._secret)
        self.dialled = InboundClis(tokens, self._owner, self._adopt, self._said_at_root)
        self.cli_access = CliAccess(self.dialled, self.session, self._find)
        self.programs = Programs(self._owner, check_program, self._adopt_program)
        self.program_ask_seconds: float | None = None
        """How long a question of a program's agent waits; None: without limit."""
        self._machines = machines or _AllMachines(
            self.runners,
            self.dialled,
            self.programs,
            run_env,
            self._sandbox_of,
            lambda session, run: agent_token(self._secret, session, run),
        )
        self._journal = journal
        self._sessions = LoadedSessions()
        self._live = Live()
        self.policies = policies or Policies()
        self.policies.far = self.runners.private_on
        self.workers = Workers()
        self.policy = PolicyService(journal, self.policies, workers=self.workers)
        self._supervisor = Supervisor(limits, timeouts, now=now)
        closed = ClosedFiles(self.policies)
        self.worktree_service = Worktrees(self.runners.requests, self._find, closed)
        self.reviews = Reviews(self.runners.requests, self._find, closed)

    def change(self, *, limits: Limits | None = None, timeouts: Timeouts | None = None) -> None:
        """Have other limits, or more or less patience, from now on."""
        self._supervisor.limits = limits or self._supervisor.limits
        self._supervisor.timeouts = timeouts or self._supervisor.timeouts

    def _sandbox_of(self, id_: str, spec: SessionSpec) -> SandboxRequest:
        """What the machine of a session is asked for, by the rules that hold now."""
        view = self.view(id_)
        rules = owners_rules(self.policies.rules_for(spec), self.policies.grants)
        return sandbox_request(spec, rules, view.user if view else "")

    def _owner(self, id_: str) -> ProcessEvents | None:
        session = self._sessions.get(id_)
        return None if session is None else ProcessEvents(session)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Load the running sessions from the journal, and run the clock, while the block runs."""
        await self._supervisor.load(self._journal)
        later = await self._take_up()
        try:
            async with background_tasks() as tasks:
                tasks.start_soon(self._restore_later, later)
                tasks.start_soon(self._keep_clock)
                self.dialled.run_in(tasks)
                yield
        finally:
            with anyio.move_on_after(STOP_SECONDS, shield=True):
                await self._store_snapshots()
            await self.workers.close()

    async def _take_up(self) -> list[Session]:
        """Load the running sessions. Returns those whose runs are yet to be restored."""
        after: str | None = None
        left = RESTORED_AT_ONCE
        later: list[Session] = []
        while page := await self._journal.summaries(after=after, limit=500, archived=None):
            after = page[-1].session
            for view in page:
                self._supervisor.know(view)
                if view.run is None and not self._supervisor.restarts(view):
                    continue
                session = self._sessions.keep(self._make(view.session, view))
                events = await session.events_to_fold()
                if events <= left or view.machine == DIALLED:  # which CLI it is, the run tells
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

    # --- commands ------------------------------------------------------------------------------

    async def submit(self, command: AnyCommand) -> Outcome:
        """Do what a command asks for."""
        match command:
            case cmd.CreateSession():
                return await self.spawn(command)
            case cmd.ForkSession():
                return await self._fork(command)
            case cmd.DeleteSession():
                return await self._delete(command)
            case cmd.AnswerAsk(ask=ask):
                session = await self._find(ask.partition(".")[0], ask)
                await session_answers.check_answerer(session, command)
            case _:
                session = await self._find(command.session)
        if isinstance(command, cmd.ResumeSession | cmd.SendPrompt):
            await self._check_owner(session)
        return await HANDLERS[type(command)](session, command)

    def agent_of(self, token: str) -> SessionView | None:
        """The session whose agent has this token; None for a wrong one, or if its run has ended."""
        found = read_agent_token(self._secret, token)
        view = self.view(found.session) if found is not None else None
        if found is None or view is None or view.run != found.run or not view.spec.agents:
            return None
        return view

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
        known = id_ in self._sessions or await self._journal.summary(id_) is not None
        if known or id_ in self._sessions:  # another task may have been faster while we read
            return Outcome(session=id_, repeated=True)
        spec = command.spec if lineage else self._resolve(command.spec)
        created = SessionCreated(spec=spec, by=command.by, lineage=lineage, person=person)
        self.policies.check(created.spec.policy)
        check_new(spec)
        origin = await origin_of(command, spec)
        if id_ in self._sessions:  # the disk was read meanwhile
            return Outcome(session=id_, repeated=True)
        await self._begin(id_, created, events, origin)
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
        """A CLI that the hub did not start has dialled: begin or continue a session with it.

        One that was there before (`back`) and has no run any more was ended, and stays so. What it
        began is resumed by the runner at the same address, if there is one.
        """
        try:
            session = await self._find(id_)
        except NotFound:
            session = self._sessions.keep(self._make(id_, None))
        if back and session.known:
            return
        machine = self.runners.at(address) or DIALLED
        spec = SessionSpec(directory="/", machine=None if machine == LOCAL else machine)
        created = SessionCreated(spec=spec, by="cli")
        await session_commands.adopt(
            session, created, RunStarting(run=new_id(), machine=DIALLED, at_root=at_root)
        )

    async def _adopt_program(self, hello: Program, by: str, address: str | None) -> bool:
        """A program has connected: begin its session, or find it. False: its run is over.

        What it began can be resumed by the runner at the same address, if there is one.
        """
        try:
            session = await self._find(hello.session)
        except NotFound:
            session = self._sessions.keep(self._make(hello.session, None))
        if session.known:
            return session.view.run == hello.run
        machine = self.runners.at(address) or PROGRAM
        spec = SessionSpec(
            directory=hello.directory,
            machine=None if machine == LOCAL else machine,
            name=hello.name or None,
            model=hello.model,
            mode=hello.mode,
            skip_permissions=hello.skip_permissions,
            restart="never",
            ask_timeout=self.program_ask_seconds,
        )
        starting = RunStarting(
            run=hello.run,
            machine=PROGRAM,
            mode=hello.mode,
            skip_permissions=hello.skip_permissions,
        )
        await session_commands.adopt(session, SessionCreated(spec=spec, by=by), starting)
        return session.view.run == hello.run

    async def _fork(self, command: cmd.ForkSession) -> Outcome:
        id_ = command.copy or new_id()
        if "." in id_:
            raise UsageError("copy: an id has no dot")
        parent = (await self._find(command.session)).view
        if id_ in self._sessions or await self._journal.summary(id_) is not None:
            return Outcome(session=id_, repeated=True)
        if parent.cli_session is None:
            raise Conflict("nothing_said", "there is nothing to fork: no turn has begun yet")
        spec = resumed_spec(parent.spec, parent.mode)
        check_machine(spec, parent.session)
        created = SessionCreated(spec=spec, by=command.by, parent=parent.session)
        origin = Origin(cli_session=parent.cli_session, fork=True, at=command.at)
        if command.before is not None:
            origin = await self._before(parent, command.before)
        await self._begin(id_, created, [], origin)
        if command.name:
            rename = cmd.RenameSession(session=id_, name=command.name, by=command.by)
            await session_commands.rename(self._sessions[id_], rename)
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
    ) -> None:
        if origin.cli_session is not None and not origin.fork:
            self._check_free(origin.cli_session, id_)
        session = self._sessions.keep(self._make(id_, None))
        try:
            await session_commands.create(session, created, more, origin)
        except QuarterdeckError:
            if session.known:
                raise
            self._sessions.forget(id_)
            raise

    async def _delete(self, command: cmd.DeleteSession) -> Outcome:
        session = await self._find(command.session)
        if session.running:
            raise Conflict("running", "the session has a process; stop it first")
        await self._journal.delete(command.session, by=command.by)
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
        return found.view if found is not None and found.known else None

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
        self, *, session: str | None = None, after: int = 0, limit: int = 1000
    ) -> list[Stored]:
        """Who or what let each call pass, or did not."""
        return await self._journal.audit(session=session, after=after, limit=limit)

    async def usage(
        self, by: UsageBy, *, since: int | None = None, until: int | None = None
    ) -> UsageReport:
        """What was used."""
        return await usage_report(self._journal, by, since, until)

    async def machines(self) -> list[MachineView]:
        """The machines."""
        return self.runners.machines()

    def follow(
        self, cursors: Mapping[str, int] | None = None, *, after: int | None = None
    ) -> Follower:
        """Events as they happen."""
        return self._journal.follow(cursors, after=after)

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
            id_, self._journal, self._machines, self._live, view, self._supervisor, self.policies
        )

    async def _find(self, id_: str, ask: str | None = None) -> Session:
        session = self._sessions.get(id_)
        if session is None:
            view = await self._journal.summary(id_)
            if view is None:
                raise NotFound("session" if ask is None else "question", ask or id_)
            session = self._make(id_, view)
        # Another task may have been faster while we read: then its object is the one.
        return self._sessions.keep(session)

    async def _check_owner(self, session: Session) -> None:
        if not session.running and session.view.cli_session is not None:
            if self._elsewhere is not None:
                await self._elsewhere.check(session.view)
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
            try:
                await self.programs.tick()
            except QuarterdeckError as error:  # the next second tries again
                log.error("programs: %s", error)
            try:
                await self.policies.refresh()
            except OSError as error:  # what holds, holds on
                log.error("the policies cannot be looked at: %s", error)

    async def _tick_sessions(self) -> None:
        """A method of its own: while the clock waits, it must hold no session."""
        now = time.time() * 1000
        for number, session in enumerate(self._sessions):
            if session.restoring:
                continue  # it would hold up all others
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
            await session_answers.answer(session, answer)
        except QuarterdeckError as error:
            log.debug("a question settled itself before its time limit did: %s", error)
