"""One session of the hub that an editor has open: what happens is told, questions are asked.

Owns the feed of the session, the order in which the editor is told, the prompts that it waits for
and the questions that it was asked. A slow editor slows nobody: see `backlog`. When the hub is away
the feed reconnects and commands wait for it, within a limit. The words are those of `v1`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import anyio
from acp import schema
from anyio.abc import TaskGroup
from msgspec import Raw

from quarterdeck.client import Feed, HubRefused, calls
from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import LinkError, QuarterdeckError, UsageError
from quarterdeck.domain.ids import new_id
from quarterdeck.fronts.acp.backlog import Backlog
from quarterdeck.fronts.acp.hubs import Hubs, rpc_error
from quarterdeck.fronts.acp.rpc import AUTH_REQUIRED, INTERNAL_ERROR, RpcError
from quarterdeck.fronts.acp.v1 import settings
from quarterdeck.fronts.acp.v1.asks import Request, dialogue_for
from quarterdeck.fronts.acp.v1.settings import Known
from quarterdeck.fronts.acp.v1.updates import (
    Translator,
    Update,
    answered_update,
    is_of,
    notice,
    stop_reason,
)
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.coded_texts import end_text
from quarterdeck.protocol.commands import (
    Answer,
    AnswerAsk,
    AnyCommand,
    CancelPrompt,
    Interrupt,
    Outcome,
    SendPrompt,
)
from quarterdeck.protocol.stream_frames import Live
from quarterdeck.protocol.views import EventShape, SessionShape
from quarterdeck.runtime.tasks import background_tasks

RETRY_SECONDS = 0.5
AWAY_SECONDS = 120.0
"""How long a command waits for a hub that is away."""


class Editor(Protocol):
    """The editor's side of the connection."""

    @property
    def forms(self) -> bool:
        """Whether it shows forms."""

    async def update(self, session: str, update: Update) -> bool:
        """Tell it something; False if it is gone."""

    async def ask(self, request: Request) -> object:
        """Ask it something. Raises `RpcError`; the request is cancelled with its caller."""


