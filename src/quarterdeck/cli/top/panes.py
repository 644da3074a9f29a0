"""The parts of the screen: the list of sessions, the inbox, and one session.

Owns how each looks. What they show comes from `board`, or from a `Feed` of the session that is
open; `app` decides which is in view.
"""

from __future__ import annotations

import io
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.widgets import OptionList, RichLog, Static
from textual.widgets.option_list import Option

from quarterdeck.cli.hub.story import Story
from quarterdeck.cli.terminal.footer import Footer
from quarterdeck.cli.terminal.screen import Screen
from quarterdeck.cli.terminal.session_text import session_name, session_place
from quarterdeck.cli.terminal.text import age, rough_cost, session_state
from quarterdeck.cli.top.ask_card import AskCard
from quarterdeck.cli.top.fields import Field
from quarterdeck.protocol.failures import failure_of
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.protocol.stream_frames import Live
from quarterdeck.protocol.views import AskView, EventShape, SessionShape
from quarterdeck.wire.tools import one_line

MOST_EVENTS = 1000
"""Events of the open session that are kept, to be drawn again at another width."""
MOST_ROWS = 5000
TAIL_SECONDS = 0.1

STATE_MARKS = {
    SessionState.WAITING: ("?", "bold yellow"),
    SessionState.WORKING: ("●", "green"),
    SessionState.COMPACTING: ("●", "green"),
    SessionState.STARTING: ("◌", "green"),
    SessionState.RETRYING: ("!", "red"),
    SessionState.LIMITED: ("!", "red"),
    SessionState.DISCONNECTED: ("!", "red"),
    SessionState.IDLE: ("○", "dim"),
    SessionState.ENDED: ("·", "dim"),
}


def session_row(shape: SessionShape) -> Text:
    """A session in two lines of the list."""
    mark, style = state_mark(shape)
    return Text.assemble(
        (f"{mark} ", style), (session_name(shape), "bold"), "\n", (f"  {activity(shape)}", "dim")
    )


def state_mark(shape: SessionShape) -> tuple[str, str]:
    """A sign for what a session does, or for what went wrong with it, and its style."""
    if failure_of(shape) is not None:
        return "!", "red"
    return STATE_MARKS.get(shape.state, ("?", ""))


def activity(shape: SessionShape) -> str:
    """What a session does right now, and what it has used."""
    now = time.time() * 1000
    parts = [session_state(shape)]
    if shape.state is SessionState.WORKING and shape.holds.tools:
        tool = shape.holds.tools[-1]
        parts = [f"{one_line(tool.title or tool.tool, 80)} · {age(now - tool.since)}"]
    elif shape.state is SessionState.ENDED and shape.detail:
        parts.append(one_line(shape.detail, 60))
    elif shape.state is not SessionState.WORKING:
        parts.append(age(now - shape.updated))
    if todos := shape.holds.todos:
        done = sum(todo.status == "completed" for todo in todos)
        parts.append(f"{done}/{len(todos)}")
    if shape.budgets:
        parts.append("budget used up")
    return " · ".join([*parts, rough_cost(shape.cost_usd)])


class Sessions(OptionList):
    """The list of sessions. Enter opens one."""

    def show(self, shapes: list[SessionShape]) -> None:
        """Show these, in this order; the highlighted session stays highlighted."""
        wanted = [shape.session for shape in shapes]
        if [option.id for option in self.options] == wanted:
            for shape in shapes:
                self.replace_option_prompt(shape.session, session_row(shape))
            return
        here = self.highlighted
        chosen = None if here is None else self.get_option_at_index(here).id
        self.clear_options()
        self.add_options([Option(session_row(shape), id=shape.session) for shape in shapes])
        if wanted:
            self.highlighted = wanted.index(chosen) if chosen in wanted else 0


class Inbox(VerticalScroll, can_focus=False):
    """All open questions, oldest first, one card each."""

    def __init__(self, *, id: str, settle: float, clock: Callable[[], float]) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._settle = settle
        self._clock = clock

    def compose(self) -> ComposeResult:
        """What is shown while nothing is asked."""
        yield Static("No open questions.", id="nothing")

    @property
    def cards(self) -> list[AskCard]:
        """The cards, in their order."""
        return list(self.query(AskCard))

    @property
    def is_whole(self) -> bool:
        """Whether it has its parts: when the app ends they go one by one."""
        return bool(self.query("#nothing"))

    def show(self, views: list[AskView], names: dict[str, str]) -> None:
        """Show these questions. What is pressed on a card counts only after a moment of rest."""
        wanted = {view.opened.ask: view for view in views}
        cards = {card.view.opened.ask: card for card in self.cards if not card.leaving}
        gone = [card for ask, card in cards.items() if ask not in wanted]
        new = [view for ask, view in wanted.items() if ask not in cards]
        focused = next((at for at, card in enumerate(cards.values()) if card.holds_focus), None)
        for card in gone:
            card.leave()
        if new:
            self.mount(
                *(
                    AskCard(
                        view,
                        names.get(view.session, ""),
                        settle=self._settle,
                        clock=self._clock,
                    )
                    for view in new
                )
            )
        for ask, card in cards.items():
            if ask in wanted:
                view = wanted[ask]
                card.update_view(view, names.get(view.session, ""))
                if gone:
                    card.note_move()
        self.query_one("#nothing").display = not wanted
        if focused is not None and any(card.holds_focus for card in gone):
            rest = [card for card in self.cards if card not in gone]
            if rest:
                rest[min(focused, len(rest) - 1)].focus()

    def watch_scroll_y(self, old: float, new: float) -> None:
        """The view has moved."""
        super().watch_scroll_y(old, new)
        for card in self.cards:
            card.note_scroll()


