"""The queries of the journal's file. Each is one page, so that none holds a snapshot for long.

A `Reader` is one connection, for one thread at a time. It decodes what it reads. `journal` knows
the order of reads and the needs of followers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
from msgspec.structs import replace

from quarterdeck.domain.errors import JournalError
from quarterdeck.journal.base import ASKS_SEARCHED, AskRecord, Snapshot
from quarterdeck.journal.chain import Link
from quarterdeck.journal.event_codec import PAGE_BYTES, RAW_SIZE, decode, page, raw_events, sound
from quarterdeck.journal.sqlite.file import connect
from quarterdeck.journal.sqlite.usage import read_limits, read_usage
from quarterdeck.journal.views import ask_view
from quarterdeck.protocol.events import AskOpened
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.stored_events import (
    SECRET_REQUESTS,
    SENT,
    WITH_A_SPEC,
    RawEvents,
    Stored,
    stored_size,
)
from quarterdeck.protocol.usage import LimitState, UsageBy, UsageRow
from quarterdeck.protocol.views import AskView

FEWEST, MOST = 16, 2000
"""The most events that are read at once as text."""

_SPECS = (min(WITH_A_SPEC), max(WITH_A_SPEC) + b"\xff")
_SENT = (SENT, SENT + b"\xff")
# The envelope is that of `stored`. Large events are left out, as are those that may hold secrets.
# That shows: numbers have no gap.
_PASSAGE = """
    SELECT count(*), max(seq), '[' || group_concat(
      ?4 || seq || ',"position":' || position || ',"at":' || at || ',"event":' || json || '}'
    ) || ']' FROM (
      SELECT seq, position, at, json FROM events
      WHERE session = (SELECT number FROM sessions WHERE session = ?1) AND seq > ?2
      AND seq <= ?2 + ?3 AND length(json) <= 8192 AND (json < ?5 OR json > ?6)
      AND (json < ?7 OR json > ?8 OR instr(json, ?9) + instr(json, ?10) + instr(json, ?11) = 0)
      ORDER BY seq LIMIT ?3
    )
