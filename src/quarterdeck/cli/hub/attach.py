"""`quarterdeck attach`: follow a session in the terminal, and answer its questions.

Owns who has the keyboard: an open question first, otherwise the prompt. `story` shows the events,
`keyboard_answers` has the dialogues. Leaving does not affect the agent.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from uuid import uuid4

import anyio
import anyio.lowlevel
import msgspec
from anyio.abc import TaskGroup
from msgspec import Raw

from quarterdeck.cli.exits import Exit, OutputClosed
from quarterdeck.cli.hub.keyboard_answers import answer_at
from quarterdeck.cli.hub.notify import Notifier, run_program
from quarterdeck.cli.hub.story import Story
from quarterdeck.cli.hub.target import Target, address_later, connect, find_session
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.footer import footer_for
from quarterdeck.cli.terminal.keyboard import Keyboard
from quarterdeck.cli.terminal.keys import Keys, keyboard_there
from quarterdeck.cli.terminal.prompt_line import Typing, tick, typing_for
from quarterdeck.cli.terminal.screen import Screen
from quarterdeck.cli.terminal.text import state_text
from quarterdeck.client import Feed, HubRefused
from quarterdeck.domain.errors import LinkError, QuarterdeckError, UsageError
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.coded_texts import with_texts
from quarterdeck.protocol.commands import AnswerAsk, Interrupt, SendPrompt
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.protocol.stream_frames import Live
from quarterdeck.protocol.views import AskView, EventShape, SessionShape
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.wire.tools import one_line

MARK = "> "
HISTORY = 300
"""Earlier events that are shown."""
LEAVE_WORDS = frozenset({"/exit", "/quit", "/detach"})
_BUSY = frozenset(
    {
        SessionState.STARTING,
        SessionState.WORKING,
        SessionState.COMPACTING,
        SessionState.RETRYING,
        SessionState.LIMITED,
    }
)
_AT_REST = frozenset({SessionState.IDLE, SessionState.ENDED})
_CLEAR_LINE = "\r\x1b[K"


def run_attach(given: str, target: Target, *, notify: bool | None = False) -> int:
    """Attach until the person leaves; returns the exit code.

    `notify`: on the desktop, True always, False when the person seems to be away, None never.
    """
    if not keyboard_there() or not sys.stdout.isatty():
        raise UsageError("attach needs a terminal; use `quarterdeck log --follow` without one")
    client = connect(target)
    shape = client.session(find_session(client, given))
    return anyio.run(_attach, target, shape, client.asks(shape.session), notify)


async def _attach(
    target: Target, shape: SessionShape, asks: tuple[AskView, ...], notify: bool | None
) -> int:
    return await _Attached(target, shape, asks, notify).main()


class _Attached:
    """One person attached to one session."""

    def __init__(
        self,
        target: Target,
        shape: SessionShape,
        asks: tuple[AskView, ...],
        notify: bool | None,
    ) -> None:
        self._session = shape.session
        self._head = shape.head
        self._name = shape.name or shape.session
        self._console = consoles.stdout()
        self._notifier = Notifier(self._console.file, self._name, self._start, always=notify)
        self._tasks: TaskGroup | None = None
        self._footer = footer_for(self._console)
        self._screen = Screen(self._console, self._footer)
        self._story = Story(self._screen, dialogues=True)
        self._keys = Keys(sys.stdin.fileno())
        self._typing = typing_for(self._keys, self._footer)
        self._keyboard = Keyboard(
            self._console,
            self._keys,
            self._screen,
            settle=anyio.lowlevel.checkpoint,
            typing=self._typing,
        )
        where = partial(address_later, target)
        self._feed = Feed(where, shape.session, max(0, shape.head - HISTORY), self)
        self._state = shape.state
        self._open = {card.opened.ask: card.opened for card in asks}
        self._asked = anyio.Event()
        self._typed = anyio.Event()
        self._unsent: list[str] = []
        self._caught_up = anyio.Event()
        self._early: list[Live] = []
        self._reading: anyio.CancelScope | None = None
        self._asking: tuple[str, anyio.CancelScope] | None = None
        self._interrupts = 0
        self._everything = anyio.CancelScope()
        self._error: QuarterdeckError | OutputClosed | None = None
        self._code = Exit.SUCCESS

    async def main(self) -> int:
        """Run to the end."""
        self._screen.note(f"attached to {self._name}; {state_text(self._state)}; Ctrl-D leaves")
        async with anyio.create_task_group() as tasks:
            self._tasks, self._everything = tasks, tasks.cancel_scope
            tasks.start_soon(self._signals)
            tasks.start_soon(self._converse)
            if self._footer is not None:
                tasks.start_soon(tick, self._footer)
            try:
                await self._feed.run()
            except (QuarterdeckError, OutputClosed) as error:
                self._error = error  # raised below, outside of the group
            finally:
                self._leave_terminal()
            tasks.cancel_scope.cancel()
        if self._error is not None:
            self._screen.end_line()
            raise self._error
        for text in self._unsent:
            self._screen.note(f"not sent: {one_line(text, 200)}", "yellow")
        self._screen.note(f"left; the agent keeps running: quarterdeck attach {self._session}")
        return self._code

    def _leave_terminal(self) -> None:
        """The terminal is as it was before."""
        with suppress(OutputClosed):
            if self._typing is not None:
                self._typing.release_terminal()
            if self._footer is not None:
                self._footer.close()

    # --- what the feed tells -------------------------------------------------------------------

    def events(self, shapes: tuple[EventShape, ...]) -> None:
        """Show events, and handle the questions among them."""
        for shape in shapes:
            self._story.show(shape)
            self._note_state(shape.event)
            self._show_work(shape.at)
            if shape.seq > self._head:
                self._note_question(shape.event)
                self._notifier.observe(shape.event)
        self._settle_in()

    def live(self, frame: Live) -> None:
        """Show text that is being written, after what was there before it."""
        if self._caught_up.is_set():
            self._story.live(frame)
        else:
            self._early.append(frame)

    def view(self, shape: SessionShape) -> None:
        """Not asked for: the terminal shows events."""

    def connection_lost(self, reason: str) -> None:
        """The connection to the hub is lost; the agent may keep working."""
        self._screen.note(f"waiting for the hub (Ctrl-C leaves): {reason}", "yellow")

    def connection_made(self) -> None:
        """The hub is connected again."""
        self._settle_in()

    def _start(self, argv: Sequence[str]) -> None:
        """Run a program for the notifier, until we leave."""
        if self._tasks is not None:
            self._tasks.start_soon(run_program, argv)

    def _settle_in(self) -> None:
        if self._feed.seen >= self._head:
            self._caught_up.set()
            early, self._early = self._early, []
            for frame in early:
                self._story.live(frame)

    def _note_state(self, event: ev.Event) -> None:
        match event:
            case ev.StateChanged(state=state):
                self._state = state
            case ev.RunStarting():
                self._state = SessionState.STARTING
            case ev.RunEnded():
                self._state, self._interrupts = SessionState.ENDED, 0
            case ev.TurnEnded():
                self._interrupts = 0
            case ev.SessionDeleted():
                self._everything.cancel()
            case _:
                pass

    def _show_work(self, at: int) -> None:
        """Show in the footer what the agent does, and since when."""
        if self._footer is None:
            return
        if self._state in _BUSY:
            if not self._footer.working:
                self._footer.begin_work(state_text(self._state), time.time() - at / 1000)
            elif self._state is not SessionState.WORKING:
                self._footer.say(state_text(self._state))
        else:
            self._footer.end_work()

    def _note_question(self, event: ev.Event) -> None:
        match event:
            case ev.AskOpened(ask=ask):
                self._open[ask] = event
                self._asked.set()
                if self._reading is not None:
                    self._reading.cancel()
            case ev.AskAnswered(ask=ask, by=by, allowed=allowed):
                answer = "allowed" if allowed else "denied"
                self._close_question(ask, f"{answer} by {by}, elsewhere")
            case ev.AskWithdrawn(ask=ask) as withdrawn:
                reason = with_texts(withdrawn).reason
                self._close_question(ask, f"the question was withdrawn: {reason}")
            case ev.RunEnded(run=run):
                for opened in list(self._open.values()):
                    if opened.run == run:
                        self._close_question(opened.ask, "the question ended with its process")
            case _:
                pass

    def _close_question(self, ask: str, how: str) -> None:
        """A question is no longer open; show that, unless it was answered here."""
        if self._open.pop(ask, None) is None:
            return
        if self._asking is not None and self._asking[0] == ask:
            self._asking[1].cancel()
        self._screen.note(how)

    # --- who has the keyboard ------------------------------------------------------------------

    async def _converse(self) -> None:
        await self._caught_up.wait()
        try:
            if self._typing is None:
                await self._take_turns()
            else:
                async with background_tasks() as tasks:
                    tasks.start_soon(self._ask_all)
                    tasks.start_soon(self._send_all)
                    await self._read_all(self._typing)
        except* OutputClosed:
            self._error = OutputClosed()
        self._everything.cancel()

    async def _take_turns(self) -> None:
        """Where the prompt line cannot be kept: questions interrupt it."""
        while True:
            if self._open:
                await self._ask(next(iter(self._open.values())))
            elif (text := await self._read_prompt()) is None:
                return
            elif text.strip():
                await self._send(text)

    async def _ask_all(self) -> None:
        """Ask each question, when nothing is half typed."""
        while True:
            while self._open:
                await self._ask(next(iter(self._open.values())))
            self._asked = anyio.Event()
            await self._asked.wait()

    async def _read_all(self, typing: Typing) -> None:
        """Read what is typed, until the person leaves."""
        typing.typed = self._notifier.note_typing
        while (text := await typing.line()) is not None and text.strip() not in LEAVE_WORDS:
            if text.strip():
                self._screen.echo_prompt(text)
                self._unsent.append(text)
                self._typed.set()

    async def _send_all(self) -> None:
        """Send what was typed, in its order. A hub that is away does not stop the typing."""
        while True:
            while self._unsent:
                await self._send(self._unsent[0])
                del self._unsent[0]
            self._typed = anyio.Event()
            await self._typed.wait()

    async def _ask(self, opened: ev.AskOpened) -> None:
        with anyio.CancelScope() as scope:
            self._asking = (opened.ask, scope)
            answer = await answer_at(self._keyboard, opened)
            self._notifier.note_typing()
            # From here on its outcome shows what became of it.
            self._asking = None
            self._open.pop(opened.ask, None)
            refusal = await self._try(AnswerAsk(ask=opened.ask, answer=answer))
            if refusal is not None and refusal.problem.code == "bad_request":
                self._open[opened.ask] = opened  # the answer was invalid: ask once more
        self._asking = None

    async def _read_prompt(self) -> str | None:
        """The typed prompt; empty if a question interrupted, None when they leave."""
        lines: list[str] = []
        while True:
            self._screen.prompt(MARK if not lines else "… ")
            line: str | None = ""
            with anyio.CancelScope() as self._reading:
                line = await self._keys.line()
            interrupted, self._reading = self._reading.cancelled_caught, None
            if not interrupted:
                self._notifier.note_typing()
            self._screen.prompt_taken()
            if interrupted:
                self._console.file.write(_CLEAR_LINE)
                return ""
            if line is None or line.strip() in LEAVE_WORDS:
                return None
            if not line.endswith("\\"):
                return "\n".join([*lines, line])
            lines.append(line[:-1])

    async def _send(self, text: str) -> None:
        prompt = str(uuid4())
        self._story.typed_here.add(prompt)
        self._interrupts = 0
        content = Raw(msgspec.json.encode(text))
        await self._try(SendPrompt(session=self._session, prompt=prompt, content=content))

    async def _try(self, command: SendPrompt | AnswerAsk | Interrupt) -> HubRefused | None:
        """Send a command; a refusal of the hub is shown, and returned."""
        try:
            await self._feed.do(command)
        except HubRefused as error:
            self._screen.note(str(error), "red")
            return error
        except LinkError as error:
            self._screen.note(str(error), "red")
        return None

    # --- Ctrl-C --------------------------------------------------------------------------------

    async def _signals(self) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async with anyio.create_task_group() as tasks:
                async for number in signals:
                    if number == signal.SIGINT and self._keyboard.editing:
                        continue  # it was meant for the editor
                    if number == signal.SIGINT and self._interrupts == 0:
                        self._interrupts = 1
                        tasks.start_soon(self._interrupt)
                        continue
                    if number != signal.SIGINT:
                        self._code = Exit.TERMINATED
                    self._everything.cancel()
                    return

    async def _interrupt(self) -> None:
        if self._state in _AT_REST:
            self._screen.note("Ctrl-C again, Ctrl-D or /detach leaves; the agent keeps running")
            return
        self._screen.note("interrupting … (Ctrl-C again leaves; the agent keeps running)")
        await self._try(Interrupt(session=self._session))