class OpenSession:
    """A session that one editor has open. `run` follows it until `close`."""

    def __init__(self, editor: Editor, hubs: Hubs, known: Known, after: int) -> None:
        self.id = known.shape.session
        self.known = known
        self._editor = editor
        self._hubs = hubs
        self._prompts: dict[str, _Prompt] = {}
        self._asks: dict[str, _Ask] = {}
        self._sent: set[str] = set()
        self._translator = Translator(known, self._sent.__contains__)
        self._backlog = Backlog(after)
        self._feed = Feed(hubs.where, self.id, after, self, views=True)
        self._scope = anyio.CancelScope()
        self._tasks: TaskGroup | None = None
        self._away = False

    # --- its life --------------------------------------------------------------------------------

    async def replay(self) -> None:
        """Tell the history, up to where following begins."""
        client = await self._hubs.client()
        cursor: int | None = 0
        while cursor is not None and cursor < self._backlog.delivered:
            page = await client.call(calls.events(self.id, cursor))
            for shape in page.events:
                if shape.seq <= self._backlog.delivered:
                    await self._notify(self._translator.event(shape))
            cursor = page.next

    async def run(self, ended: Callable[[OpenSession], None]) -> None:
        """Follow the session until it is closed, deleted, or not allowed any more."""
        reason = "the session was closed in the editor"
        try:
            with self._scope:
                reason = await self._run()
        finally:
            ended(self)
            for prompt in self._prompts.values():
                prompt.end(None if self._scope.cancel_called else RpcError(INTERNAL_ERROR, reason))

    def close(self) -> None:
        """Let go of it. The session goes on in the hub."""
        self._scope.cancel()

    async def _run(self) -> str:
        async with background_tasks() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._notify_all)
            await self._notify(self._translator.first_updates())
            while True:
                try:
                    for card in await (await self._hubs.client()).asks(self.id):
                        self._open_ask(card.opened)
                    await self._feed.run()
                except LinkError as error:  # before it was connected for the first time
                    self.connection_lost(str(error))
                    await anyio.sleep(RETRY_SECONDS)
                except QuarterdeckError as error:
                    await self._notify([notice(f"the session cannot be followed: {error}", "gone")])
                    return str(error)

    # --- what the feed tells ---------------------------------------------------------------------

    def events(self, shapes: tuple[EventShape, ...]) -> None:
        """Events happened."""
        self._backlog.events(shapes)

    def view(self, shape: SessionShape) -> None:
        """The session has changed."""
        self._backlog.view(shape)

    def live(self, frame: Live) -> None:
        """Text is being generated."""
        self._backlog.live(frame)

    def connection_lost(self, reason: str) -> None:
        """The hub is away."""
        if not self._away:
            self._away = True
            self._backlog.note(f"the hub is away, and is waited for: {reason}")

    def connection_made(self) -> None:
        """It is there."""
        if self._away:
            self._away = False
            self._backlog.note("the hub is there again")

    # --- what the editor is told -----------------------------------------------------------------

    async def _notify_all(self) -> None:
        while True:
            match await self._backlog.next():
                case None:
                    await self._read_missed()
                case EventShape() as shape:
                    await self._handle_event(shape)
                case Live() as frame:
                    for message in self._translator.begun_by(frame):
                        await self._read_before(message)
                    await self._notify(self._translator.live(frame))
                case SessionShape() as shape:
                    await self._notify(self._translator.view(shape))
                case str() as text:
                    await self._notify([notice(text, "hub")])

    async def _read_missed(self) -> None:
        """The editor was too slow for what is kept: read on from the hub."""
        self._backlog.begin_reading()
        self._translator.miss_live()
        try:
            cursor: int | None = self._backlog.delivered
            while cursor is not None:
                page = await (await self._hubs.client()).call(calls.events(self.id, cursor))
                for shape in page.events:
                    self._backlog.delivered = shape.seq
                    await self._handle_event(shape)
                cursor = page.next
        except QuarterdeckError:
            self._backlog.missed = True
            await anyio.sleep(RETRY_SECONDS)

    async def _read_before(self, message: str) -> None:
        """Tell the events before a message whose text begins to come.

        Live text overtakes events that the hub is still preparing for its stream, and an editor
        cannot put them before text that it has. They were journalled before the text was sent.
        """
        try:
            cursor: int | None = self._backlog.delivered
            while cursor is not None:
                page = await (await self._hubs.client()).call(calls.events(self.id, cursor))
                for shape in page.events:
                    if is_of(message, shape.event):
                        return
                    self._backlog.delivered = shape.seq
                    await self._handle_event(shape)
                cursor = page.next
        except QuarterdeckError:
            return  # the stream will have them

    async def _notify(self, updates: list[Update]) -> None:
        for update in updates:
            if not await self._editor.update(self.id, update):
                self._scope.cancel()
                return

    async def _handle_event(self, shape: EventShape) -> None:
        await self._notify(self._translator.event(shape))
        match shape.event:
            case ev.OffersChanged() as event:
                await self._notify(self._translator.offers_in(event))
            case ev.AskOpened() as event:
                self._open_ask(event)
            case ev.AskAnswered() | ev.AskWithdrawn() as event:
                await self._settle_ask(event)
            case ev.PromptSent(prompt=id_) if id_ in self._prompts:
                self._prompts[id_].begun = True
            case ev.PromptCancelled(prompt=id_) if id_ in self._prompts:
                self._prompts[id_].end(None)
            case ev.TurnEnded(prompts=ids) as turn:
                for id_ in ids:
                    if (prompt := self._prompts.get(id_)) is not None:
                        prompt.end(turn)
            case ev.RunEnded(run=run) as ended:
                await self._run_ended(run, end_text(ended))
            case ev.SessionDeleted():
                self._scope.cancel()
            case _:
                pass

    async def _run_ended(self, run: str, reason: str) -> None:
        for prompt in self._prompts.values():
            if prompt.begun:
                prompt.end(RpcError(INTERNAL_ERROR, f"the agent has ended: {reason}"))
        for ask in list(self._asks.values()):
            if ask.opened.run == run:
                coded = CodedText(code=TextCode.RUN_ENDED)
                gone = ev.AskWithdrawn(ask=ask.opened.ask, reason="", coded=coded)
                await self._settle_ask(gone)

    # --- prompts ---------------------------------------------------------------------------------

    async def prompt(self, content: Raw) -> schema.PromptResponse:
        """Send a prompt, and wait for the end of its turn. Raises `RpcError`."""
        prompt = _Prompt(new_id())
        self._prompts[prompt.id] = prompt
        self._sent.add(prompt.id)
        command = SendPrompt(session=self.id, prompt=prompt.id, content=content)
        try:
            await self._submit(command)
            prompt.sent.set()
            await prompt.ended.wait()
        except QuarterdeckError as error:
            raise rpc_error(error) from error
        except anyio.get_cancelled_exc_class():
            # The request was cancelled: so is the turn. A closed session goes on.
            if self._tasks is not None and not self._scope.cancel_called:
                self._tasks.start_soon(self._cancel, [prompt])
            raise
        finally:
            prompt.sent.set()
            del self._prompts[prompt.id]
        return _response(prompt.outcome)

    async def cancel(self) -> None:
        """Interrupt the turn of this editor's prompts, or whatever turn runs."""
        await self._cancel(list(self._prompts.values()))

    async def _cancel(self, prompts: list[_Prompt]) -> None:
        running = not prompts
        for prompt in prompts:
            await prompt.sent.wait()
            if not prompt.ended.is_set():
                command = CancelPrompt(session=self.id, prompt=prompt.id)
                running |= not await self._try(command) and not prompt.ended.is_set()
        if running:
            await self._try(Interrupt(session=self.id))

    async def _try(self, command: AnyCommand) -> bool:
        """Whether the hub did it."""
        try:
            await self._submit(command)
        except QuarterdeckError:
            return False
        return True

    async def _submit(self, command: AnyCommand) -> Outcome:
        """Send a command that may be sent twice. Waits for a hub that is away, within a limit."""
        until = anyio.current_time() + AWAY_SECONDS
        while True:
            try:
                client = await self._hubs.client()
                with anyio.CancelScope(shield=True):  # what is on its way may arrive all the same
                    return await client.submit(command)
            except LinkError:
                if anyio.current_time() > until:
                    raise
                await anyio.sleep(RETRY_SECONDS)

    # --- questions -------------------------------------------------------------------------------

    def _open_ask(self, opened: ev.AskOpened) -> None:
        if opened.ask not in self._asks and self._tasks is not None:
            ask = self._asks[opened.ask] = _Ask(opened)
            self._tasks.start_soon(self._ask, ask)

    async def _settle_ask(self, event: ev.AskAnswered | ev.AskWithdrawn) -> None:
        """A question is closed, by this editor or elsewhere."""
        ask = self._asks.pop(event.ask, None)
        if ask is None:
            return
        ask.settled = event
        ask.bell.set()
        if not ask.answering:
            ask.scope.cancel()
            await self._notify(answered_update(event, ask.opened))

    async def _ask(self, ask: _Ask) -> None:
        answer: Answer | None = None
        with ask.scope:
            answer = await self._converse(ask)
        if answer is None or ask.bell.is_set():
            return
        ask.answering = True
        try:
            await self._submit(AnswerAsk(ask=ask.opened.ask, answer=answer))
        except HubRefused as error:
            if error.problem.status == 409 and self._asks.get(ask.opened.ask) is ask:
                await ask.bell.wait()
            if ask.settled is not None:
                await self._notify(answered_update(ask.settled, ask.opened))
            else:
                ask.answering = False
                await self._open_still(f"the hub refused the answer: {error}")
        except LinkError as error:
            ask.answering = False
            await self._open_still(f"the answer did not reach the hub: {error}")

    async def _converse(self, ask: _Ask) -> Answer | None:
        """Ask the editor; by buttons if it fails with a form."""
        forms = self._editor.forms
        while True:
            dialogue = dialogue_for(self.id, ask.opened, self.known.me, forms=forms)
            if dialogue is None:
                return None
            request: Request | None = None
            try:
                request = next(dialogue)
                while True:
                    request = dialogue.send(await self._editor.ask(request))
            except StopIteration as end:
                answer: Answer | None = end.value
                if answer is None:
                    await self._open_still("the editor gave no answer")
                return answer
            except UsageError as error:
                await self._open_still(str(error))
                return None
            except RpcError as error:
                if isinstance(request, schema.RequestPermissionRequest):
                    await self._open_still(f"the editor did not answer: {error}")
                    return None
                forms = False
            finally:
                dialogue.close()

    async def _open_still(self, why: str) -> None:
        await self._notify([notice(f"{why}; the question is still open in the hub", "ask.open")])


