"""One session: its journal, its process, its people.

Owns what people may wish of a session. What its process does to it is `lifetime`'s; `run` knows
what either means, and `core` journals each before it has an effect outside. Whoever waits for an
answer of the CLI waits here.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import (
    Conflict,
    JournalError,
    NotFound,
    RequestError,
    RequestTimeout,
    UnsupportedError,
)
from quarterdeck.hub.lifetime import SessionLife
from quarterdeck.hub.lines import check_steering, content_of
from quarterdeck.hub.permissions.answers import late_prompt
from quarterdeck.hub.permissions.context import CallQuestion
from quarterdeck.hub.permissions.deadlines import check_answerer
from quarterdeck.hub.permissions.edits import Edit, check_edit, edited_call
from quarterdeck.hub.permissions.gate import PermissionGate
from quarterdeck.hub.permissions.modes import (
    ACCEPT_EDITS,
    DEFAULT,
    chosen_mode,
    resumed_spec,
    with_mode,
)
from quarterdeck.hub.run import Run
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.commands import Outcome
from quarterdeck.protocol.events import (
    AskAnswered,
    AskOpened,
    AskWithdrawn,
    Event,
    PromptCancelled,
    PromptChanged,
    PromptQueued,
    RunStarting,
    RunStopping,
    SessionArchived,
    SessionCreated,
    SessionRenamed,
    SpecChanged,
    StartAfresh,
    Switched,
)
from quarterdeck.protocol.sessions import Origin, SessionSpec
from quarterdeck.wire.commands import EndSession, Interrupt, decode_command

log = logging.getLogger(__name__)

LEAVE_SECONDS = 5.0
"""How long a CLI may take to go by itself before its machine ends it."""


class Session(SessionLife):
    """A session, as long as the hub has it in memory."""

    # --- what people wish ------------------------------------------------------------------------

    async def create(self, created: SessionCreated, more: Sequence[Event], origin: Origin) -> None:
        """Begin: journal what made the session, and start its process."""
        async with self._in_order():
            await self._start(origin, created, *more, spec=created.spec)

    async def adopt(self, created: SessionCreated, starting: RunStarting) -> None:
        """Begin, or go on, with a process that is there already, and that nobody asked us for.

        A session has one process at most: while it has one, nothing is done.
        """
        async with self._in_order():
            if self._run is not None:
                return
            new = [] if self.known else [created]
            await self._append([*new, starting])
            self._begin_run(starting)
            self._port = self._machines.attach(starting.run, self.id, starting.machine, said=0)

    async def rename(self, command: cmd.RenameSession) -> Outcome:
        """Give the session another name."""
        async with self._in_order():
            await self._append([SessionRenamed(name=command.name, by=command.by)])
        return Outcome(session=self.id)

    async def archive(self, command: cmd.ArchiveSession) -> Outcome:
        """Put the session away, or take it out again."""
        async with self._in_order():
            if self.view.archived == command.archived:
                return Outcome(session=self.id, repeated=True)
            await self._append([SessionArchived(archived=command.archived, by=command.by)])
        return Outcome(session=self.id)

    async def change(self, command: cmd.ChangeSession) -> Outcome:
        """Change what holds for the session from now on."""
        async with self._in_order():
            spec = self.view.spec
            if command.auto_approve is not None:
                spec = msgspec.structs.replace(spec, auto_approve=command.auto_approve)
            if command.ask_timeout is not None:
                spec = msgspec.structs.replace(spec, ask_timeout=command.ask_timeout or None)
            if command.budget is not None:
                spec = msgspec.structs.replace(spec, budget=command.budget)
            await self._append([SpecChanged(spec=spec, by=command.by)])
            if self._run is not None:
                await self._apply(self._supervisor.heard(self.view, self._run, again=True))
            await self._apply(self._supervisor.freed(self.view, self._run))
            await self._send_next()
        return Outcome(session=self.id)

    async def prompt(self, command: cmd.SendPrompt) -> Outcome:
        """Queue a prompt, and send it as soon as no turn runs. An ended session is resumed."""
        async with self._in_order():
            view = self.view
            if await self._knows_prompt(command.prompt):
                return Outcome(session=self.id, prompt=command.prompt, repeated=True)
            content = content_of(command.content)
            if command.steer:
                check_steering(content)
            self._supervisor.admit(view, self._run)
            queued = PromptQueued(prompt=command.prompt, content=content, by=command.by)
            if self._run is None:
                await self._start(Origin(cli_session=view.cli_session), queued)
            elif command.steer and self._may_steer(self._run):
                await self._send_at_once(self._run, queued, steered=True)
            elif self._next_unsent(self._run) is None and self._may_send(self._run):
                await self._send_at_once(self._run, queued)
            else:
                await self._append([queued])
                await self._send_next()
        return Outcome(session=self.id, prompt=command.prompt)

    async def _send_at_once(self, run: Run, queued: PromptQueued, *, steered: bool = False) -> None:
        """Send a prompt with the same append that queues it."""
        now = self._supervisor.now
        run.record([queued], now)
        run.prompt(queued.prompt, queued.content, now, steered=steered)
        await self._append()

    def _may_steer(self, run: Run) -> bool:
        """Whether a prompt can be sent into a running turn now; it is queued otherwise."""
        held = self.view.afresh or self._supervisor.held(self.view, run)
        return run.steerable and not held

    async def change_prompt(self, command: cmd.ChangePrompt) -> Outcome:
        """Change a prompt that has not been sent yet."""
        async with self._in_order():
            await self._check_queued(command.prompt)
            content = content_of(command.content)
            await self._append(
                [PromptChanged(prompt=command.prompt, content=content, by=command.by)]
            )
        return Outcome(session=self.id, prompt=command.prompt)

    async def cancel_prompt(self, command: cmd.CancelPrompt) -> Outcome:
        """Take back a prompt that has not been sent yet."""
        async with self._in_order():
            await self._check_queued(command.prompt)
            await self._append([PromptCancelled(prompt=command.prompt, by=command.by)])
        return Outcome(session=self.id, prompt=command.prompt)

    async def stop(self, by: str = "") -> Outcome:
        """End the process: politely first, and then by its machine."""
        async with self._in_order():
            run = self._run
            if run is None:
                return Outcome(session=self.id, repeated=True)
            with suppress(JournalError):  # a full disk must not keep it running
                await self._append([RunStopping(run=run.run, by=by)])
        try:
            if run.busy and not run.link_down:
                await self._request(Interrupt(), LEAVE_SECONDS, of=run)
            if not run.link_down:  # else nobody would hear it
                await self._request(EndSession(), LEAVE_SECONDS, of=run)
        except (RequestError, UnsupportedError, Conflict, JournalError) as error:
            log.debug("session %s did not take its leave: %s", self.id, error)
        async with self._in_order():
            # It may have left already, and another may have begun in its place.
            if self._port is not None and self._run is not None and self._run.run == run.run:
                self._port.stop()
        return Outcome(session=self.id)

    async def resume(self) -> Outcome:
        """Start a process again, where the last one ended."""
        async with self._in_order():
            if self._run is not None:
                raise Conflict("running", "the session has a process already")
            await self._start(Origin(cli_session=self.view.cli_session))
        return Outcome(session=self.id)

    async def interrupt(self) -> Outcome:
        """Stop the running turn."""
        await self._request(Interrupt(), 30.0)
        return Outcome(session=self.id)

    async def control(self, command: cmd.Control) -> Outcome:
        """Send a control request, and wait for its answer."""
        request = decode_command(command.request)
        answer = await self._request(request, command.timeout, by=command.by)
        return Outcome(session=self.id, answer=answer)

    async def answer(self, command: cmd.AnswerAsk) -> Outcome:
        """Answer a question: the first answer wins."""
        async with self._in_order():
            card = self.view.asks.get(command.ask)
            if card is None or self._run is None:
                return await self._answer_late(command)
            now = self._supervisor.now
            opened = self._run.original(card.opened)
            edit: Edit | None = None
            if (call := edited_call(opened, command.answer)) is not None:
                question = self._run.edit_question(call, opened, now)
                edit = await self._edit(question, self._run.spec, command)
            reply = self._run.reply_to(opened, command.answer, edit)
            json = Raw(msgspec.json.encode(command.answer))
            await self._grant(opened, reply, command, now)
            events: list[Event] = []
            self._run.answer(opened, reply, command.by, json, now)
            if reply.fresh is not None:
                afresh = StartAfresh(run=self._run.run, by=command.by)
                events += [*self._to_implement(reply.fresh, command.by), afresh]
            await self._append(events)
        if reply.fresh is not None:
            await self.stop(command.by)
        return Outcome(session=self.id, ask=command.ask)

    async def check_answerer(self, command: cmd.AnswerAsk) -> None:
        """Raise `Forbidden` unless whoever answers is one of those whom the question is for."""
        if (card := self.view.asks.get(command.ask)) is not None:
            check_answerer(card.opened, command)
        elif (record := await self._journal.find_ask(command.ask)) is not None:
            check_answerer(record.ask.opened, command)

    async def _answer_late(self, command: cmd.AnswerAsk) -> Outcome:
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
        edit = await self._edited_late(opened, command)
        answered = AskAnswered(
            ask=opened.ask,
            by=command.by,
            answer=Raw(msgspec.json.encode(command.answer)),
            allowed=not isinstance(command.answer, cmd.DenyAnswer | cmd.SkipAnswer),
        )
        match command.answer:
            case cmd.PlanAnswer(choice="fresh") if opened.plan:
                changed, queued = self._to_implement(opened.plan, command.by)
                await self._start(Origin(), answered, changed, queued)
            case _:
                content = Raw(msgspec.json.encode(late_prompt(opened, command.answer, edit)))
                queued = PromptQueued(prompt=str(uuid4()), content=content, by=command.by)
                switches = self._in_mode_of(command.answer, command.by)
                origin = Origin(cli_session=self.view.cli_session)
                await self._start(origin, answered, *switches, queued)
        return Outcome(session=self.id, ask=command.ask, prompt=queued.prompt)

    async def _edited_late(self, opened: AskOpened, command: cmd.AnswerAsk) -> Edit | None:
        """The other input that a late answer tells the session of. Raises `Forbidden`."""
        call = edited_call(opened, command.answer)
        if call is None:
            return None
        spec = resumed_spec(self.view.spec, self.view.mode)
        mode = chosen_mode(spec) or DEFAULT
        question = PermissionGate(spec).edit_question(call, mode, self._supervisor.now)
        return await self._edit(question, spec, command)

    async def _edit(
        self, question: CallQuestion, spec: SessionSpec, command: cmd.AnswerAsk
    ) -> Edit:
        """The call that runs in place of the one asked about. Raises `Forbidden`."""
        verdict = (await self._rule(question, spec)).verdict
        check_edit(verdict, command)
        return Edit(input=verdict.input or question.input, verdict=verdict)

    def _in_mode_of(self, answer: cmd.Answer, by: str) -> list[Event]:
        """What puts the session into the mode in which an approved plan is to be carried out."""
        match answer:
            case cmd.PlanAnswer(choice="auto" | "fresh"):
                mode = ACCEPT_EDITS
            case cmd.PlanAnswer(choice="manual"):
                mode = DEFAULT
            case _:
                return []
        spec = with_mode(self.view.spec, mode, asked_for=False)
        return [SpecChanged(spec=spec, by=by), Switched(mode=mode, by=by)]

    async def _check_unanswered(self, ask: str, position: int) -> None:
        """A card that outlived its process was perhaps answered since. Raises `Conflict`."""
        while page := await self._journal.audit(session=self.id, after=position):
            position = page[-1].position
            for stored in page:
                if isinstance(stored.event, AskAnswered) and stored.event.ask == ask:
                    raise Conflict("already_answered", f"already answered by {stored.event.by}")

    def _to_implement(self, plan: str, by: str) -> tuple[SpecChanged, PromptQueued]:
        """What makes a new conversation implement a plan."""
        spec = with_mode(self.view.spec, ACCEPT_EDITS, asked_for=False)
        content = Raw(msgspec.json.encode(f"Implement the following plan:\n\n{plan}"))
        queued = PromptQueued(prompt=str(uuid4()), content=content, by=by)
        return SpecChanged(spec=spec, by=by), queued

    # --- inside --------------------------------------------------------------------------------

    async def _request(
        self, command: Any, seconds: float, *, of: Run | None = None, by: str = ""
    ) -> Raw:
        """Ask the process something, and wait for its answer; only this one, if one is given."""
        async with self._in_order():
            if self._run is None or (of is not None and self._run.run != of.run):
                raise Conflict("not_running", "the session has no process; resume it first")
            request_id = self._run.request(command, self._supervisor.now, by)
            await self._append()
            answer = self._waiters.expect(request_id, command.subtype)
        try:
            return await answer.wait(seconds)
        except RequestTimeout:
            async with self._in_order():
                if self._run is not None:
                    self._run.give_up(request_id, self._supervisor.now)
                    await self._append()
            raise
        finally:
            self._waiters.forget(request_id)

    async def _knows_prompt(self, prompt: str) -> bool:
        """Whether there was a prompt with this id. The view keeps the newest ids only."""
        view = self.view
        if prompt in view.prompts or not view.prompts_forgotten:
            return prompt in view.prompts
        return await self._journal.has_prompt(self.id, prompt)

    async def _check_queued(self, prompt: str) -> None:
        if not await self._knows_prompt(prompt):
            raise NotFound("prompt", prompt)
        if all(queued.prompt != prompt for queued in self.view.queued):
            raise Conflict("not_queued", "the prompt is not in the queue any more")