class _Tail(Footer):
    """A footer that draws nothing: the pane shows what is being written."""

    tail: Callable[[int], list[Text]] | None = None

    def redraw(self) -> None:
        """The pane does that."""

    def hide(self) -> None:
        """The same."""

    def unhide(self) -> None:
        """The same."""

    @contextmanager
    def above(self) -> Iterator[None]:
        """Print as it is."""
        yield

    def set_tail(self, tail: Callable[[int], list[Text]] | None) -> None:
        """Keep it for the pane."""
        self.tail = tail


class SessionPane(Vertical):
    """One session: its head, its story, what is being written, and a field for prompts."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._head = Static(id="head")
        self._log = RichLog(id="story", max_lines=MOST_ROWS, wrap=False, min_width=1)
        self._tail = Static(id="tail")
        self.field = Field("A prompt; Enter sends it", id="prompt")
        self._events: deque[EventShape] = deque(maxlen=MOST_EVENTS)
        self._width = 0
        self._sink = io.StringIO()
        self._writing: _Tail | None = None
        self._story: Story | None = None
        self._stale = False
        self.shape: SessionShape | None = None

    def compose(self) -> ComposeResult:
        """The parts."""
        yield self._head
        yield self._log
        yield self._tail
        yield self.field

    def on_mount(self) -> None:
        """Show what is written, again and again."""
        self.set_interval(TAIL_SECONDS, self._show_tail)

    def on_resize(self) -> None:
        """Draw the story again, if the width has changed."""
        if self._log.scrollable_content_region.width != self._width:
            self._draw()

    # --- what the feed tells --------------------------------------------------------------

    def open(self, shape: SessionShape) -> None:
        """Begin with another session."""
        self._events.clear()
        self.shape = shape
        self._draw()
        self.show_head(shape)

    def show_head(self, shape: SessionShape) -> None:
        """Show the state of the session."""
        self.shape = shape
        mark, style = state_mark(shape)
        head = Text.assemble(
            (f"{mark} ", style),
            (session_name(shape), "bold"),
            f"  {activity(shape)}",
            ("  F2 answers" if shape.asks else "", "bold yellow"),
            "\n",
        )
        facts = [shape.model or "", shape.mode or "", session_place(shape)]
        context = shape.holds.context
        if context.window:
            facts.insert(2, f"context {context.tokens / context.window:.0%}")
        active = [todo for todo in shape.holds.todos if todo.status == "in_progress"]
        if active:
            facts.insert(0, active[0].doing or active[0].text)
        head.append(" · ".join(one_line(fact, 80) for fact in facts if fact), "dim")
        self._head.update(head)

    def take_events(self, shapes: tuple[EventShape, ...]) -> None:
        """Events of the session."""
        self._events.extend(shapes)
        if self._story is None:
            return
        for shape in shapes:
            self._story.show(shape)
        self._print()

    def take_live(self, frame: Live) -> None:
        """Text that is being written."""
        if self._story is not None:
            self._story.live(frame)
            self._print()

    def note(self, text: str) -> None:
        """A line of our own below the story."""
        self._log.write(Text(one_line(text, 2000), "yellow"))

    def _draw(self) -> None:
        """Draw the story for the width that there is."""
        self._width = self._log.scrollable_content_region.width
        self._log.clear()
        self._story = None
        if self._width < 1:
            return
        self._sink = io.StringIO()
        console = Console(
            file=self._sink,
            force_terminal=True,
            color_system="standard",
            width=self._width,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
            _environ={},
        )
        self._writing = _Tail(console)
        self._story = Story(Screen(console, self._writing))
        for shape in self._events:
            self._story.show(shape)
        self._print()

    def _print(self) -> None:
        """Move what was printed into the story."""
        printed = self._sink.getvalue()
        self._sink.seek(0)
        self._sink.truncate()
        if printed:
            # Only the colours are ours: every other escape was made visible before it was printed.
            self._log.write(Text.from_ansi(printed.removesuffix("\n")), shrink=False)
        self._stale = True

    def _show_tail(self) -> None:
        if not self._stale or self._writing is None:
            return
        self._stale = False
        tail = self._writing.tail
        lines = tail(max(1, self._width)) if tail is not None else []
        room = max(1, self.size.height // 2)
        self._tail.update(Text("\n").join(lines[-room:]))
        self._tail.display = bool(lines)
