"""What the outbox must not forget: messages by their keys, and the work that is left to do.

A message is stored once, with the content that it should have (`wanted`) and the one that Telegram
has (`shown`). Work is at most one row for each message: to send it, to edit it, or to delete it.
Newer content replaces `wanted` and adds no row: that is how edits are coalesced.

Blocking and short; the caller's transaction is joined. It knows nothing of time limits and HTTP.
"""

from __future__ import annotations

import secrets
import sqlite3
from enum import StrEnum
from typing import Any

import msgspec

from quarterdeck.domain.structs import Value
from quarterdeck.fronts.telegram.api import Upload
from quarterdeck.fronts.telegram.database import Database
from quarterdeck.fronts.telegram.types import Buttons, Entity

_SCHEMA = """
CREATE TABLE IF NOT EXISTS outbox_messages (
  key TEXT PRIMARY KEY,
  chat INTEGER NOT NULL,
  thread INTEGER,
  message_id INTEGER,
  form TEXT NOT NULL,
  wanted BLOB NOT NULL,
  shown BLOB,
  reply_to INTEGER,
  silent INTEGER NOT NULL,
  state TEXT NOT NULL,
  after_id INTEGER NOT NULL DEFAULT 0,
  at REAL NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS outbox_ids ON outbox_messages (chat, message_id);
CREATE INDEX IF NOT EXISTS outbox_ages ON outbox_messages (at);
CREATE TABLE IF NOT EXISTS outbox_files (
  key TEXT PRIMARY KEY, name TEXT NOT NULL, data BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS outbox_work (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  chat INTEGER NOT NULL,
  task TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS outbox_work_chats ON outbox_work (chat, seq);
CREATE TABLE IF NOT EXISTS outbox_drafts (
  draft_id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, chat INTEGER NOT NULL, at REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS outbox_chats (
  chat INTEGER PRIMARY KEY, last_id INTEGER NOT NULL, blocked_until REAL NOT NULL
) STRICT;
"""


class Form(StrEnum):
    """What a message is. It stays so."""

    TEXT = "text"
    RICH = "rich"
    DOCUMENT = "document"
    PHOTO = "photo"
    UNMASKED = "unmasked"
    """A document with a text that is masked when it is sent."""


class State(StrEnum):
    """What became of a message."""

    WAITING = "waiting"
    SENDING = "sending"
    """A call was begun. Unless its end is known, the message may have been sent or not."""
    SENT = "sent"
    FAILED = "failed"
    DELETED = "deleted"


class Task(StrEnum):
    """What is left to do."""

    SEND = "send"
    EDIT = "edit"
    DELETE = "delete"


class Content(Value):
    """What a message shows: text (or caption) and buttons; with `html` as a rich message."""

    text: str = ""
    entities: tuple[Entity, ...] = ()
    buttons: Buttons = ()
    html: str = ""


class Stored(Value):
    """A message of the outbox."""

    key: str
    chat: int
    thread: int | None
    message_id: int | None
    form: Form
    wanted: Content
    shown: Content | None
    reply_to: int | None
    silent: bool
    state: State
    after_id: int
    """The newest message of the chat that was known when the call to send it began."""


_COLUMNS = "key, chat, thread, message_id, form, wanted, shown, reply_to, silent, state, after_id"


