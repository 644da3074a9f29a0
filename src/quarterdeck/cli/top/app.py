"""The screen of `quarterdeck top`, and what its keys do.

Owns which part is in view and who has the focus. Nothing here moves the focus by itself while a
person types: a new question is counted in the first line, and waits in the inbox.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

import msgspec
from msgspec import Raw
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.events import Resize
from textual.filter import LineFilter, NoColor
from textual.widgets import ContentSwitcher, OptionList, Static
from textual.worker import Worker

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.terminal.session_text import session_name
from quarterdeck.cli.terminal.text import count, plain
from quarterdeck.cli.top.ask_card import AskCard
from quarterdeck.cli.top.board import Board, Where
from quarterdeck.cli.top.fields import Field
from quarterdeck.cli.top.hands import SETTLE_SECONDS, Hands, Press
from quarterdeck.cli.top.panes import Inbox, SessionPane, Sessions
from quarterdeck.client import Feed
from quarterdeck.domain.errors import QuarterdeckError
from quarterdeck.domain.ids import new_id
from quarterdeck.protocol.commands import AnswerAsk, Interrupt, SendPrompt
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.protocol.stream_frames import Live
from quarterdeck.protocol.views import EventShape, SessionShape

HISTORY = 300
"""Earlier events of a session that are shown."""
SHOW_SECONDS = 0.1
WIDE = 90
"""Columns from which the list is always in view."""
REST = frozenset({SessionState.IDLE, SessionState.ENDED})
KEYS = (
    "F2 inbox  F3 sessions  F4 session  Enter opens, sends  ^X interrupt  ^Q quit",
    "F2 inbox F3 list F4 session ^Q quit",
)
CARD_KEYS = (
    "PgDn reads on to the keys of the question  Tab next question  F3 sessions  ^Q quit",
    "PgDn reads on  Tab next  F3 list",
)
"""Names of keys, for a wide and for a narrow screen."""


class Top(App[int]):
    """List, inbox and one session."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "quarterdeck"
    CSS = """
    #status { height: 1; background: $panel; }
    #keys { height: 1; background: $panel; color: $text-muted; text-wrap: nowrap; }
    #sessions { width: 36; height: 1fr; border: none; border-right: solid $panel; }
    #main { width: 1fr; height: 1fr; }
    .narrow #sessions { display: none; border-right: none; }
    .narrow.list #sessions { display: block; width: 1fr; }
    .narrow.list #main { display: none; }
    #inbox { height: 1fr; }
    #nothing { padding: 1 2; color: $text-muted; }
    .card { height: auto; border: round $panel; padding: 0 1; }
    .card:focus { border: heavy $accent; }
    .card:focus-within { border: heavy $accent; }
    #sessions:nocolor > .option-list--option-highlighted { text-style: underline !important; }
    .narrow .card { padding: 0; }
    .card-body { height: auto; }
    .card-keys { height: auto; }
    .card Field { height: auto; max-height: 8; background: $boost; }
    #session { height: 1fr; }
    #head { height: 2; background: $boost; text-wrap: nowrap; text-overflow: ellipsis; }
    #story { height: 1fr; scrollbar-size-vertical: 1; }
    #tail { height: auto; max-height: 50%; display: none; }
    #prompt { height: auto; max-height: 6; background: $boost; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("f2", "view('inbox')", "Inbox"),
        ("f3", "view('list')", "Sessions"),
        ("f4", "view('session')", "Session"),
        ("escape", "leave", "Back"),
        ("ctrl+x", "interrupt", "Interrupt"),
        ("ctrl+q", "quit", "Quit"),
        ("ctrl+c", "say_quit", "Quit"),
    ]

    def __init__(
        self,
        where: Where,
        *,
        settle: float = SETTLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` tells how fast a person types."""
        super().__init__()
        self._where = where
        self.board = Board(where, self._board_changed)
        self._status = Static(id="status")
        self._keys = Static(id="keys")
        self._sessions = Sessions(id="sessions")
        self._inbox = Inbox(id="inbox", settle=settle, clock=clock)
        self._pane = SessionPane(id="session")
        self._main = ContentSwitcher(self._inbox, self._pane, initial="inbox", id="main")
        self._following: Worker[None] | None = None
        self._open: str | None = None
        self._hands = Hands()
        self._changed = True
        self._columns = 80
        self._said = ""
        self.error: QuarterdeckError | None = None

    def get_line_filters(self) -> Sequence[LineFilter]:
        """No colours at all with NO_COLOR, where Textual would show greys."""
        return [NoColor()] if self.no_color else super().get_line_filters()

    def compose(self) -> ComposeResult:
        """The parts of the screen."""
        yield self._status
        with Horizontal():
            yield self._sessions
            yield self._main
        yield self._keys

    def on_mount(self) -> None:
        """Follow the hub."""
        self._fit(self.size.width)
        self._show_changes()
        self.run_worker(self._follow(), group="board")
        self.set_interval(SHOW_SECONDS, self._show_changes)
        self.set_interval(1.0, self._board_changed)  # ages grow
        self.action_view("list")

    def on_resize(self, event: Resize) -> None:
        """A narrow terminal shows one part at a time."""
        self._fit(event.size.width)

    def _fit(self, width: int) -> None:
        self._columns = width
        if not self.screen_stack:
            return
        self.screen.set_class(width < WIDE, "narrow")
        self._show_key_names()
        self._show_status()

    def on_descendant_focus(self) -> None:
        """Another part has the focus, and other keys."""
        self._show_key_names()

    def _show_key_names(self) -> None:
        if not self.screen_stack:  # events come until the end, also after the screen has gone
            return
        names = CARD_KEYS if isinstance(self.focused, AskCard) else KEYS
        self._keys.update(Text(names[0] if self._columns >= len(names[0]) else names[1]))

    async def _follow(self) -> None:
        try:
            await self.board.run()
        except QuarterdeckError as error:
            self.error = error
            self.exit(Exit.FAILED)

    # --- what the hub tells ---------------------------------------------------------------

    def _board_changed(self) -> None:
        self._changed = True

    def _show_changes(self) -> None:
        """Show what has changed: many things do at once where many agents work."""
        if not self._changed or not self.screen_stack or not self._inbox.is_whole:
            return
        self._changed = False
        board = self.board
        names = {shape.session: session_name(shape) for shape in board.sessions.values()}
        self._sessions.show(board.sorted_sessions())
        self._inbox.show(sorted(board.asks.values(), key=lambda view: view.at), names)
        if self._open is not None and (shape := board.sessions.get(self._open)) is not None:
            self._pane.show_head(shape)
        self._show_status()

    def _show_status(self) -> None:
        board = self.board
        line = Text(" quarterdeck", "bold")
        if board.problem:
            line.append(f"  waiting for the hub: {plain(board.problem)}", "bold red")
        else:
            line.append(f"  {count(len(board.sessions), 'session')}")
            asks = len(board.asks)
            line.append(f"  {count(asks, 'question')}", "bold yellow" if asks else "dim")
        if self._said:
            line.append(f"  {self._said}", "yellow")
        line.truncate(max(1, self._columns), overflow="ellipsis")
        self._status.update(line)

    def say(self, text: str) -> None:
        """Show a sentence in the first line, for a while."""
        self._said = plain(text).replace("\n", " ")
        self._show_status()
        self.set_timer(8.0, partial(self._unsay, self._said))

    def _unsay(self, text: str) -> None:
        if self._said == text:
            self._said = ""
            self._show_status()

    # --- what is in view ------------------------------------------------------------------

    def action_view(self, name: str) -> None:
        """Show a part, and give it the focus."""
        self.screen.set_class(name == "list", "list")
        match name:
            case "list":
                self._sessions.focus()
            case "inbox":
                self._main.current = "inbox"
                cards = self._inbox.cards
                if cards and not any(card.holds_focus for card in cards):
                    cards[0].focus()
                    cards[0].scroll_visible(top=True, animate=False)
                elif not cards:
                    self._sessions.focus()
            case "session" if self._open is None:
                self.say("no session is open: choose one with F3 and Enter")
                self._sessions.focus()
            case _:
                self._main.current = "session"
                self._pane.field.focus()

    def action_leave(self) -> None:
        """Leave what is open."""
        self.action_view("list")

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open a session."""
        shape = self.board.sessions.get(event.option_id or "")
        if shape is None:
            return
        if self._following is not None:
            self._following.cancel()
        self._open = shape.session
        self._pane.open(shape)
        self._following = self.run_worker(self._follow_session(shape), group="session")
        self.action_view("session")

    def on_field_left(self) -> None:
        """Escape in the field for prompts: the text stays."""
        self.action_leave()

    # --- one session ----------------------------------------------------------------------

    async def _follow_session(self, shape: SessionShape) -> None:
        feed = Feed(
            self._where, shape.session, max(0, shape.head - HISTORY), _Listener(self, shape)
        )
        try:
            await feed.run()
        except QuarterdeckError as error:
            if self._open == shape.session:
                self._pane.note(str(error))

    def events_of(self, session: str, shapes: tuple[EventShape, ...]) -> None:
        """Events of the session that is open."""
        if session == self._open:
            self._pane.take_events(shapes)

    def live_of(self, session: str, frame: Live) -> None:
        """Text of the session that is open."""
        if session == self._open:
            self._pane.take_live(frame)

    async def on_field_sent(self, message: Field.Sent) -> None:
        """Send a prompt. The text stays in the field until the hub has it."""
        if self._open is None or not message.text.strip():
            return
        field, text = message.field, message.text
        content = Raw(msgspec.json.encode(text))
        command = SendPrompt(session=self._open, prompt=new_id(), content=content)
        field.text = ""
        self.run_worker(self._send(command, field, text), group="commands")

    async def _send(self, command: SendPrompt, field: Field, text: str) -> None:
        try:
            await self.board.do(command)
        except QuarterdeckError as error:
            self.say(f"not sent: {error}")
            field.text = text + field.text

    def action_interrupt(self) -> None:
        """Interrupt the turn of the open session, with the second press."""
        shape = self.board.sessions.get(self._open or "")
        if shape is None or shape.state in REST:
            self.say("no turn runs in the open session")
            return
        match self._hands.press("ctrl+x", lasting=True):
            case Press.ARMED:
                self.say(f"Ctrl-X again interrupts the turn of {session_name(shape)}")
            case Press.GO:
                self.run_worker(self._interrupt(shape.session), group="commands")
            case Press.EARLY:
                pass

    async def _interrupt(self, session: str) -> None:
        try:
            await self.board.do(Interrupt(session=session))
            self.say("interrupted")
        except QuarterdeckError as error:
            self.say(str(error))

    # --- answers --------------------------------------------------------------------------

    def on_ask_card_answered(self, message: AskCard.Answered) -> None:
        """Send an answer."""
        command = AnswerAsk(ask=message.card.view.opened.ask, answer=message.answer)
        self.run_worker(self._answer(message.card, command), group="commands")

    async def _answer(self, card: AskCard, command: AnswerAsk) -> None:
        try:
            await self.board.do(command)
        except QuarterdeckError as error:
            if card.is_mounted:
                card.show_refusal(str(error))
            else:
                self.say(str(error))

    def action_say_quit(self) -> None:
        """Ctrl-C ends other programs, and this one only by its own key."""
        self.say("Ctrl-Q leaves; the agents keep running")


class _Listener:
    """Gives what a feed tells to the app. Text that is being written comes after the history."""

    def __init__(self, app: Top, shape: SessionShape) -> None:
        self._app = app
        self._session = shape.session
        self._missing = shape.head
        self._early: list[Live] = []

    def events(self, shapes: tuple[EventShape, ...]) -> None:
        """These happened."""
        self._app.events_of(self._session, shapes)
        if shapes[-1].seq >= self._missing:
            self._missing = 0
            early, self._early = self._early, []
            for frame in early:
                self._app.live_of(self._session, frame)

    def view(self, shape: SessionShape) -> None:
        """Not asked for: the board has the views."""

    def live(self, frame: Live) -> None:
        """Text is being written."""
        if self._missing:
            self._early.append(frame)
        else:
            self._app.live_of(self._session, frame)

    def connection_lost(self, reason: str) -> None:
        """The board shows it."""

    def connection_made(self) -> None:
        """The same."""
