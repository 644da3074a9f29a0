"""The widget of one open question: what a person reads, and the keys that answer it.

Owns the way from a key to an answer. A key counts only while the card itself has the focus, and
only if it was meant for it (`hands`). The answer is sent a moment later; any other key takes it
back, so that typed words never answer. `card` says what each key means.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import ScrollableContainer, Vertical
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static

from quarterdeck.cli.terminal.text import age, plain
from quarterdeck.cli.top.card import Choice, Replies, card_of
from quarterdeck.cli.top.fields import Field
from quarterdeck.cli.top.hands import SETTLE_SECONDS, Hands, Press
from quarterdeck.domain.errors import QuarterdeckError
from quarterdeck.protocol.commands import Answer
from quarterdeck.protocol.views import AskView

_SCROLLING = frozenset({"up", "down", "pageup", "pagedown", "home", "end", "tab", "shift+tab"})
"""Keys that move the view or the focus, and mean nothing to a card."""


class AskCard(Vertical, can_focus=True):
    """One question. `update_view` keeps it true."""

    class Answered(Message):
        """The person has answered; the card waits for `refused`, or for its removal."""

        def __init__(self, card: AskCard, answer: Answer) -> None:
            super().__init__()
            self.card = card
            self.answer = answer

    def __init__(
        self,
        view: AskView,
        name: str,
        *,
        settle: float = SETTLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(classes="card")
        self._settle = settle
        self._clock = clock
        self.view = view
        self._session_name = name
        self._card = card_of(view)
        self._replies = Replies(self._card.questions) if self._card.questions else None
        self._hands = Hands(clock, settle=settle)
        self._body = Static(classes="card-body")
        self._keys = Static(classes="card-keys")
        self._field: Field | None = None
        self._field_choice: Choice | None = None
        self._field_since = 0.0
        self._commit: Timer | None = None
        self._sent = False
        self.note = ""
        """A sentence about the last key."""
        self._seen_end = False
        self.leaving = False
        """Whether the question is settled, and the card about to be gone."""

    @property
    def holds_focus(self) -> bool:
        """Whether the card or its field has the focus."""
        return self.has_focus or (self._field is not None and self._field.has_focus)

    def leave(self) -> None:
        """The question is settled."""
        self.leaving = True
        self._take_back()
        self.remove()

    def compose(self) -> ComposeResult:
        """The parts of the card."""
        yield self._body
        yield self._keys

    def on_mount(self) -> None:
        """Show it."""
        self._show()

    # --- what it shows --------------------------------------------------------------------

    def update_view(self, view: AskView, name: str) -> None:
        """The question has changed."""
        if view != self.view:
            self.view, self._card = view, card_of(view)
            self.note_move()
        self._session_name = name
        self._show()

    def note_move(self) -> None:
        """Something else appeared or disappeared: what was pressed before does not count."""
        self._take_back()
        self._hands.note_move()
        self._show_keys()

    def show_refusal(self, why: str) -> None:
        """The hub did not take the answer."""
        self._sent = False
        self.note = plain(why)
        self.note_move()

    def _show(self) -> None:
        waiting = age(time.time() * 1000 - self.view.at)
        head = Text.assemble(
            (self._session_name, "bold"), f" · {self._card.title}", (f" · {waiting}", "dim")
        )
        lines = [head, *(self._replies.lines() if self._replies else ()), *self._card.lines]
        self._body.update(Text("\n").join(lines))
        self._show_keys()

    def _show_keys(self) -> None:
        lines: list[Text] = []
        if self.note:
            lines.append(Text(self.note, "bold yellow"))
        if self._sent:
            lines.append(Text("sent …", "dim"))
        elif self._field_choice is not None:
            lines.append(Text(f"{self._field_choice.field}. Enter sends, Esc cancels.", "dim"))
        elif not self.has_focus:
            lines.append(Text("Tab goes to this question", "dim"))
        else:
            lines += [self._key_line(choice) for choice in self._choices()]
        self._keys.update(Text("\n").join(lines))
        if self.has_focus and not self._hands.ready:
            # The keys get their colour when they count.
            self.set_timer(self._settle, self._show_ready)

    def _show_ready(self) -> None:
        if self._hands.ready and not self.leaving:
            self._show_keys()

    @property
    def ready(self) -> bool:
        """Whether a key would count now."""
        return self.has_focus and self._hands.ready and not self._sent

    def _key_line(self, choice: Choice) -> Text:
        style = "bold cyan" if self._hands.ready else "dim"
        line = Text.assemble((choice.key, style), f"  {choice.label}")
        if self._hands.armed == choice.key:
            line.stylize("reverse")
            line.append(f"  press {choice.key} again", "bold")
        elif choice.lasting:
            line.append("  (twice)", "dim")
        return line

    def _choices(self) -> list[Choice]:
        if self._replies is None:
            return list(self._card.choices)
        replies = self._replies
        several = len(replies.questions) > 1
        how = "1-9 chooses" + (", ← → another question" if several else "")
        own = Choice(
            key="o",
            label=f"an answer of your own …   ({how})",
            make=lambda _: replies.answer(),
            field="Your answer",
            needed=True,
        )
        send = Choice(key="enter", label="send the answers", make=lambda _: replies.answer())
        return [*([send] if replies.complete else []), own, *self._card.choices]

    # --- keys -----------------------------------------------------------------------------

    def on_focus(self) -> None:
        """The focus has come here: it takes a moment before keys count."""
        self.note_move()

    def on_blur(self) -> None:
        """The focus has gone."""
        self.note_move()

    def on_key(self, event: events.Key) -> None:
        """A key that no field took."""
        if not self.has_focus or event.key in _SCROLLING:
            return
        if self._sent:
            event.stop()
            return
        if self._commit is not None:
            event.stop()
            self.note = "Not sent: another key was pressed."
            self.note_move()
            return
        if event.key == "escape" and (self._hands.disarm() or self.note):
            event.stop()
            self.note = ""
            self._show_keys()
            return
        if self._replies is not None and self._choose(event):
            event.stop()
            return
        found = [choice for choice in self._choices() if choice.key == event.key]
        if found:
            event.stop()
            self._press(found[0])
        elif event.is_printable:
            # A person types: the letters that follow are not meant for this question either.
            self._hands.note_move()
            self._show_keys()

    def _choose(self, event: events.Key) -> bool:
        """Keys that choose among the options of the model's questions. They send nothing."""
        assert self._replies is not None
        if event.key in {"left", "right"}:
            self._replies.move(1 if event.key == "right" else -1)
        elif not (event.key.isdecimal() and len(event.key) == 1):
            return False
        elif self._hands.press(event.key) is Press.EARLY:
            return True
        else:
            self._replies.choose(int(event.key))
        self._show()
        return True

    def _press(self, choice: Choice) -> None:
        self.note = ""
        match self._hands.press(choice.key, lasting=choice.lasting):
            case Press.EARLY:
                self.note = "Too early: read it, and press the key again."
            case Press.ARMED:
                pass
            case Press.GO if choice.allows and not self._end_was_seen():
                self.note = "Read it to its end first: PgDn."
            case Press.GO if choice.field:
                self._open_field(choice)
            case Press.GO:
                self.note = f"{choice.label}: in a moment; any key takes it back"
                self._commit = self.set_timer(self._settle, lambda: self._send(choice, ""))
        self._show_keys()

    def _end_was_seen(self) -> bool:
        """Whether the last line of the question has been in view."""
        parent = self.parent
        if not self._seen_end and isinstance(parent, ScrollableContainer):
            bottom = self._body.virtual_region.bottom + self.virtual_region.y
            self._seen_end = bottom <= parent.scroll_offset.y + parent.size.height + 1
        return self._seen_end

    def note_scroll(self) -> None:
        """The view has moved: it may show the end of the question now."""
        if self.has_focus:
            self._end_was_seen()

    def _take_back(self) -> None:
        if self._commit is not None:
            self._commit.stop()
            self._commit = None

    def _send(self, choice: Choice, text: str) -> None:
        self._commit = None
        try:
            answer = choice.make(text)
        except QuarterdeckError as error:
            self.note = plain(str(error))
            self._show_keys()
            return
        self._sent, self.note = True, ""
        self._show_keys()
        self.post_message(self.Answered(self, answer))

    # --- the field ------------------------------------------------------------------------

    def _open_field(self, choice: Choice) -> None:
        self._field_choice = choice
        self._field_since = self._clock()
        self._field = Field(choice.field)
        self.mount(self._field)
        self._field.focus()

    def on_field_sent(self, message: Field.Sent) -> None:
        """Enter in the field."""
        message.stop()
        choice = self._field_choice
        if choice is None or self._clock() - self._field_since < self._settle:
            return
        text = message.text.strip()
        if choice.needed and not text:
            return
        self._close_field()
        if self._replies is not None and choice.key == "o":
            self._replies.write(text)
            self._show()
        else:
            self._send(choice, text)

    def on_field_left(self, message: Field.Left) -> None:
        """Escape in the field."""
        message.stop()
        self._close_field()

    def _close_field(self) -> None:
        field, self._field, self._field_choice = self._field, None, None
        self.focus()
        if field is not None:
            field.remove()
        self._show_keys()
