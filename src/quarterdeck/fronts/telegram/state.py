"""What the front must not forget, beside updates, questions and messages: people, places, sessions.

A place has a binding, preferences and a current session; a session that the front tells of has the
number of the last event that was told. Calls are short and block; `Database` says how several
become one commit.
"""

from __future__ import annotations

import sqlite3
from typing import TypeVar

import msgspec

from quarterdeck.domain.structs import Value
from quarterdeck.fronts.telegram.chats import Binding, Place, Preferences
from quarterdeck.fronts.telegram.database import Database

_T = TypeVar("_T")

DAY = 86400.0
KEPT_DAYS = 60.0
"""After so long a button does nothing, and a reply to a message begins nothing."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS people (
  user INTEGER PRIMARY KEY, person TEXT NOT NULL, role TEXT NOT NULL, token TEXT NOT NULL,
  at REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS places (
  chat INTEGER NOT NULL, thread INTEGER NOT NULL, binding BLOB NOT NULL, preferences BLOB NOT NULL,
  session TEXT, private INTEGER NOT NULL DEFAULT 0, user INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (chat, thread)
) STRICT;
CREATE TABLE IF NOT EXISTS sessions (
  session TEXT PRIMARY KEY, chat INTEGER, thread INTEGER, name TEXT NOT NULL, seq INTEGER NOT NULL,
  turn INTEGER NOT NULL, at REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS prompts (
  prompt TEXT PRIMARY KEY, session TEXT NOT NULL, chat INTEGER NOT NULL, thread INTEGER NOT NULL,
  message_id INTEGER NOT NULL, user INTEGER NOT NULL, at REAL NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS prompts_messages ON prompts (chat, message_id);
CREATE TABLE IF NOT EXISTS schedules (
  id INTEGER PRIMARY KEY AUTOINCREMENT, chat INTEGER NOT NULL, thread INTEGER NOT NULL,
  user INTEGER NOT NULL, due REAL NOT NULL, text TEXT NOT NULL, body BLOB NOT NULL
) STRICT;
"""


class Paired(Value):
    """A Telegram user who is paired with a person of the hub."""

    user: int
    person: str
    role: str
    token: str


class Followed(Value):
    """A session that the front tells of. `place` is where it belongs; None: only to those who
    follow all.
    """

    session: str
    place: Place | None
    name: str
    seq: int
    """The last event that was told."""
    turn: int
    """The event before the first one of the running turn; `seq` if none does."""


class PromptRow(Value):
    """A prompt that was sent from here."""

    prompt: str
    session: str
    place: Place
    message_id: int
    user: int


class Schedule(Value):
    """A prompt for later. `body` is the message that it will be."""

    id: int
    place: Place
    user: int
    due: float
    text: str
    body: bytes


