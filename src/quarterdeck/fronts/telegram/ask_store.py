"""Questions that were asked here, the messages that show them, and the buttons of all messages.

Buttons are known by short ids that are made from a secret: they survive a restart and cannot be
guessed. The buttons of a question are forgotten when it is closed. Calls are short and block.
"""

from __future__ import annotations

import base64
import hashlib
import os
import sqlite3

import msgspec
from msgspec import Raw

from quarterdeck.domain.structs import Value
from quarterdeck.fronts.telegram.asks import Draft
from quarterdeck.fronts.telegram.chats import Place
from quarterdeck.fronts.telegram.database import Database
from quarterdeck.protocol.events import AskOpened

_SCHEMA = """
CREATE TABLE IF NOT EXISTS button_secret (secret BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS asks (
  ask TEXT PRIMARY KEY, session TEXT NOT NULL, opened BLOB NOT NULL, draft BLOB NOT NULL,
  open INTEGER NOT NULL, at REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS ask_messages (
  ask TEXT NOT NULL, key TEXT NOT NULL, chat INTEGER NOT NULL, thread INTEGER NOT NULL,
  PRIMARY KEY (ask, key)
) STRICT;
CREATE TABLE IF NOT EXISTS buttons (
  id TEXT PRIMARY KEY, chat INTEGER NOT NULL, ask TEXT NOT NULL, action TEXT NOT NULL,
  arg TEXT NOT NULL, at REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS notes (
  key TEXT PRIMARY KEY, session TEXT NOT NULL, ask TEXT NOT NULL, purpose TEXT NOT NULL,
  at REAL NOT NULL
) STRICT;
"""


class AskRow(Value):
    """A question that was asked here."""

    ask: str
    session: str
    opened: AskOpened
    draft: Draft
    open: bool


class Button(Value):
    """What a button does. With an empty `ask`, `arg` is a command line."""

    chat: int
    ask: str
    action: str
    arg: str


class Note(Value):
    """What a message of the bot is about, for a reply to it."""

    session: str
    ask: str = ""
    purpose: str = ""


