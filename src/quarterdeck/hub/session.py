"""One session: its journal, its process, its people.

Owns what a session does. Lines of the CLI come from a `RunPort`, wishes of people as commands;
`run` knows what they mean, and `core` journals each before it has an effect outside. Whoever waits
for an answer of the CLI waits here.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import msgspec
from msgspec import Raw

from quarterdeck.domain import commands as wish
from quarterdeck.domain.commands import Outcome
from quarterdeck.domain.errors import (
    Conflict,
    JournalError,
    NotFound,
    RequestError,
    RequestTimeout,
    UnsupportedError,
)
from quarterdeck.domain.events import (
    AskAnswered,
    AskWithdrawn,
    Event,
    LinkFound,
    LinkLost,
    Noted,
    PromptCancelled,
    PromptChanged,
    PromptQueued,
    RunEnded,
    RunStarted,
    RunStarting,
    SessionArchived,
    SessionCreated,
    SessionRenamed,
    SpecChanged,
)
from quarterdeck.domain.sessions import Origin
from quarterdeck.hub.answers import late_prompt
from quarterdeck.hub.core import SessionCore
from quarterdeck.hub.deck import Deltas
from quarterdeck.hub.kept import content_of
from quarterdeck.hub.live import Live
from quarterdeck.hub.ports import Machines
from quarterdeck.hub.run import Run
from quarterdeck.hub.waiters import Waiters
from quarterdeck.journal.base import Journal
from quarterdeck.journal.views import SessionView
from quarterdeck.wire.commands import EndSession, Interrupt, decode_command
from quarterdeck.wire.exchange import Ending
from quarterdeck.wire.versions import Version

log = logging.getLogger(__name__)

GREETING_SECONDS = 90.0
"""How long a CLI may take to answer `initialize` before it is ended."""
LEAVE_SECONDS = 5.0
"""How long a CLI may take to go by itself before its machine ends it."""


class Session(SessionCore):
    """A session, as long as the hub has it in memory."""

    def __init__(
        self,
        id_: str,
        journal: Journal,
        machines: Machines,
        live: Live,
        view: SessionView | None = None,
    ) -> None:
        super().__init__(id_, journal, machines, live, view)
        self._waiters = Waiters()
        self._next: Origin | None = None
        self._greet_by: float | None = None

    # --- what people wish ------------------------------------------------------------------------

    async def create(self, created: SessionCreated, more: Sequence[Event], origin: Origin) -> None:
        """Begin: journal what made the session, and start its process."""
        async with self._in_order():
            await self._start(origin, created, *more, spec=created.spec)

    async def adopt(self, created: SessionCreated, run: str, machine: str) -> None:
        """Begin, or go on, with a process that is there already, and that nobody asked us for.

        A session has one process at most: while it has one, nothing is done.
        """
        async with self._in_order():
            if self._run is not None:
                return
            new = [] if self.known else [created]
            await self._append([*new, RunStarting(run=run, machine=machine)])
            self._run = Run(self.id, run, self.view.spec, adopted=True)
            self._port = self._machines.attach(run, self.id, machine, said=0)
            self._run_held = run

    async def rename(self, command: wish.RenameSession) -> Outcome:
        """Give the session another name."""
        async with self._in_order():
            await self._append([SessionRenamed(name=command.name, by=command.by)])
        return Outcome(session=self.id)

    async def archive(self, command: wish.ArchiveSession) -> Outcome:
        """Put the session away, or take it out again."""
        async with self._in_order():
            if self.view.archived == command.archived:
                return Outcome(session=self.id, repeated=True)
            await self._append([SessionArchived(archived=command.archived, by=command.by)])
        return Outcome(session=self.id)

    async def change(self, command: wish.ChangeSession) -> Outcome:
        """Change what holds for the session from now on."""
        async with self._in_order():
            spec = self.view.spec
            if command.auto_approve is not None:
                spec = msgspec.structs.replace(spec, auto_approve=command.auto_approve)
            if command.ask_timeout is not None:
                spec = msgspec.structs.replace(spec, ask_timeout=command.ask_timeout or None)
            await self._append([SpecChanged(spec=spec, by=command.by)])
            if self._run is not None:
                self._run.change(spec)
        return Outcome(session=self.id)

    async def prompt(self, command: wish.SendPrompt) -> Outcome:
        """Queue a prompt, and send it as soon as no turn runs. An ended session is resumed."""
        async with self._in_order():
            view = self.view
            if command.prompt in view.prompts:
                return Outcome(session=self.id, prompt=command.prompt, repeated=True)
            content = content_of(command.content)
            queued = PromptQueued(prompt=command.prompt, content=content, by=command.by)
            if self._run is None:
                await self._start(Origin(cli_session=view.cli_session), queued)
            else:
                await self._append([queued])
                await self._send_next()
        return Outcome(session=self.id, prompt=command.prompt)

    async def change_prompt(self, command: wish.ChangePrompt) -> Outcome:
        """Change a prompt that has not been sent yet."""
        async with self._in_order():
            self._check_queued(command.prompt)
            content = content_of(command.content)
            await self._append(
                [PromptChanged(prompt=command.prompt, content=content, by=command.by)]
            )
        return Outcome(session=self.id, prompt=command.prompt)

    async def cancel_prompt(self, command: wish.CancelPrompt) -> Outcome:
        """Take back a prompt that has not been sent yet."""
        async with self._in_order():
            self._check_queued(command.prompt)
            await self._append([PromptCancelled(prompt=command.prompt, by=command.by)])
        return Outcome(session=self.id, prompt=command.prompt)

    async def stop(self) -> Outcome:
        """End the process: politely first, and then by its machine."""
        if self._run is None:
            return Outcome(session=self.id, repeated=True)
        try:
            if self._run.busy:
                await self._request(Interrupt(), LEAVE_SECONDS)
            await self._request(EndSession(), LEAVE_SECONDS)
        except (RequestError, UnsupportedError, Conflict, JournalError) as error:
            log.debug("session %s did not take its leave: %s", self.id, error)
        async with self._in_order():
            if self._port is not None:
                self._port.stop()
        return Outcome(session=self.id)

    async def resume(self) -> Outcome:
        """Start a process again, where the last one ended."""
        async with self._in_order():
            if self._run is not None:
                raise Conflict("running", "the session has a process already")
            await self._start(Origin(cli_session=self.view.cli_session))
        return Outcome(session=self.id)

    async def check_greeting(self) -> None:
        """End a process that does not answer `initialize`: it will not answer anything else."""
        async with self._in_order():
            run, port = self._run, self._port
            if run is None or port is None or run.greeted or self._greet_by is None:
                return
            if time.monotonic() > self._greet_by:
                self._greet_by = None
                text = f"the CLI has not answered within {GREETING_SECONDS:g} s, and is ended"
                await self._append([Noted(level="error", text=text)])
                port.stop(force=True)

    async def interrupt(self) -> Outcome:
        """Stop the running turn."""
        await self._request(Interrupt(), 30.0)
        return Outcome(session=self.id)

    async def control(self, command: wish.Control) -> Outcome:
        """Send a control request, and wait for its answer."""
        answer = await self._request(decode_command(command.request), command.timeout)
        return Outcome(session=self.id, answer=answer)

    async def answer(self, command: wish.AnswerAsk) -> Outcome:
        """Answer a question: the first answer wins."""
        async with self._in_order():
            card = self.view.asks.get(command.ask)
            if card is None or self._run is None:
                return await self._answer_late(command)
            reply = self._run.reply_to(card.opened, command.answer)
            json = Raw(msgspec.json.encode(command.answer))
            now = int(time.time() * 1000)
            await self._append(self._run.answer(card.opened, reply, command.by, json, now))
        if reply.fresh is not None:
            await self._begin_afresh(reply.fresh, command.by)
        return Outcome(session=self.id, ask=command.ask)

    async def _answer_late(self, command: wish.AnswerAsk) -> Outcome:
        """A question that is not open: somebody was first, or its process is gone.

        In the second case the answer still counts: the session resumes and is told it as a prompt.
        """
        record = await self._journal.find_ask(command.ask)
        if record is None:
            raise NotFound("question", command.ask)
        match record.settled.event if record.settled else None:
            case AskAnswered(by=by):
                raise Conflict("already_answered", f"already answered by {by}")
            case AskWithdrawn(reason=reason) if self._run is not None:
                raise Conflict("withdrawn", f"the question was withdrawn: {reason}")
            case _ if self._run is not None:
                raise Conflict("not_open", "the question went away with its process")
            case _ if record.settled is not None:
                await self._check_unanswered(command.ask, record.settled.position)
            case _:
                pass
        opened = record.ask.opened
        content = Raw(msgspec.json.encode(late_prompt(opened, command.answer)))
        answered = AskAnswered(
            ask=opened.ask,
            by=command.by,
            answer=Raw(msgspec.json.encode(command.answer)),
            allowed=not isinstance(command.answer, wish.DenyAnswer | wish.SkipAnswer),
        )
        prompt = str(uuid4())
        queued = PromptQueued(prompt=prompt, content=content, by=command.by)
        await self._start(Origin(cli_session=self.view.cli_session), answered, queued)
        return Outcome(session=self.id, ask=command.ask, prompt=prompt)

    async def _check_unanswered(self, ask: str, position: int) -> None:
        """A card that outlived its process was perhaps answered since. Raises `Conflict`."""
        while page := await self._journal.audit(session=self.id, after=position):
            position = page[-1].position
            for stored in page:
                if isinstance(stored.event, AskAnswered) and stored.event.ask == ask:
                    raise Conflict("already_answered", f"already answered by {stored.event.by}")

    async def _begin_afresh(self, plan: str, by: str) -> None:
        """Implement a plan in a new conversation: end this process, start one without a past."""
        await self.stop()
        content = Raw(msgspec.json.encode(f"Implement the following plan:\n\n{plan}"))
        async with self._in_order():
            spec = msgspec.structs.replace(self.view.spec, mode="acceptEdits")
            queued = PromptQueued(prompt=str(uuid4()), content=content, by=by)
            if self._run is None:
                await self._start(Origin(), SpecChanged(spec=spec, by=by), queued, spec=spec)
            else:
                await self._append([SpecChanged(spec=spec, by=by), queued])
                self._next = Origin()

    # --- what the process does -----------------------------------------------------------------

    async def run_started(
        self, run: str, pid: int | None, version: str | None, directory: str | None
    ) -> None:
        """It runs: greet it. Told again after each reconnect, which is nothing new."""
        async with self._in_order():
            if self._run is None or self._run.run != run:
                return
            self._run.version = Version.parse(version) if version else None
            if not self._run.greeted:
                self._greet_by = time.monotonic() + GREETING_SECONDS
            events: list[Event] = []
            if self.view.link_lost is not None:
                # Whoever was there before was not it, or not for long.
                events += [LinkFound(run=run), *self._run.link_found()]
            if pid is None or self.view.pid != pid:
                started = RunStarted(run=run, pid=pid, version=version, directory=directory)
                events.append(started)
                if not self._run.greeting:
                    self._run.greet()
            if events:
                await self._append(events)

    async def run_said(self, run: str, first: int, lines: list[bytes]) -> None:
        """It said something: journal it with all that it means, and only then acknowledge it."""
        async with self._in_order():
            mine = self._run
            if mine is None or mine.run != run:
                return
            events: list[Event] = []
            deltas: list[Deltas] = []
            endings: list[tuple[str, Ending]] = []
            now = int(time.time() * 1000)
            for number, line in enumerate(lines, first):
                heard = mine.hear(number, line, now)
                if heard.whole:
                    deltas.clear()
                    self._live.superseded(self.id)
                events += heard.events
                deltas += heard.deltas
                endings += heard.endings
            if events:
                await self._append(events)
            for delta in deltas:
                self._live.add(delta)
            if self._port is not None:
                self._port.have(mine.said)
            self._waiters.settle(endings)
            await self._send_next()

    async def run_ended(
        self,
        run: str,
        number: int | None,
        reason: str,
        *,
        clean: bool = False,
        exit_code: int | None = None,
        signal: int | None = None,
    ) -> None:
        """It is gone: what was open is withdrawn, and the session waits to be resumed."""
        async with self._in_order():
            if self._run is None or self._run.run != run:
                return
            events, endings = self._run.ended(reason)
            ended = RunEnded(
                run=run, reason=reason, clean=clean, exit_code=exit_code, signal=signal
            )
            self._run = None
            await self._append([*events, ended])
            self._live.superseded(self.id)
            port, self._port, self._run_held = self._port, None, None
            if port is not None:
                if number is not None:
                    port.have(number)
                port.forget()
            self._waiters.settle(endings)
            if self._next is not None:
                following, self._next = self._next, None
                await self._start(following)

    async def run_lost(self, run: str, reason: str) -> None:
        """Its machine cannot be reached."""
        async with self._in_order():
            if self._run is not None and self._run.run == run:
                await self._append([LinkLost(run=run, reason=reason), *self._run.link_lost()])

    async def run_found(self, run: str) -> None:
        """Its machine is there again."""
        async with self._in_order():
            if self._run is not None and self._run.run == run:
                await self._append([LinkFound(run=run), *self._run.link_found()])
                await self._send_next()

    async def run_resumed(self, run: str, last: str | None) -> None:
        """It dialled again, and something may be lost."""
        async with self._in_order():
            if self._run is not None and self._run.run == run:
                await self._append(self._run.link_resumed(last))
                await self._send_next()

    # --- inside --------------------------------------------------------------------------------

    async def _request(self, command: Any, seconds: float) -> Raw:
        async with self._in_order():
            if self._run is None:
                raise Conflict("not_running", "the session has no process; resume it first")
            request_id = self._run.request(command)
            await self._append([])
            answer = self._waiters.expect(request_id, command.subtype)
        try:
            return await answer.wait(seconds)
        except RequestTimeout:
            async with self._in_order():
                if self._run is not None:
                    self._run.give_up(request_id)
                    await self._append([])
            raise
        finally:
            self._waiters.forget(request_id)

    def _check_queued(self, prompt: str) -> None:
        if prompt not in self.view.prompts:
            raise NotFound("prompt", prompt)
        if all(queued.prompt != prompt for queued in self.view.queued):
            raise Conflict("not_queued", "the prompt is not in the queue any more")