class FrontState:
    """The tables."""

    def __init__(self, database: Database) -> None:
        self.database = database
        database.create(_SCHEMA)

    @property
    def _connection(self) -> sqlite3.Connection:
        return self.database.connection

    # --- single values -------------------------------------------------------------------------

    def meta(self, name: str) -> bytes | None:
        """A value by its name."""
        row = self._connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else bytes(row[0])

    def set_meta(self, name: str, value: bytes) -> None:
        """Store a value."""
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def unset_meta(self, name: str) -> None:
        """Forget a value."""
        self._connection.execute("DELETE FROM meta WHERE name = ?", (name,))

    # --- people --------------------------------------------------------------------------------

    def paired_person(self, user: int) -> Paired | None:
        """The person that a user is paired with."""
        row = self._connection.execute(
            "SELECT user, person, role, token FROM people WHERE user = ?", (user,)
        ).fetchone()
        return (
            None if row is None else Paired(user=row[0], person=row[1], role=row[2], token=row[3])
        )

    def pair(self, paired: Paired, at: float) -> None:
        """Pair a user with a person, in place of the one before."""
        self._connection.execute(
            "INSERT OR REPLACE INTO people VALUES (?, ?, ?, ?, ?)",
            (paired.user, paired.person, paired.role, paired.token, at),
        )

    def unpair(self, user: int) -> None:
        """Forget the pairing of a user."""
        self._connection.execute("DELETE FROM people WHERE user = ?", (user,))

    # --- places --------------------------------------------------------------------------------

    def note_user(self, place: Place, *, private: bool) -> None:
        """A user has written there."""
        self._connection.execute(
            "INSERT OR IGNORE INTO places (chat, thread, binding, preferences, private)"
            " VALUES (?, ?, ?, ?, ?)",
            (place.chat, place.thread or 0, b"{}", b"{}", int(private)),
        )

    def is_private(self, place: Place) -> bool:
        """Whether it is a chat with one person."""
        row = self._connection.execute(
            "SELECT private FROM places WHERE chat = ? AND thread = ?",
            (place.chat, place.thread or 0),
        ).fetchone()
        return bool(row and row[0])

    def binding(self, place: Place) -> Binding:
        """Where sessions of a place work."""
        return self._of_place(place, "binding", Binding) or Binding()

    def preferences(self, place: Place) -> Preferences:
        """How sessions of a place work."""
        return self._of_place(place, "preferences", Preferences) or Preferences()

    def bind(self, place: Place, binding: Binding) -> None:
        """Set where sessions of a place work."""
        self._set_place(place, "binding", msgspec.json.encode(binding))

    def prefer(self, place: Place, preferences: Preferences) -> None:
        """Set how sessions of a place work."""
        self._set_place(place, "preferences", msgspec.json.encode(preferences))

    def current(self, place: Place) -> str | None:
        """The session that a message in a place continues."""
        row = self._connection.execute(
            "SELECT session FROM places WHERE chat = ? AND thread = ?",
            (place.chat, place.thread or 0),
        ).fetchone()
        return row[0] if row else None

    def set_current(self, place: Place, session: str | None) -> None:
        """Set the session that a message in a place continues; None: the next begins a new one."""
        self._set_place(place, "session", session)

    def own(self, place: Place, user: int) -> None:
        """A user has chosen what happens in a place: what is told there is told to them."""
        self._set_place(place, "user", user)

    def owner(self, place: Place) -> int:
        """The user to whom it is told what happens in a place; 0: nobody."""
        if place.chat > 0:
            return place.chat  # a private chat has the number of its person
        row = self._connection.execute(
            "SELECT user FROM places WHERE chat = ? AND thread = ?",
            (place.chat, place.thread or 0),
        ).fetchone()
        return int(row[0]) if row else 0

    def paired_users(self) -> list[int]:
        """The users who are paired with a person."""
        rows = self._connection.execute("SELECT user FROM people ORDER BY user").fetchall()
        return [int(row[0]) for row in rows]

    def following_all(self) -> list[Place]:
        """The places that want the questions of all sessions."""
        rows = self._connection.execute("SELECT chat, thread, preferences FROM places").fetchall()
        return [
            _place(chat, thread)
            for chat, thread, preferences in rows
            if msgspec.json.decode(preferences, type=Preferences).follow == "all"
        ]

    def places(self) -> list[Place]:
        """Every place where a user has written."""
        rows = self._connection.execute("SELECT chat, thread FROM places").fetchall()
        return [_place(*row) for row in rows]

    def migrate(self, old: int, new: int) -> None:
        """A group has become a supergroup, with another number."""
        with self.database.transaction() as connection:
            for table in ("places", "sessions", "prompts", "schedules"):
                connection.execute(
                    f"UPDATE OR IGNORE {table} SET chat = ? WHERE chat = ?",  # noqa: S608 - constants
                    (new, old),
                )

    def _of_place(self, place: Place, column: str, kind: type[_T]) -> _T | None:
        row = self._connection.execute(
            f"SELECT {column} FROM places WHERE chat = ? AND thread = ?",  # noqa: S608 - constants
            (place.chat, place.thread or 0),
        ).fetchone()
        return None if row is None else msgspec.json.decode(row[0], type=kind)

    def _set_place(self, place: Place, column: str, value: object) -> None:
        with self.database.transaction() as connection:
            self.note_user(place, private=place.chat > 0)
            connection.execute(
                f"UPDATE places SET {column} = ? WHERE chat = ? AND thread = ?",  # noqa: S608
                (value, place.chat, place.thread or 0),
            )

    # --- sessions ------------------------------------------------------------------------------

    def follow(
        self, session: str, place: Place | None, *, name: str, at: float, seq: int = 0
    ) -> None:
        """Tell of a session, in a place or only to those who follow all. A place is kept."""
        self._connection.execute(
            "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (session) DO UPDATE SET"
            " chat = coalesce(excluded.chat, chat), thread = coalesce(excluded.thread, thread)",
            (
                session,
                place.chat if place else None,
                (place.thread or 0) if place else None,
                name,
                seq,
                seq,
                at,
            ),
        )

    def followed_session(self, session: str) -> Followed | None:
        """A session that the front tells of."""
        row = self._connection.execute(
            "SELECT session, chat, thread, name, seq, turn FROM sessions WHERE session = ?",
            (session,),
        ).fetchone()
        return None if row is None else _followed_row(row)

    def all_followed(self, most: int) -> list[Followed]:
        """The newest of all sessions that the front tells of."""
        rows = self._connection.execute(
            "SELECT session, chat, thread, name, seq, turn FROM sessions ORDER BY at DESC LIMIT ?",
            (most,),
        ).fetchall()
        return [_followed_row(row) for row in rows]

    def sessions_of(self, place: Place) -> list[Followed]:
        """The sessions of a place, newest first."""
        rows = self._connection.execute(
            "SELECT session, chat, thread, name, seq, turn FROM sessions"
            " WHERE chat = ? AND thread = ? ORDER BY at DESC",
            (place.chat, place.thread or 0),
        ).fetchall()
        return [_followed_row(row) for row in rows]

    def set_progress(self, session: str, seq: int, turn: int, at: float) -> None:
        """Events up to a number were reported; `turn` is where the fold begins after a restart."""
        self._connection.execute(
            "UPDATE sessions SET seq = ?, turn = ?, at = ? WHERE session = ?",
            (seq, turn, at, session),
        )

    def rename(self, session: str, name: str) -> None:
        """The session has this name."""
        self._connection.execute("UPDATE sessions SET name = ? WHERE session = ?", (name, session))

    def forget(self, session: str) -> None:
        """The session is gone."""
        with self.database.transaction() as connection:
            connection.execute("DELETE FROM sessions WHERE session = ?", (session,))
            connection.execute("UPDATE places SET session = NULL WHERE session = ?", (session,))

    def forget_numbers(self) -> None:
        """Another journal has taken the place of the old one: its numbers begin anew."""
        self._connection.execute("UPDATE sessions SET seq = 0, turn = 0")

    # --- prompts -------------------------------------------------------------------------------

    def add_prompt(self, row: PromptRow, at: float) -> None:
        """A prompt is sent from a message."""
        self._connection.execute(
            "INSERT OR IGNORE INTO prompts VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                row.prompt,
                row.session,
                row.place.chat,
                row.place.thread or 0,
                row.message_id,
                row.user,
                at,
            ),
        )

    def prompt(self, prompt: str) -> PromptRow | None:
        """A prompt that was sent from here."""
        return self._prompt("prompt = ?", prompt)

    def prompt_of(self, chat: int, message_id: int) -> PromptRow | None:
        """The prompt that a person's message was."""
        return self._prompt("chat = ? AND message_id = ?", chat, message_id)

    def _prompt(self, where: str, *values: object) -> PromptRow | None:
        columns = "prompt, session, chat, thread, message_id, user"
        row = self._connection.execute(
            f"SELECT {columns} FROM prompts WHERE {where} ORDER BY at DESC LIMIT 1",  # noqa: S608
            values,
        ).fetchone()
        if row is None:
            return None
        return PromptRow(
            prompt=row[0],
            session=row[1],
            place=_place(row[2], row[3]),
            message_id=row[4],
            user=row[5],
        )

    # --- later ---------------------------------------------------------------------------------

    def schedule(self, place: Place, user: int, due: float, text: str, body: bytes) -> int:
        """Keep a prompt for later; gives its number."""
        added = self._connection.execute(
            "INSERT INTO schedules (chat, thread, user, due, text, body) VALUES (?, ?, ?, ?, ?, ?)",
            (place.chat, place.thread or 0, user, due, text, body),
        )
        return int(added.lastrowid or 0)

    def schedules(self, place: Place | None = None) -> list[Schedule]:
        """Prompts for later, of one place or of all, the next first."""
        rows = self._connection.execute(
            "SELECT id, chat, thread, user, due, text, body FROM schedules ORDER BY due, id"
        ).fetchall()
        found = [
            Schedule(
                id=row[0],
                place=_place(row[1], row[2]),
                user=row[3],
                due=row[4],
                text=row[5],
                body=row[6],
            )
            for row in rows
        ]
        return [each for each in found if place is None or each.place == place]

    def unschedule(self, id_: int) -> bool:
        """Give up a prompt for later; False if there is none."""
        gone = self._connection.execute("DELETE FROM schedules WHERE id = ?", (id_,))
        return gone.rowcount > 0

    # --- age -----------------------------------------------------------------------------------

    def prune(self, before: float) -> None:
        """Forget what is older."""
        with self.database.transaction() as connection:
            for table in ("prompts", "sessions"):
                connection.execute(f"DELETE FROM {table} WHERE at < ?", (before,))  # noqa: S608


def _place(chat: int, thread: int | None) -> Place:
    return Place(chat=chat, thread=thread or None)


def _followed_row(row: tuple[str, int | None, int | None, str, int, int]) -> Followed:
    session, chat, thread, name, seq, turn = row
    place = None if chat is None else _place(chat, thread)
    return Followed(session=session, place=place, name=name, seq=seq, turn=turn)