class AskStore:
    """The tables."""

    def __init__(self, database: Database) -> None:
        self.database = database
        database.create(_SCHEMA)
        row = self._connection.execute("SELECT secret FROM button_secret").fetchone()
        self._secret = os.urandom(32) if row is None else bytes(row[0])
        if row is None:
            self._connection.execute("INSERT INTO button_secret VALUES (?)", (self._secret,))

    @property
    def _connection(self) -> sqlite3.Connection:
        return self.database.connection

    def open_ask(self, session: str, opened: AskOpened, at: float) -> None:
        """A question was asked."""
        self._connection.execute(
            "INSERT OR IGNORE INTO asks VALUES (?, ?, ?, ?, 1, ?)",
            (opened.ask, session, msgspec.json.encode(opened), b"{}", at),
        )

    def ask(self, ask: str) -> AskRow | None:
        """A question that was asked here."""
        row = self._connection.execute(
            "SELECT ask, session, opened, draft, open FROM asks WHERE ask = ?", (ask,)
        ).fetchone()
        return None if row is None else _ask(row)

    def open_asks(self) -> list[AskRow]:
        """The open questions, oldest first."""
        rows = self._connection.execute(
            "SELECT ask, session, opened, draft, open FROM asks WHERE open = 1 ORDER BY at"
        ).fetchall()
        return [_ask(row) for row in rows]

    def set_draft(self, ask: str, draft: Draft) -> None:
        """How far the answer to a question is."""
        self._connection.execute(
            "UPDATE asks SET draft = ? WHERE ask = ?", (msgspec.json.encode(draft), ask)
        )

    def close_ask(self, ask: str) -> None:
        """The question was answered or withdrawn. Its buttons do nothing any more."""
        with self.database.transaction() as connection:
            connection.execute(
                "UPDATE asks SET open = 0, opened = ?, draft = ? WHERE ask = ?",
                (_without_request(self.ask(ask)), b"{}", ask),
            )
            connection.execute("DELETE FROM buttons WHERE ask = ?", (ask,))

    def show_ask(self, ask: str, key: str, place: Place) -> None:
        """A message shows this question."""
        self._connection.execute(
            "INSERT OR IGNORE INTO ask_messages VALUES (?, ?, ?, ?)",
            (ask, key, place.chat, place.thread or 0),
        )

    def ask_messages(self, ask: str) -> list[tuple[str, Place]]:
        """The messages that show a question: their keys and places."""
        rows = self._connection.execute(
            "SELECT key, chat, thread FROM ask_messages WHERE ask = ?", (ask,)
        ).fetchall()
        return [(key, Place(chat=chat, thread=thread or None)) for key, chat, thread in rows]

    # --- buttons and messages ------------------------------------------------------------------

    def button(self, chat: int, ask: str, action: str, arg: str, at: float) -> str:
        """The callback data of a button: always the same for the same button."""
        named = "\0".join((str(chat), ask, action, arg)).encode()
        digest = hashlib.blake2b(named, key=self._secret, digest_size=15).digest()
        id_ = base64.b32encode(digest).decode().lower()
        self._connection.execute(
            "INSERT INTO buttons VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET at = excluded.at",
            (id_, chat, ask, action, arg, at),
        )
        return id_

    def press(self, id_: str, chat: int) -> Button | None:
        """What a button of this chat does; None for one that is not, or not any more."""
        row = self._connection.execute(
            "SELECT chat, ask, action, arg FROM buttons WHERE id = ? AND chat = ?", (id_, chat)
        ).fetchone()
        if row is None:
            return None
        return Button(chat=row[0], ask=row[1], action=row[2], arg=row[3])

    def note(self, key: str, note: Note, at: float) -> None:
        """What a message of the bot is about."""
        self._connection.execute(
            "INSERT OR IGNORE INTO notes VALUES (?, ?, ?, ?, ?)",
            (key, note.session, note.ask, note.purpose, at),
        )

    def note_of(self, key: str) -> Note | None:
        """What a message is about. The parts of one message have its key with a number."""
        for each in (key, key.rpartition("/")[0]):
            row = self._connection.execute(
                "SELECT session, ask, purpose FROM notes WHERE key = ?", (each,)
            ).fetchone()
            if row is not None:
                return Note(session=row[0], ask=row[1], purpose=row[2])
        return None

    def prune(self, before: float) -> None:
        """Forget what is older."""
        with self.database.transaction() as connection:
            for table in ("buttons", "notes"):
                connection.execute(f"DELETE FROM {table} WHERE at < ?", (before,))  # noqa: S608
            connection.execute("DELETE FROM asks WHERE at < ? AND open = 0", (before,))
            connection.execute("DELETE FROM ask_messages WHERE ask NOT IN (SELECT ask FROM asks)")

    def migrate(self, old: int, new: int) -> None:
        """A group has become a supergroup, with another number."""
        with self.database.transaction() as connection:
            for table in ("ask_messages", "buttons"):
                connection.execute(
                    f"UPDATE {table} SET chat = ? WHERE chat = ?",  # noqa: S608 - constants
                    (new, old),
                )


def _ask(row: tuple[str, str, bytes, bytes, int]) -> AskRow:
    return AskRow(
        ask=row[0],
        session=row[1],
        opened=msgspec.json.decode(row[2], type=AskOpened),
        draft=msgspec.json.decode(row[3], type=Draft),
        open=bool(row[4]),
    )


def _without_request(row: AskRow | None) -> bytes:
    """A question as it is kept when it is closed: without what it was about."""
    if row is None:
        return b"{}"
    bare = msgspec.structs.replace(row.opened, request=Raw(b"{}"), plan=None)
    return msgspec.json.encode(bare)
