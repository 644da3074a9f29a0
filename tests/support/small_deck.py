"""A hub in small, for the tests of fronts: real journal, real folds, and no processes.

It does what a command asks for by writing the events, as the hub would; nobody answers. It passes
the suite that the real hub passes: `quarterdeck.testing.contracts.hub`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_never

import anyio
import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import Conflict, NotFound
from quarterdeck.domain.ids import new_id
from quarterdeck.domain.structs import ABSENT
from quarterdeck.hub.ended_asks import waiting_asks
from quarterdeck.hub.lines import content_of
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.hub.permissions.service import PolicyService
from quarterdeck.hub.supervision.budgets import usage_report
from quarterdeck.hub.workers import Workers
from quarterdeck.journal.base import Follower
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.audit import AuditKind, AuditPage
from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.protocol.usage import UsageBy, UsageReport
from quarterdeck.protocol.views import AskView, Deltas, MachineView, Piece


class SmallDeck:
    """A `Deck` over a journal in memory."""

    def __init__(self) -> None:
        self.journal = MemoryJournal()
        self.workers = Workers()
        """Whoever tries a policy here closes them."""
        self.policy = PolicyService(self.journal, Policies(), workers=self.workers)
        self.submitted: list[AnyCommand] = []
        self.fails: Exception | None = None
        """What the next command ends in."""
        self.hold: anyio.Event | None = None
        """What commands wait for before they are done."""
        self._listeners: list[Callable[[Deltas], None]] = []
        self._texts: dict[str, str] = {}
        self._piece_listeners: list[Callable[[Piece], None]] = []

    # --- for the test ---

    async def have_session(self, name: str = "one", **spec: object) -> str:
        """A session that runs."""
        given = {"directory": "/tmp", "name": name} | spec
        made = msgspec.json.decode(msgspec.json.encode(given), type=SessionSpec)
        outcome = await self.submit(cmd.CreateSession(spec=made, by="test"))
        return outcome.session

    async def say(self, session: str, *texts: str) -> list[Stored]:
        """The session's CLI says something."""
        view = await self.session(session)
        self._texts.pop(session, None)
        said = [
            ev.Said(
                run=view.run or "run",
                number=view.said + number,
                line=Raw(msgspec.json.encode({"type": "assistant", "text": text})),
            )
            for number, text in enumerate(texts, 1)
        ]
        return await self.journal.append(session, said)

    async def ask(self, session: str, title: str = "Run a command") -> str:
        """The session's CLI asks something."""
        view = await self.session(session)
        ask = f"{session}.{new_id()}"
        opened = ev.AskOpened(
            ask=ask,
            run=view.run or "run",
            request_id="r1",
            ask_kind=ev.AskKind.TOOL,
            tool="Bash",
            title=title,
            request=Raw(b'{"subtype":"can_use_tool"}'),
        )
        await self.journal.append(session, [opened])
        return ask

    def type(self, session: str, text: str) -> None:
        """The session's model writes on."""
        self._texts[session] = self._texts.get(session, "") + text
        for listener in self._listeners:
            listener(Deltas(session=session, message="m1", text=text))

    # --- commands ---

    async def submit(self, command: AnyCommand) -> Outcome:
        self.submitted.append(command)
        if self.hold is not None:
            await self.hold.wait()
        if self.fails is not None:
            error, self.fails = self.fails, None
            raise error
        match command:
            case cmd.CreateSession():
                return await self._create(command)
            case cmd.AnswerAsk():
                return await self._answer(command)
            case cmd.DeleteSession(session=session, by=by):
                if (await self.session(session)).run is not None:
                    raise Conflict("running", "the session has a process; stop it first")
                await self.journal.delete(session, by=by)
                return Outcome(session=session)
            case cmd.ForkSession(session=session, name=name, by=by, copy=copy):
                view = await self.session(session)
                spec = msgspec.structs.replace(view.spec, name=name)
                created = cmd.CreateSession(spec=spec, by=by, session=copy)
                return await self._create(created, parent=session)
            case _:
                view = await self.session(command.session)
                events = self._events(command, view)
                await self.journal.append(command.session, events)
                answer = Raw(b'{"ok":true}') if isinstance(command, cmd.Control) else ABSENT
                return Outcome(
                    session=command.session,
                    prompt=getattr(command, "prompt", None),
                    answer=answer,
                    repeated=not events,
                )

    async def _create(self, command: cmd.CreateSession, parent: str | None = None) -> Outcome:
        session = command.session or new_id()
        if await self.journal.summary(session) is not None:
            return Outcome(session=session, repeated=True)
        run = f"run-{session}"
        await self.journal.append(
            session,
            [
                ev.SessionCreated(spec=command.spec, by=command.by, parent=parent),
                ev.RunStarting(run=run, machine="here"),
                ev.RunStarted(run=run, pid=1),
            ],
        )
        return Outcome(session=session)

    async def _answer(self, command: cmd.AnswerAsk) -> Outcome:
        record = await self.journal.find_ask(command.ask)
        if record is None:
            raise NotFound("question", command.ask)
        if record.settled is not None:
            raise Conflict("already_answered", "it was answered before")
        session = record.ask.session
        answered = ev.AskAnswered(
            ask=command.ask,
            by=command.by,
            answer=Raw(msgspec.json.encode(command.answer)),
            allowed=isinstance(command.answer, cmd.AllowAnswer),
        )
        await self.journal.append(session, [answered])
        return Outcome(session=session, ask=command.ask)

    def _events(self, command: AnyCommand, view: SessionView) -> list[ev.Event]:
        match command:
            case cmd.RenameSession(name=name, by=by):
                return [ev.SessionRenamed(name=name, by=by)]
            case cmd.ArchiveSession(archived=archived, by=by):
                if view.archived == archived:
                    return []
                return [ev.SessionArchived(archived=archived, by=by)]
            case cmd.ChangeSession(auto_approve=approve, ask_timeout=timeout, by=by):
                spec = view.spec
                if approve is not None:
                    spec = msgspec.structs.replace(spec, auto_approve=approve)
                if timeout is not None:
                    spec = msgspec.structs.replace(spec, ask_timeout=timeout)
                return [ev.SpecChanged(spec=spec, by=by)]
            case cmd.StopSession():
                if view.run is None:
                    return []
                return [ev.RunEnded(run=view.run, reason="stopped", clean=True)]
            case cmd.ResumeSession():
                if view.run is not None:
                    raise Conflict("running", "the session runs")
                return [ev.RunStarting(run=new_id(), machine="here")]
            case cmd.MoveSession(machine=machine):
                return [ev.RunStarting(run=new_id(), machine=machine)]
            case cmd.Interrupt() | cmd.Control() | cmd.RewindSession():
                return [ev.Noted(level="info", text="told the CLI")]
            case cmd.SendPrompt(prompt=prompt, content=content, by=by):
                if prompt in view.prompts:
                    return []
                return [ev.PromptQueued(prompt=prompt, content=content_of(content), by=by)]
            case cmd.ChangePrompt(prompt=prompt, content=content, by=by):
                self._check_queued(view, prompt)
                return [ev.PromptChanged(prompt=prompt, content=content_of(content), by=by)]
            case cmd.CancelPrompt(prompt=prompt, by=by):
                self._check_queued(view, prompt)
                return [ev.PromptCancelled(prompt=prompt, by=by)]
            case cmd.CreateSession() | cmd.ForkSession() | cmd.DeleteSession() | cmd.AnswerAsk():
                raise AssertionError("it is done elsewhere")
            case _:
                assert_never(command)

    @staticmethod
    def _check_queued(view: SessionView, prompt: str) -> None:
        if prompt not in view.prompts:
            raise NotFound("prompt", prompt)
        if not any(prompt == queued.prompt for queued in view.queued):
            raise Conflict("not_queued", "the prompt is not in the queue any more")

    # --- what can be read ---

    @property
    def epoch(self) -> str:
        return self.journal.epoch

    @property
    def position(self) -> int:
        return self.journal.position

    async def reaches(self, position: int) -> bool:
        return await self.journal.reaches(position)

    async def sessions(
        self, *, after: str | None = None, limit: int = 100, archived: bool = False
    ) -> list[SessionView]:
        return await self.journal.summaries(after=after, limit=limit, archived=archived)

    async def session(self, session: str) -> SessionView:
        view = await self.journal.summary(session)
        if view is None:
            raise NotFound("session", session)
        return view

    def view(self, session: str) -> SessionView | None:
        return None  # everything is read from the journal

    async def events(self, session: str, *, after: int = 0, limit: int = 1000) -> list[Stored]:
        await self.session(session)
        return await self.journal.read(session, after=after, limit=limit)

    async def asks(self, *, session: str | None = None, ended: bool = False) -> list[AskView]:
        asks = await self.journal.open_asks()
        if ended:
            asks += await waiting_asks(self.journal, session)
        return [ask for ask in asks if session is None or ask.session == session]

    async def audit(
        self,
        *,
        session: str | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 1000,
    ) -> list[Stored]:
        return await self.journal.audit(session=session, after=after, before=before, limit=limit)

    async def audit_page(
        self,
        kind: AuditKind,
        *,
        before: int,
        after: int = 0,
        session: str | None = None,
        limit: int = 1000,
    ) -> AuditPage:
        return await self.journal.audit_page(
            kind, session=session, after=after, before=before, limit=limit
        )

    async def usage(
        self, by: UsageBy, *, since: int | None = None, until: int | None = None
    ) -> UsageReport:
        return await usage_report(self.journal, by, since, until)

    async def machines(self) -> list[MachineView]:
        return [MachineView(name="here", connected=True)]

    def follow(
        self, cursors: Mapping[str, int] | None = None, *, after: int | None = None
    ) -> Follower:
        return self.journal.follow(cursors, after=after)

    def live(self, listener: Callable[[Deltas], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    @property
    def listeners(self) -> int:
        """How many listen to live text."""
        return len(self._listeners)

    def pieces(self, listener: Callable[[Piece], None]) -> Callable[[], None]:
        self._piece_listeners.append(listener)
        return lambda: self._piece_listeners.remove(listener)

    def pass_piece(self, piece: Piece) -> None:
        """A CLI says a line that is not journalled."""
        for listener in tuple(self._piece_listeners):
            listener(piece)

    def so_far(self, session: str) -> tuple[Deltas, ...]:
        text = self._texts.get(session, "")
        return (Deltas(session=session, message="m1", text=text),) if text else ()
