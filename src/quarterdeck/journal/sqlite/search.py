"""The search index: a database beside the journal that lags a little and can be rebuilt.

Owns the file and its two connections, one to fill it and one to query it. Everything in it comes
from the journal: if it does not match the journal (another epoch, another version, damage) it is
emptied and filled again. So it needs no recovery after a crash, is in no backup, and an append
never waits for it.

The attributes of a text (session, kind, tool, day) are words in the index too. So a filter narrows
the search, and does not discard results.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

from quarterdeck.domain.errors import JournalError, UsageError
from quarterdeck.journal.search import Extract, Text, match_of, snippet_of
from quarterdeck.journal.sqlite.file import transaction
from quarterdeck.protocol.events import (
    CliSession,
    RunStarting,
    SessionCreated,
    SessionDeleted,
    SessionRenamed,
    SpecChanged,
)
from quarterdeck.protocol.search import MOST_HITS, Hit, Hits, Search, TextKind
from quarterdeck.protocol.sessions import LOCAL, SessionSpec
from quarterdeck.protocol.stored_events import Stored

VERSION = 1
"""The version of the index. An index of another version is filled again."""

LONGEST_TEXT = 20_000
"""Only the beginning of a longer text is indexed."""

SNIPPET_WORDS = 32
MOST_NAMED = 400
"""The most days or sessions in a query. More would not narrow the search much."""

_DAY = 86_400_000
_LARGEST = 2**63 - 1
_BEGIN, _END = "\x02", "\x03"
_UNMARKED = {code: " " for code in range(32) if chr(code) not in "\t\n"}
"""Characters that texts do not need; two of them mark matches."""

_SCHEMA = """
CREATE TABLE state (version INTEGER, epoch TEXT, position INTEGER) STRICT;
CREATE TABLE sessions (
  number INTEGER PRIMARY KEY,
  session TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL DEFAULT '',
  project TEXT,
  machine TEXT NOT NULL DEFAULT '',
  directory TEXT NOT NULL DEFAULT '/'
) STRICT;
CREATE TABLE cli_sessions (cli_session TEXT, session INTEGER, PRIMARY KEY (cli_session, session))
  STRICT, WITHOUT ROWID;
