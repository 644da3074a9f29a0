"""What every part of the front works with: its settings, its state, and the outbox.

Owns how a message of the front is sent: named by a key, with buttons whose data is a short id, with
a note of what it is about, and without a sound in quiet hours. It knows neither the hub nor where
updates come from.
"""

from __future__ import annotations

from quarterdeck.fronts.telegram.api import Upload
from quarterdeck.fronts.telegram.ask_store import AskStore, Note
from quarterdeck.fronts.telegram.asks import Press, Rows
from quarterdeck.fronts.telegram.chats import Chosen, Place, Preferences, choose_preference
from quarterdeck.fronts.telegram.database import Database
from quarterdeck.fronts.telegram.display import beginning, safe
from quarterdeck.fronts.telegram.inbox import Inbox
from quarterdeck.fronts.telegram.options import Options
from quarterdeck.fronts.telegram.outbox import Outbox
from quarterdeck.fronts.telegram.rich import rich_parts
from quarterdeck.fronts.telegram.state import DAY, KEPT_DAYS, FrontState
from quarterdeck.fronts.telegram.text import LONGEST, Part, parts, plain, split
from quarterdeck.fronts.telegram.types import Button, Buttons
from quarterdeck.protocol.projects import Project
from quarterdeck.runtime.clock import Clock

MOST_PARTS = 4
"""Messages that one text becomes. A longer one is a file with a summary."""
LONGEST_TEXT = 2 * MOST_PARTS * LONGEST
"""Characters of Markdown that may become messages. A longer text is a file, and all but its
beginning is left as it is: to convert a megabyte would hold the hub's event loop for seconds."""
BEGINNING = 2 * LONGEST
"""Characters of which the message before such a file is made."""
LONGEST_FILE = 1_000_000
"""Characters of such a file. It is masked in a thread when it is sent."""


class Messenger:
    """The parts, and sending."""

    def __init__(self, database: Database, outbox: Outbox, options: Options, clock: Clock) -> None:
        self.database = database
        self.state = FrontState(database)
        self.inbox = Inbox(database)
        self.asks = AskStore(database)
        self.outbox = outbox
        self.options = options
        self.clock = clock
        self.projects: dict[str, Project] = {}
        """The projects of the hub, as they were last read."""

    @property
    def now_ms(self) -> int:
        """The time in ms since 1970."""
        return int(self.clock.now() * 1000)

    # --- preferences ---------------------------------------------------------------------------

    def preference(self, place: Place, name: str, message: Preferences | None = None) -> Chosen:
        """A preference that holds in a place, and who said so."""
        binding = self.state.binding(place)
        project = binding.project or self.options.binding.project or ""
        return choose_preference(
            name,
            message=message or Preferences(),
            chat=self.state.preferences(place),
            project=self.projects.get(project),
            config=self.options.preferences,
        )

    def may_receive(self, place: Place) -> bool:
        """Whether the user to whom a place belongs still has access to the hub, as far as known."""
        user = self.state.owner(place)
        return user in self.options.users and self.state.paired_person(user) is not None

    # --- sending -------------------------------------------------------------------------------

    def buttons(self, chat: int, rows: Rows, ask: str = "") -> Buttons:
        """Buttons for a message in a chat."""
        return tuple(tuple(self._button(chat, press, ask) for press in row) for row in rows if row)

    def _button(self, chat: int, press: Press, ask: str) -> Button:
        if press.url:
            return Button(text=press.text, url=press.url)
        data = self.asks.button(chat, ask, press.action, press.arg, self.clock.now())
        return Button(text=press.text, callback_data=data)

    def say(
        self,
        place: Place,
        *parts: Part,
        key: str,
        rows: Rows = (),
        note: Note | None = None,
        ask: str = "",
        reply_to: int | None = None,
        file: Upload | None = None,
        quietly: bool = False,
        html: str = "",
    ) -> bool:
        """Send a message, unless it was sent before; whether it is new. `key` names it."""
        with self.database.transaction():
            new = self.outbox.send(
                place.chat,
                place.thread,
                *parts,
                key=key,
                buttons=self.buttons(place.chat, rows, ask),
                file=file,
                html=html,
                reply_to=reply_to,
                silent=quietly or self.quiet,
            )
            if note is not None:
                self.asks.note(key, note, self.clock.now())
        return new

    def say_long(
        self,
        place: Place,
        whole: str,
        *,
        key: str,
        name: str = "answer.md",
        note: Note | None = None,
        reply_to: int | None = None,
        footer: Part | None = None,
        rich: bool = False,
    ) -> None:
        """Send a text that may be long: as messages, or as a file with its beginning."""
        long = len(whole) > LONGEST_TEXT
        text = safe(beginning(whole, BEGINNING) if long else whole)
        if rich and not long and self._say_rich(place, text, key, note, reply_to, footer):
            return
        found = parts(text)
        file, caption = None, "The whole text."
        if long:
            kept = beginning(whole, LONGEST_FILE)
            if len(kept) < len(whole):
                caption = f"The first {len(kept):,} characters. The web app has the whole text."
            file = _text_file(name, kept) if kept else None
            found = found[:1] or [plain("The web app has the text: it is one long word.")]
        elif len(found) > MOST_PARTS:
            file = Upload(name=name, data=text.encode())
            found = found[:1]
        if footer is not None:
            found = [*found[:-1], *split(found[-1] + "\n\n" + footer)] if found else [footer]
        if not found:
            return
        with self.database.transaction():
            self.say(place, *found, key=key, note=note, reply_to=reply_to)
            if file is not None:
                part, name = plain(caption), f"{key}:file"
                self.say(place, part, key=name, note=note, file=file, quietly=True)

    def _say_rich(
        self,
        place: Place,
        text: str,
        key: str,
        note: Note | None,
        reply_to: int | None,
        footer: Part | None,
    ) -> bool:
        """Send a text as rich messages; False if it would be too many."""
        found = rich_parts(text)
        if not found or len(found) > MOST_PARTS:
            return False
        with self.database.transaction():
            for number, each in enumerate(found, 1):
                last = number == len(found) and footer is None
                name = key if last else f"{key}/{number}"
                first = reply_to if number == 1 else None
                self.say(place, each.part, key=name, note=note, reply_to=first, html=each.html)
            if footer is not None:
                self.say(place, footer, key=key, note=note, quietly=True)
        return True

    @property
    def quiet(self) -> bool:
        """Whether messages make no sound now."""
        if self.options.quiet is None:
            return False
        local = self.options.local(self.clock.now())
        return self.options.quiet.holds(local.hour * 60 + local.minute)

    def prune(self) -> None:
        """Forget what is too old to matter."""
        before = self.clock.now() - KEPT_DAYS * DAY
        with self.database.transaction():
            self.inbox.prune()
            self.asks.prune(before)
            self.state.prune(before)
            self.outbox.prune(KEPT_DAYS)


def _text_file(name: str, text: str) -> Upload:
    """A long text of others, which is not masked yet."""
    return Upload(name=name, data=text.encode("utf-8", "replace"), masked=False)