"""

_views = msgspec.json.Decoder(SessionView)


class Reader:
    """Use the given connection, or open a read-only one."""

    def __init__(self, path: Path, connection: sqlite3.Connection | None = None) -> None:
        self._path = path
        self.connection = connection or connect(path, read_only=True)
        self._fitting = FEWEST

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def session(self, session: str, after: int, limit: int) -> list[Stored]:
        """A page of a session's events."""
        # Long sessions are read whole, so each row takes as few steps as possible.
        found: list[Stored] = []
        size = 0
        with closing(self._rows(session, after, limit)) as rows:
            for seq, position, at, json in rows:
                event = decode(json, self._path, session, seq)
                found.append(
                    Stored(
                        session=session, seq=seq, position=position, at=at, event=event, json=json
                    )
                )
                size += len(json)
                if size >= PAGE_BYTES:
                    break
        return found

    def raw_events(self, session: str, after: int) -> RawEvents | None:
        """A session's events as text."""
        if (made := self._read_text(session, after)) is not None:
            return made
        with closing(self._rows(session, after, MOST)) as rows:
            return raw_events(session, rows)

    def _read_text(self, session: str, after: int) -> RawEvents | None:
        """Events as text made by SQLite, in half the time; None if that is not possible.

        The event loop can run meanwhile; row by row, this thread would wait for the interpreter
        after each row. It is tried with as many events as filled the last text.
        """
        begin = f'{{"session":{msgspec.json.encode(session).decode()},"seq":'
        values = (session, after, self._fitting, begin, *_SPECS, *_SENT, *SECRET_REQUESTS)
        try:
            count, last, text = self.connection.execute(_PASSAGE, values).fetchone()
        except sqlite3.OperationalError:
            return None  # not UTF-8, for example; or a transient error
        if last != after + count or len(text) > RAW_SIZE or not sound(text):
            self._fitting = max(self._fitting // 2, FEWEST)
            return None
        if count == self._fitting:
            self._fitting = min(max(count * RAW_SIZE * 9 // (len(text) * 10), FEWEST), MOST)
        return RawEvents(session=session, last=last, text=text)

    def _rows(self, session: str, after: int, limit: int) -> sqlite3.Cursor:
        return self.connection.execute(
            "SELECT seq, position, at, json FROM events WHERE session ="
            " (SELECT number FROM sessions WHERE session = ?) AND seq > ? ORDER BY seq LIMIT ?",
            (session, after, limit),
        )

    def everything(self, after: int, limit: int) -> list[Stored]:
        """A page of all events."""
        return self._events(
            "events e JOIN sessions s ON s.number = e.session"
            " WHERE e.position > ? ORDER BY e.position LIMIT ?",
            (after, limit),
            limit,
        )

    def snapshot(self, session: str) -> Snapshot | None:
        """The newest snapshot of a session."""
        row = self.connection.execute(
            "SELECT seq, data FROM snapshots WHERE session ="
            " (SELECT number FROM sessions WHERE session = ?)",
            (session,),
        ).fetchone()
        return None if row is None else Snapshot(seq=row[0], data=row[1])

    def has_prompt(self, session: str, prompt: str) -> bool:
        """Whether the session ever had this prompt."""
        row = self.connection.execute(
            "SELECT EXISTS (SELECT 1 FROM prompts WHERE prompt = ?2 AND session ="
            " (SELECT number FROM sessions WHERE session = ?1))",
            (session, prompt),
        ).fetchone()
        return bool(row[0])

    def audit(
        self, after: int, limit: int, session: str | None, before: int | None = None
    ) -> list[Stored]:
        """A page of the audit log; with `before` the newest entries before it, newest first."""
        values: tuple[str | int, ...] = (after, limit)
        more, order = "", "ASC"
        if before is not None:
            values, more, order = (*values, before), " AND a.position < ?3", "DESC"
        if session is not None:
            values = (*values, session)
            more += f" AND s.session = ?{len(values)}"
        return self._events(
            "audit a JOIN events e ON e.position = a.position"
            " JOIN sessions s ON s.number = a.session"
            f" WHERE a.position > ?1{more} ORDER BY a.position {order} LIMIT ?2",
            values,
            limit,
        )

    def links(self, after: int, limit: int) -> list[Link]:
        """A page of the audit log's chain; an entry without a link has an empty seal."""
        rows = self.connection.execute(
            "SELECT c.position, c.session, c.digest, c.seal FROM chain c WHERE c.position > ?1"
            " UNION ALL SELECT a.position, a.session, x'', x'' FROM audit a"
            " WHERE a.position > ?1 AND a.position NOT IN (SELECT position FROM chain)"
            " ORDER BY 1 LIMIT ?2",
            (after, limit),
        ).fetchall()
        if not rows:
            return []
        upto = rows[-1][0]
        entries = self._events(
            "events e JOIN sessions s ON s.number = e.session"
            " LEFT JOIN audit a ON a.position = e.position"
            " JOIN chain c ON c.position = e.position"
            " WHERE e.position > ?1 AND e.position <= ?2"
            " AND (a.position IS NOT NULL OR s.deleted) ORDER BY e.position",
            (after, upto),
        )
        found = {entry.position: entry for entry in entries}
        names = self.connection.execute(
            "SELECT number, session, deleted FROM sessions WHERE number IN"
            " (SELECT session FROM chain WHERE position > ?1 AND position <= ?2)",
            (after, upto),
        ).fetchall()
        known = {number: (session, bool(deleted)) for number, session, deleted in names}
        return [
            Link(
                position=position,
                session=known.get(number, ("", False))[0],
                digest=digest,
                seal=seal,
                entry=found.get(position),
                deleted=known.get(number, ("", False))[1],
            )
            for position, number, digest, seal in rows
        ]

    def views(self, after: str | None, limit: int, archived: bool | None) -> list[SessionView]:
        """A page of sessions, newest first."""
        rows = self.connection.execute(
            "SELECT session, head, updated, said, sent, view FROM sessions WHERE NOT deleted"
            " AND (?1 IS NULL OR archived = ?1)"
            " AND (?2 IS NULL OR number < (SELECT number FROM sessions WHERE session = ?2))"
            " ORDER BY number DESC LIMIT ?3",
            (archived, after, limit),
        )
        with closing(rows):
            return [self._view(row) for row in page(rows, limit, lambda row: len(row[-1]))]

    def view(self, session: str) -> SessionView | None:
        """One session, unless it was deleted."""
        row = self.connection.execute(
            "SELECT session, head, updated, said, sent, view FROM sessions"
            " WHERE session = ? AND NOT deleted",
            (session,),
        ).fetchone()
        return None if row is None else self._view(row)

    def sizes(self) -> dict[str, int]:
        """The bytes of each session's events."""
        rows = self.connection.execute(
            "SELECT s.session, e.bytes FROM (SELECT session, sum(length(json)) AS bytes"
            " FROM events NOT INDEXED GROUP BY session) e JOIN sessions s ON s.number = e.session"
            " WHERE NOT s.deleted"
        )
        return dict(rows.fetchall())

    def open_asks(self) -> list[AskView]:
        """All open questions, oldest first."""
        opened = self._events(
            "asks a JOIN events e ON e.position = a.opened JOIN sessions s ON s.number = a.session"
            " WHERE a.settled IS NULL ORDER BY a.opened"
        )
        return [self._card(stored) for stored in opened]

    def unanswered_asks(self) -> list[AskRecord]:
        """Questions that were settled by no answer, oldest first, of the newest ones."""
        found = self._events(
            "(SELECT * FROM asks ORDER BY opened DESC LIMIT ?) a"
            " JOIN sessions s ON s.number = a.session JOIN events t ON t.position = a.settled"
            " JOIN events e ON e.position IN (a.opened, a.settled)"
            " WHERE json_extract(CAST(t.json AS TEXT), '$.kind') <> 'ask.answered'"
            " ORDER BY a.opened, e.position",
            (ASKS_SEARCHED,),
        )
        pairs = zip(found[::2], found[1::2], strict=True)
        return [AskRecord(ask=self._card(ask), settled=end) for ask, end in pairs]

    def ask(self, ask: str) -> AskRecord | None:
        """A question by its id; the newest, if an id was used twice."""
        found = self._events(
            "asks a JOIN events e ON e.position IN (a.opened, a.settled)"
            " JOIN sessions s ON s.number = a.session"
            " WHERE a.opened = (SELECT max(opened) FROM asks WHERE ask = ?) ORDER BY e.position",
            (ask,),
        )
        if not found:
            return None
        opened, *settled = found
        return AskRecord(ask=self._card(opened), settled=settled[0] if settled else None)

    def usage(self, by: UsageBy, since: int | None, until: int | None) -> list[UsageRow]:
        """The usage."""
        return read_usage(self.connection, by, since, until)

    def limits(self) -> list[LimitState]:
        """The limits of each account."""
        return read_limits(self.connection)

    def _events(
        self, query: str, values: tuple[str | int, ...] = (), limit: int | None = None
    ) -> list[Stored]:
        # All queries are in this class, and values are bound.
        select = f"SELECT s.session, e.seq, e.position, e.at, e.json FROM {query}"  # noqa: S608
        # Closed at once: an open cursor prevents a checkpoint of the write-ahead log.
        with closing(self.connection.execute(select, values)) as rows:
            events = self._decode_rows(rows)
            return list(events) if limit is None else page(events, limit, stored_size)

    def _decode_rows(self, rows: Iterable[tuple[str, int, int, int, bytes]]) -> Iterator[Stored]:
        for session, seq, position, at, json in rows:
            event = decode(json, self._path, session, seq)
            yield Stored(session=session, seq=seq, position=position, at=at, event=event, json=json)

    def _card(self, stored: Stored) -> AskView:
        if not isinstance(stored.event, AskOpened):
            raise JournalError(
                f"{self._path} is damaged: event {stored.seq} of session {stored.session} is no "
                "question",
                code="damaged",
            )
        return ask_view(stored, stored.event)

    def _view(self, row: tuple[str, int, int, int, int, bytes]) -> SessionView:
        session, head, updated, said, sent, json = row
        try:
            view = _views.decode(json)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise JournalError(
                f"the view of session {session} in {self._path} is damaged: {error}",
                code="damaged",
            ) from error
        return replace(view, head=head, updated=updated, said=said, sent=sent)