class OutboxStore:
    """The tables."""

    def __init__(self, database: Database) -> None:
        self.database = database
        database.create(_SCHEMA)

    @property
    def _connection(self) -> sqlite3.Connection:
        return self.database.connection

    # --- messages --------------------------------------------------------------------------------

    def add(self, message: Stored, file: Upload | None, at: float) -> bool:
        """Store a message and the work to send it; False if the key is known."""
        with self.database.transaction() as connection:
            added = connection.execute(
                f"INSERT OR IGNORE INTO outbox_messages ({_COLUMNS}, at)"  # noqa: S608 - constants
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    message.key,
                    message.chat,
                    message.thread,
                    message.message_id,
                    message.form,
                    msgspec.json.encode(message.wanted),
                    None,
                    message.reply_to,
                    int(message.silent),
                    message.state,
                    message.after_id,
                    at,
                ),
            ).rowcount
            if not added:
                return False
            if file is not None:
                connection.execute(
                    "INSERT OR REPLACE INTO outbox_files VALUES (?, ?, ?)",
                    (message.key, file.name, file.data),
                )
            self._put_work(message.key, message.chat, Task.SEND)
            return True

    def get(self, key: str) -> Stored | None:
        """A message by its key."""
        return self._one("WHERE key = ?", key)

    def find(self, chat: int, message_id: int) -> Stored | None:
        """A message by the number that Telegram gave it."""
        return self._one("WHERE chat = ? AND message_id = ?", chat, message_id)

    def in_doubt(self, chat: int, message_id: int) -> bool:
        """Whether a message that is being sent, or may have been, may have this number."""
        found = self._connection.execute(
            "SELECT 1 FROM outbox_messages WHERE chat = ? AND message_id IS NULL AND state = ?"
            " AND after_id < ? LIMIT 1",
            (chat, State.SENDING, message_id),
        ).fetchone()
        return found is not None

    def file(self, key: str) -> Upload | None:
        """The file of a message that is not sent yet."""
        row = self._connection.execute(
            "SELECT name, data FROM outbox_files WHERE key = ?", (key,)
        ).fetchone()
        return None if row is None else Upload(name=row[0], data=row[1])

    def want(self, message: Stored, content: Content) -> None:
        """Set the content that a message should have, with the work to show it."""
        with self.database.transaction() as connection:
            connection.execute(
                "UPDATE outbox_messages SET wanted = ? WHERE key = ?",
                (msgspec.json.encode(content), message.key),
            )
            if message.state is State.SENT:
                self._put_work(message.key, message.chat, Task.EDIT)

    def begin_sending(self, key: str, after_id: int) -> None:
        """Record that a call to send it begins."""
        self._set(key, state=State.SENDING, after_id=after_id)

    def not_sent(self, key: str) -> None:
        """Record that the call certainly did not send it."""
        self._set(key, state=State.WAITING)

    def record_sent(self, message: Stored, message_id: int, shown: Content) -> None:
        """Record that it was sent; newer content becomes an edit, a deletion stays one."""
        with self.database.transaction() as connection:
            now = self.get(message.key)
            self._set(
                message.key,
                state=State.SENT,
                message_id=message_id,
                shown=msgspec.json.encode(shown),
            )
            connection.execute("DELETE FROM outbox_files WHERE key = ?", (message.key,))
            self.saw(message.chat, message_id)
            if self.task(message.key) is Task.SEND:
                self.remove_work(message.key)
                if now is not None and now.wanted != shown:
                    self._put_work(message.key, message.chat, Task.EDIT)

    def record_shown(self, key: str, shown: Content) -> None:
        """Record what Telegram shows now. Work that this completes is removed."""
        with self.database.transaction():
            self._set(key, shown=msgspec.json.encode(shown))
            now = self.get(key)
            if now is not None and now.wanted == shown and self.task(key) is Task.EDIT:
                self.remove_work(key)

    def record_end(self, key: str, state: State) -> None:
        """Nothing more is done for a message: it failed, or is deleted."""
        with self.database.transaction() as connection:
            self._set(key, state=state)
            connection.execute("DELETE FROM outbox_files WHERE key = ?", (key,))
            self.remove_work(key)

    def _one(self, where: str, *values: Any) -> Stored | None:
        row = self._connection.execute(
            f"SELECT {_COLUMNS} FROM outbox_messages {where}",  # noqa: S608 - constants of this file
            values,
        ).fetchone()
        return None if row is None else _stored_message(row)

    def _set(self, key: str, **columns: Any) -> None:
        names = ", ".join(f"{name} = ?" for name in columns)
        self._connection.execute(
            f"UPDATE outbox_messages SET {names} WHERE key = ?",  # noqa: S608 - names of this file
            (*columns.values(), key),
        )

    # --- work ------------------------------------------------------------------------------------

    def _put_work(self, key: str, chat: int, task: Task) -> None:
        # An edit that waits already has its place; a deletion takes it over.
        self._connection.execute(
            "INSERT INTO outbox_work (key, chat, task) VALUES (?, ?, ?)"
            " ON CONFLICT (key) DO UPDATE SET task = excluded.task WHERE task != 'delete'",
            (key, chat, task),
        )

    def put_delete(self, message: Stored) -> None:
        """Have a message deleted."""
        self._put_work(message.key, message.chat, Task.DELETE)

    def remove_work(self, key: str) -> None:
        """The work for a message is done."""
        self._connection.execute("DELETE FROM outbox_work WHERE key = ?", (key,))

    def task(self, key: str) -> Task | None:
        """What is left to do for a message."""
        row = self._connection.execute(
            "SELECT task FROM outbox_work WHERE key = ?", (key,)
        ).fetchone()
        return None if row is None else Task(row[0])

    def next(self, chat: int) -> tuple[Stored, Task] | None:
        """The work of a chat that is to be done first."""
        row = self._connection.execute(
            "SELECT key, task FROM outbox_work WHERE chat = ? ORDER BY seq LIMIT 1", (chat,)
        ).fetchone()
        if row is None:
            return None
        message = self.get(row[0])
        if message is None:  # cannot be: both are written together
            self.remove_work(row[0])
            return self.next(chat)
        return message, Task(row[1])

    def chats(self) -> list[int]:
        """The chats for which something is left to do."""
        rows = self._connection.execute("SELECT DISTINCT chat FROM outbox_work").fetchall()
        return [int(row[0]) for row in rows]

    def count(self) -> int:
        """How much is left to do."""
        return int(self._connection.execute("SELECT count(*) FROM outbox_work").fetchone()[0])

    # --- chats -----------------------------------------------------------------------------------

    def saw(self, chat: int, message_id: int) -> None:
        """A message with this number exists in the chat."""
        self._connection.execute(
            "INSERT INTO outbox_chats VALUES (?, ?, 0)"
            " ON CONFLICT (chat) DO UPDATE SET last_id = max(last_id, excluded.last_id)",
            (chat, message_id),
        )

    def last_id(self, chat: int) -> int:
        """The newest message of the chat that is known; 0: none."""
        row = self._connection.execute(
            "SELECT last_id FROM outbox_chats WHERE chat = ?", (chat,)
        ).fetchone()
        return 0 if row is None else int(row[0])

    def block(self, chat: int, until: float) -> None:
        """Telegram wants no call for this chat until then."""
        self._connection.execute(
            "INSERT INTO outbox_chats VALUES (?, 0, ?)"
            " ON CONFLICT (chat) DO UPDATE SET blocked_until = excluded.blocked_until",
            (chat, until),
        )

    def blocked_until(self, chat: int) -> float:
        """Until when Telegram wants no call for this chat."""
        row = self._connection.execute(
            "SELECT blocked_until FROM outbox_chats WHERE chat = ?", (chat,)
        ).fetchone()
        return 0.0 if row is None else float(row[0])

    def migrate(self, old: int, new: int) -> None:
        """A group has become a supergroup: messages that wait go there.

        Those that were sent stay what they are, but the new group does not have them.
        """
        with self.database.transaction() as connection:
            connection.execute(
                "UPDATE outbox_messages SET chat = ? WHERE chat = ? AND message_id IS NULL",
                (new, old),
            )
            connection.execute(
                "UPDATE outbox_work SET chat = ? WHERE chat = ? AND task = 'send'", (new, old)
            )
            connection.execute("DELETE FROM outbox_work WHERE chat = ?", (old,))

    # --- drafts ----------------------------------------------------------------------------------

    def draft_id(self, key: str, chat: int, at: float) -> int:
        """The number of a draft: always the same for a key."""
        with self.database.transaction() as connection:
            row = connection.execute(
                "SELECT draft_id FROM outbox_drafts WHERE key = ?", (key,)
            ).fetchone()
            if row is not None:
                return int(row[0])
            number = secrets.randbelow(2**31 - 2) + 1
            connection.execute(
                "INSERT INTO outbox_drafts VALUES (?, ?, ?, ?)", (number, key, chat, at)
            )
            return number

    def draft_key(self, draft_id: int, chat: int) -> str | None:
        """The key of a draft of this chat."""
        row = self._connection.execute(
            "SELECT key FROM outbox_drafts WHERE draft_id = ? AND chat = ?", (draft_id, chat)
        ).fetchone()
        return None if row is None else str(row[0])

    def prune(self, before: float) -> int:
        """Forget messages that are older and have nothing left to do; how many."""
        with self.database.transaction() as connection:
            connection.execute("DELETE FROM outbox_drafts WHERE at < ?", (before,))
            return connection.execute(
                "DELETE FROM outbox_messages WHERE at < ?"
                " AND key NOT IN (SELECT key FROM outbox_work)",
                (before,),
            ).rowcount


def _stored_message(row: tuple[Any, ...]) -> Stored:
    key, chat, thread, message_id, form, wanted, shown, reply_to, silent, state, after_id = row
    return Stored(
        key=key,
        chat=chat,
        thread=thread,
        message_id=message_id,
        form=Form(form),
        wanted=msgspec.json.decode(wanted, type=Content),
        shown=None if shown is None else msgspec.json.decode(shown, type=Content),
        reply_to=reply_to,
        silent=bool(silent),
        state=State(state),
        after_id=after_id,
    )