CREATE TABLE texts (
  number INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  tool TEXT
) STRICT;
CREATE INDEX texts_of_session ON texts (session);
CREATE VIRTUAL TABLE words USING fts5 (text, facts, tokenize = "unicode61 remove_diacritics 2");
"""


class SearchIndex:
    """The index of one journal. Methods block; `add` and `search` may be called by any thread."""

    def __init__(self, path: Path, epoch: str, position: int, extract: Extract) -> None:
        """Open the index of the journal `epoch`, whose last event is at `position`.

        An index that does not match is rebuilt. Raises `JournalError` if it cannot be written.
        """
        self._path = path
        self._extract = extract
        self._filling = threading.Lock()
        self._asking = threading.Lock()
        self._numbers: dict[str, int] = {}
        self._last_answer: dict[int, int] = {}
        self._position = 0
        with _explained_errors(path):
            self._connection = self._open_index(epoch, position)
            self._reader = self._connect()

    @property
    def position(self) -> int:
        """The last event that is in the index."""
        return self._position

    def close(self) -> None:
        """Close the file."""
        with self._filling, self._asking:
            self._reader.close()
            self._connection.close()

    # --- filling -------------------------------------------------------------------------------

    def add(self, events: Sequence[Stored]) -> None:
        """Add the events that follow those in the index. Raises `JournalError`."""
        found = [(stored, self._extract(stored)) for stored in events]
        with self._filling, _explained_errors(self._path):
            try:
                with transaction(self._connection):
                    position = self._take(found)
            except BaseException:
                self._numbers.clear()  # some of them were not stored
                raise
            self._position = position  # after the commit: who waits for it then finds the events

    def _take(self, found: Sequence[tuple[Stored, tuple[Text, ...]]]) -> int:
        """Write the new ones; gives the position of the last."""
        position = self._position
        for stored, texts in found:
            if stored.position > position:
                position = stored.position
                self._note(stored)
                for text in texts:
                    self._put(stored, text)
        self._connection.execute("UPDATE state SET position = ?", (position,))
        return position

    def _note(self, stored: Stored) -> None:
        """Note what an event says about its session."""
        match stored.event:
            case SessionCreated(spec=spec):
                self._describe(stored, spec)
                self._set(stored, "name", spec.name or "")
            case SpecChanged(spec=spec):
                self._describe(stored, spec)
            case SessionRenamed(name=name):
                self._set(stored, "name", name)
            case RunStarting(machine=machine):
                self._set(stored, "machine", machine or LOCAL)
            case CliSession(cli_session=cli_session):
                self._connection.execute(
                    "INSERT OR IGNORE INTO cli_sessions VALUES (?, ?)",
                    (cli_session, self._session(stored.session)),
                )
            case SessionDeleted():
                self._forget(self._session(stored.session))
                self._numbers.pop(stored.session, None)
            case _:
                pass

    def _describe(self, stored: Stored, spec: SessionSpec) -> None:
        self._set(stored, "project", spec.project)
        self._set(stored, "directory", spec.directory)
        self._set(stored, "machine", spec.machine or LOCAL)

    def _set(self, stored: Stored, column: str, value: str | None) -> None:
        # Column names come from this class only.
        query = f"UPDATE sessions SET {column} = ? WHERE number = ?"  # noqa: S608
        self._connection.execute(query, (value, self._session(stored.session)))

    def _session(self, session: str) -> int:
        if (known := self._numbers.get(session)) is not None:
            return known
        self._connection.execute("INSERT OR IGNORE INTO sessions (session) VALUES (?)", (session,))
        found = self._connection.execute(
            "SELECT number FROM sessions WHERE session = ?", (session,)
        )
        number = self._numbers[session] = int(found.fetchone()[0])
        return number

    def _forget(self, number: int) -> None:
        self._last_answer.pop(number, None)
        self._connection.execute(
            "DELETE FROM words WHERE rowid IN (SELECT number FROM texts WHERE session = ?)",
            (number,),
        )
        for table in ("texts", "cli_sessions"):
            self._connection.execute(f"DELETE FROM {table} WHERE session = ?", (number,))  # noqa: S608 - named here
        self._connection.execute("DELETE FROM sessions WHERE number = ?", (number,))

    def _put(self, stored: Stored, text: Text) -> None:
        said = text.text[:LONGEST_TEXT].translate(_UNMARKED)
        if not said.strip():
            return
        number = self._session(stored.session)
        if text.kind is TextKind.ANSWER:
            # The result of a turn repeats the last answer: it is indexed once.
            if self._last_answer.get(number) == hash(said):
                return
            self._last_answer[number] = hash(said)
        at = stored.at if text.at is None else text.at
        row = (number, stored.seq, at, text.kind.value, text.tool)
        added = self._connection.execute(
            "INSERT INTO texts (session, seq, at, kind, tool) VALUES (?, ?, ?, ?, ?)", row
        )
        facts = [f"s{number}", f"k{text.kind.value}", f"d{at // _DAY}"]
        if text.tool is not None:
            facts.append(_tool_word(text.tool))
        self._connection.execute(
            "INSERT INTO words (rowid, text, facts) VALUES (?, ?, ?)",
            (added.lastrowid, said, " ".join(facts)),
        )

    # --- finding -------------------------------------------------------------------------------

    def owners(self, cli_session: str) -> list[str]:
        """The sessions with this id of the CLI, the newest last."""
        with self._asking, _explained_errors(self._path):
            rows = self._reader.execute(
                "SELECT s.session FROM cli_sessions c JOIN sessions s ON s.number = c.session"
                " WHERE c.cli_session = ? ORDER BY s.number",
                (cli_session,),
            )
            return [session for (session,) in rows]

    def search(self, wanted: Search, position: int) -> Hits:
        """A page of results. `position` is the last position of the journal.

        Raises `UsageError` for an empty query.
        """
        if not 1 <= wanted.limit <= MOST_HITS:
            raise UsageError(f"limit: must be a number from 1 to {MOST_HITS}")
        words = f"{{text}} : ({match_of(wanted.words)})"
        behind = max(0, position - self._position)
        with self._asking, _explained_errors(self._path):
            sessions = self._wanted_sessions(wanted)
            if sessions is not None and not sessions:
                return Hits(hits=(), next=None, behind=behind)
            facts = list(_facts(wanted, sessions))
            if facts:
                words = f"({words}) AND {{facts}} : ({' AND '.join(facts)})"
            hits, following = self._page(wanted, words, sessions)
        return Hits(hits=hits, next=following, behind=behind)

    def _page(
        self, wanted: Search, words: str, sessions: set[int] | None
    ) -> tuple[tuple[Hit, ...], int | None]:
        # In the order of the index, which FTS5 reads from either end: no sorting.
        many = sessions is not None and len(sessions) > MOST_NAMED
        rows = self._reader.execute(
            "SELECT w.rowid, s.session, t.seq, t.at, t.kind, t.tool, s.name, s.project, s.machine,"
            " s.directory, t.session, snippet(words, 0, ?5, ?6, '…', ?7)"
            " FROM words w JOIN texts t ON t.number = w.rowid"
            " JOIN sessions s ON s.number = t.session"
            " WHERE words MATCH ?1 AND w.rowid < ?2 AND t.at >= ?3 AND t.at < ?4"
            " ORDER BY w.rowid DESC",
            (
                words,
                _LARGEST if wanted.before is None else wanted.before,
                0 if wanted.since is None else wanted.since,
                _LARGEST if wanted.until is None else wanted.until,
                _BEGIN,
                _END,
                SNIPPET_WORDS,
            ),
        )
        hits: list[Hit] = []
        following: int | None = None
        last = 0
        with closing(rows):
            for row in rows:
                if many and row[10] not in (sessions or ()):
                    continue
                if len(hits) == wanted.limit:
                    following = last
                    break
                last = int(row[0])
                hits.append(_hit(row))
        return tuple(hits), following

    def _wanted_sessions(self, wanted: Search) -> set[int] | None:
        """The sessions to search; None for all."""
        conditions: list[str] = []
        values: list[str] = []
        if wanted.session is not None:
            conditions.append("session = ?")
            values.append(wanted.session)
        if wanted.machine is not None:
            conditions.append("machine = ?")
            values.append(wanted.machine)
        if (project := wanted.project) is not None:
            if project.startswith("/"):
                folder = project.rstrip("/")
                conditions.append("(directory = ? OR substr(directory, 1, ?) = ?)")
                values += [folder or "/", str(len(folder) + 1), f"{folder}/"]
            else:
                conditions.append("project = ?")
                values.append(project)
        if not conditions:
            return None
        query = f"SELECT number FROM sessions WHERE {' AND '.join(conditions)}"  # noqa: S608 - named above
        return {int(number) for (number,) in self._reader.execute(query, values)}

    # --- the file ------------------------------------------------------------------------------

    def _open_index(self, epoch: str, position: int) -> sqlite3.Connection:
        """The connection to an index that matches the journal."""
        try:
            connection = self._connect()
            state = self._state(connection)
        except sqlite3.DatabaseError:
            state, connection = None, None
        if connection is not None and state == (VERSION, epoch):
            self._position = int(connection.execute("SELECT position FROM state").fetchone()[0])
            if self._position <= position:
                return connection
        if connection is not None:
            connection.close()
        for end in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + end).unlink(missing_ok=True)
        connection = self._connect()
        connection.executescript(_SCHEMA)
        if sqlite3.sqlite_version_info >= (3, 42):
            # What is deleted leaves no word behind. Older ones keep words, without their text,
            # until the index is next merged.
            connection.execute("INSERT INTO words (words, rank) VALUES ('secure-delete', 1)")
        connection.execute("INSERT INTO state VALUES (?, ?, 0)", (VERSION, epoch))
        self._position = 0
        return connection

    def _connect(self) -> sqlite3.Connection:
        self._path.touch(mode=0o600)
        connection = sqlite3.connect(
            self._path, isolation_level=None, check_same_thread=False, timeout=5.0
        )
        # It may lose its last writes: they are read from the journal again.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA journal_size_limit = 16777216")
        return connection

    @staticmethod
    def _state(connection: sqlite3.Connection) -> tuple[int, str] | None:
        if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'state'").fetchone():
            return None
        row = connection.execute("SELECT version, epoch FROM state").fetchone()
        return None if row is None else (int(row[0]), str(row[1]))


def _facts(wanted: Search, sessions: set[int] | None) -> Iterator[str]:
    """The filters of a search, as words of the index."""
    if sessions is not None and len(sessions) <= MOST_NAMED:
        yield _one_of(f"s{number}" for number in sorted(sessions))
    if wanted.kind is not None:
        yield f"k{wanted.kind.value}"
    if wanted.tool is not None:
        yield _tool_word(wanted.tool)
    if wanted.since is not None and wanted.until is not None:
        days = range(wanted.since // _DAY, wanted.until // _DAY + 1)
        if 0 < len(days) <= MOST_NAMED:
            yield _one_of(f"d{day}" for day in days)


def _one_of(words: Iterable[str]) -> str:
    return f"({' OR '.join(words)})"


def _tool_word(tool: str) -> str:
    """A tool's name as one word, without characters that separate words."""
    return "t" + blake2b(tool.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _hit(row: tuple[Any, ...]) -> Hit:
    _, session, seq, at, kind, tool, name, project, machine, directory, _, marked = row
    return Hit(
        session=session,
        seq=seq,
        at=at,
        kind=TextKind(kind),
        snippet=snippet_of(marked, _BEGIN, _END),
        tool=tool,
        name=name,
        project=project,
        machine=machine,
        directory=directory,
    )


@contextmanager
def _explained_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise JournalError(f"the search index {path}: {error}") from error