class _Prompt:
    """A prompt of the editor whose turn has not ended."""

    def __init__(self, id_: str) -> None:
        self.id = id_
        self.begun = False
        self.sent = anyio.Event()
        """The hub has it, or never will."""
        self.ended = anyio.Event()
        self.outcome: ev.TurnEnded | RpcError | None = None
        """How its turn ended; None if the prompt was cancelled, or the session let go."""

    def end(self, outcome: ev.TurnEnded | RpcError | None) -> None:
        """It is over."""
        if not self.ended.is_set():
            self.outcome = outcome
            self.ended.set()


class _Ask:
    """An open question, and the dialogue about it."""

    def __init__(self, opened: ev.AskOpened) -> None:
        self.opened = opened
        self.scope = anyio.CancelScope()
        self.answering = False
        """This editor's answer is on its way to the hub, or was accepted."""
        self.settled: ev.AskAnswered | ev.AskWithdrawn | None = None
        self.bell = anyio.Event()


def _response(outcome: ev.TurnEnded | RpcError | None) -> schema.PromptResponse:
    if outcome is None:
        return schema.PromptResponse(stop_reason="cancelled")
    if isinstance(outcome, RpcError):
        raise outcome
    reason = stop_reason(outcome)
    if reason is None:
        code = AUTH_REQUIRED if outcome.problem == "authentication_failed" else INTERNAL_ERROR
        text = outcome.text or outcome.outcome
        raise RpcError(code, f"the turn failed: {text}", {"code": outcome.problem or "failed"})
    return schema.PromptResponse(stop_reason=reason, usage=settings.usage_of(outcome))
