"""The queries of the journal in PostgreSQL. Each is one statement, or one and its large lines.

A `Reader` is one connection, for one thread at a time. It decodes what it reads. A page is cut by
its bytes on the server: a line may have 10 MB.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from quarterdeck.domain.errors import JournalError
from quarterdeck.journal.base import ASKS_SEARCHED, AskRecord, Snapshot
from quarterdeck.journal.chain import Link
from quarterdeck.journal.event_codec import PAGE_BYTES, decode, page, raw_events
from quarterdeck.journal.postgres.address import Address, Connection
from quarterdeck.journal.usage import COLUMNS, day_of, limit_of, slots, sum_row
from quarterdeck.journal.views import VIEW_VERSION, ask_view, fold
from quarterdeck.protocol.events import AskAnswered, AskOpened
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.stored_events import RawEvents, Stored
from quarterdeck.protocol.usage import LimitState, UsageBy, UsageRow
from quarterdeck.protocol.views import AskView

PASSAGE_EVENTS = 1000
"""The most events that are read at once as text."""
PASSAGE_BYTES = 300 * 1024
"""About as much is read at once as text."""
REFOLD_EVENTS = 1000
PAGE_VIEWS = 200
"""How many views are read at once: a view has up to some hundred kB."""

_ROWS = "s.session, e.seq, e.position, e.at, e.json"
_NUMBER = "(SELECT number FROM quarterdeck.sessions WHERE session = %s)"
_VIEW = "session, head, updated, said, sent, folded, view"
_ANSWERED = f'{{"kind":"{AskAnswered.__struct_config__.tag}"'.encode()
# What comes before a row decides whether it is in the page, so that it has at least one.
_OF_SESSION = f"""
    SELECT seq, position, at, json FROM (
      SELECT seq, position, at, json, sum(size) OVER (ORDER BY seq) - size AS before FROM (
        SELECT * FROM quarterdeck.events WHERE session = {_NUMBER} AND seq > %s
        ORDER BY seq LIMIT %s
      ) few
    ) part WHERE before < %s ORDER BY seq
"""  # noqa: S608 - constants of this module
_OF_ALL = f"""
    SELECT {_ROWS} FROM (
      SELECT *, sum(size) OVER (ORDER BY position) - size AS before FROM (
        SELECT * FROM quarterdeck.events WHERE position > %s ORDER BY position LIMIT %s
      ) few
    ) e JOIN quarterdeck.sessions s ON s.number = e.session
    WHERE before < %s ORDER BY e.position
"""  # noqa: S608 - constants of this module

_views = msgspec.json.Decoder(SessionView)

Row = tuple[Any, ...]


class Reader:
    """The queries, by one connection."""

    def __init__(self, address: Address, connection: Connection) -> None:
        self._address = address
        self.connection = connection

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    # --- events --------------------------------------------------------------------------------

    def session(self, session: str, after: int, limit: int) -> list[Stored]:
        """A page of a session's events."""
        rows = self._rows(_OF_SESSION, (session, after, limit, PAGE_BYTES))
        found: list[Stored] = []
        for seq, position, at, json in self._whole(rows, at=1):
            event = decode(json, self._address, session, seq)
            found.append(Stored(session, seq, position, at, event, json))
        return found

    def raw_events(self, session: str, after: int) -> RawEvents | None:
        """A session's events as text."""
        values = (session, after, PASSAGE_EVENTS, PASSAGE_BYTES)
        return raw_events(session, self._whole(self._rows(_OF_SESSION, values), at=1))

    def everything(self, after: int, limit: int) -> list[Stored]:
        """A page of all events."""
        return self._decode_rows(self._rows(_OF_ALL, (after, limit, PAGE_BYTES)))

    def position(self) -> int:
        """The position of the last event."""
        return int(self._rows("SELECT position FROM quarterdeck.ticket")[0][0])

    def heads(self) -> dict[str, int]:
        """The number of the last event of each session."""
        return dict(self._rows("SELECT session, head FROM quarterdeck.sessions WHERE head > 0"))

    def snapshot(self, session: str) -> Snapshot | None:
        """The newest snapshot of a session."""
        query = f"SELECT seq, data FROM quarterdeck.snapshots WHERE session = {_NUMBER}"  # noqa: S608
        rows = self._rows(query, (session,))
        return Snapshot(seq=rows[0][0], data=rows[0][1]) if rows else None

    def has_prompt(self, session: str, prompt: str) -> bool:
        """Whether the session ever had this prompt."""
        query = f"SELECT 1 FROM quarterdeck.prompts WHERE session = {_NUMBER} AND prompt = %s"  # noqa: S608
        return bool(self._rows(query, (session, prompt)))

    # --- the audit log -------------------------------------------------------------------------

    def audit(
        self, after: int, limit: int, session: str | None, before: int | None = None
    ) -> list[Stored]:
        """A page of the audit log; with `before` the newest entries before it, newest first."""
        of_one = "" if session is None else f"AND session = {_NUMBER}"
        until = "" if before is None else "AND position < %s"
        order = "ASC" if before is None else "DESC"
        query = f"""
            SELECT {_ROWS} FROM (
              SELECT position FROM quarterdeck.audit WHERE position > %s {until} {of_one}
              ORDER BY position {order} LIMIT %s
            ) a JOIN quarterdeck.events e USING (position)
            JOIN quarterdeck.sessions s ON s.number = e.session ORDER BY e.position {order}
        """  # noqa: S608 - constants of this module
        given = (after, before, session)
        values = (*(one for one in given if one is not None), limit)
        return page(self._decode_rows(self._rows(query, values)), limit, lambda one: len(one.json))

    def links(self, after: int, limit: int) -> list[Link]:
        """A page of the audit log's chain; an entry without a link has an empty seal."""
        rows = self._rows(
            "SELECT c.position, c.session, c.digest, c.seal FROM quarterdeck.chain c"
            " WHERE c.position > %s UNION ALL"
            " SELECT a.position, a.session, ''::bytea, ''::bytea FROM quarterdeck.audit a"
            " LEFT JOIN quarterdeck.chain c USING (position)"
            " WHERE a.position > %s AND c.position IS NULL ORDER BY 1 LIMIT %s",
            (after, after, limit),
        )
        if not rows:
            return []
        positions = [row[0] for row in rows]
        entries = self._decode_rows(
            self._rows(
                f"SELECT {_ROWS} FROM quarterdeck.events e"  # noqa: S608
                " JOIN quarterdeck.sessions s ON s.number = e.session"
                " LEFT JOIN quarterdeck.audit a USING (position)"
                " JOIN quarterdeck.chain c USING (position) WHERE e.position = ANY(%s)"
                " AND (a.position IS NOT NULL OR s.deleted)",
                (positions,),
            )
        )
        found = {entry.position: entry for entry in entries}
        names = self._rows(
            "SELECT number, session, deleted FROM quarterdeck.sessions WHERE number = ANY(%s)",
            ([row[1] for row in rows],),
        )
        known = {number: (session, deleted) for number, session, deleted in names}
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

    # --- views ---------------------------------------------------------------------------------

    def views(self, after: str | None, limit: int, archived: bool | None) -> list[SessionView]:
        """A page of sessions, newest first."""
        rows = self._rows(
            f"SELECT {_VIEW} FROM quarterdeck.sessions WHERE NOT deleted AND head > 0"  # noqa: S608
            " AND (%(archived)s::boolean IS NULL OR archived = %(archived)s)"
            " AND (%(after)s::text IS NULL OR number <"
            " (SELECT number FROM quarterdeck.sessions WHERE session = %(after)s))"
            " ORDER BY number DESC LIMIT %(limit)s",
            {"archived": archived, "after": after, "limit": min(limit, PAGE_VIEWS)},
        )
        return [self.view_of(row) for row in page(rows, limit, lambda row: len(row[-1]))]

    def view(self, session: str) -> SessionView | None:
        """One session, unless it was deleted."""
        rows = self._rows(
            f"SELECT {_VIEW} FROM quarterdeck.sessions"  # noqa: S608
            " WHERE session = %s AND NOT deleted AND head > 0",
            (session,),
        )
        return self.view_of(rows[0]) if rows else None

    def view_of(self, row: Row) -> SessionView:
        """The view of a row: session, four counters, the version of its fold, and its bytes."""
        session, head, updated, said, sent, folded, json = row
        try:
            view = _views.decode(json)
        except (msgspec.MsgspecError, ValueError, RecursionError, TypeError) as error:
            if folded != VIEW_VERSION and (folded_again := self.refold(session)) is not None:
                return folded_again  # of another version of the program, beside this one
            raise JournalError(
                f"the view of session {session} in {self._address} is damaged: {error}",
                code="damaged",
            ) from error
        return replace(view, head=head, updated=updated, said=said, sent=sent)

    def refold(self, session: str) -> SessionView | None:
        """The view of a session, from its events."""
        view: SessionView | None = None
        while events := self.session(session, view.head if view else 0, REFOLD_EVENTS):
            for stored in events:
                view = fold(view, stored)
        return view

    def sizes(self) -> dict[str, int]:
        """The bytes of each session's events."""
        rows = self._rows(
            "SELECT s.session, e.bytes FROM (SELECT session, sum(size)::bigint AS bytes"
            " FROM quarterdeck.events GROUP BY session) e"
            " JOIN quarterdeck.sessions s ON s.number = e.session WHERE NOT s.deleted"
        )
        return dict(rows)

    def bytes_on_disk(self) -> int:
        """The size of all tables with their indexes."""
        rows = self._rows(
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
            " WHERE relnamespace = to_regnamespace('quarterdeck') AND relkind = 'r'"
        )
        return int(rows[0][0])

    # --- questions -----------------------------------------------------------------------------

    def open_asks(self) -> list[AskView]:
        """All open questions, oldest first."""
        rows = self._rows(
            f"SELECT {_ROWS} FROM quarterdeck.asks a"  # noqa: S608
            " JOIN quarterdeck.events e ON e.position = a.opened"
            " JOIN quarterdeck.sessions s ON s.number = a.session"
            " WHERE a.settled IS NULL ORDER BY a.opened"
        )
        return [self._card(stored) for stored in self._decode_rows(rows)]

    def unanswered_asks(self) -> list[AskRecord]:
        """Questions that were settled by no answer, oldest first, of the newest ones."""
        rows = self._rows(
            f"SELECT {_ROWS} FROM"  # noqa: S608
            " (SELECT * FROM quarterdeck.asks ORDER BY opened DESC LIMIT %s) a"
            " JOIN quarterdeck.sessions s ON s.number = a.session"
            " JOIN quarterdeck.events t ON t.position = a.settled"
            " JOIN quarterdeck.events e ON e.position IN (a.opened, a.settled)"
            " WHERE substring(t.json FROM 1 FOR %s::int) IS DISTINCT FROM %s"
            " ORDER BY a.opened, e.position",
            (ASKS_SEARCHED, len(_ANSWERED), _ANSWERED),
        )
        found = self._decode_rows(rows)
        pairs = zip(found[::2], found[1::2], strict=True)
        return [AskRecord(ask=self._card(ask), settled=end) for ask, end in pairs]

    def ask(self, ask: str) -> AskRecord | None:
        """A question by its id; the newest, if an id was used twice."""
        rows = self._rows(
            f"SELECT {_ROWS} FROM (SELECT * FROM quarterdeck.asks"  # noqa: S608
            " WHERE ask = %s ORDER BY opened DESC LIMIT 1) a"
            " JOIN quarterdeck.events e ON e.position IN (a.opened, a.settled)"
            " JOIN quarterdeck.sessions s ON s.number = a.session ORDER BY e.position",
            (ask,),
        )
        if not rows:
            return None
        opened, *settled = self._decode_rows(rows)
        return AskRecord(ask=self._card(opened), settled=settled[0] if settled else None)

    # --- usage ---------------------------------------------------------------------------------

    def usage(self, by: UsageBy, since: int | None, until: int | None) -> list[UsageRow]:
        """The usage between two times, in order. Days are those of this computer."""
        first, end = slots(since, until)
        sums = ", ".join(f"sum(u.{name})::{_kind(name)}" for name in COLUMNS)
        key = {UsageBy.DAY: "u.slot", UsageBy.SESSION: "s.session"}.get(by, f"u.{by.value}")
        join = "JOIN quarterdeck.sessions s ON s.number = u.session" if "s." in key[:2] else ""
        rows = self._rows(
            f"SELECT {key}, {sums} FROM quarterdeck.usage u {join}"  # noqa: S608 - names of ours
            " WHERE u.slot >= %s AND u.slot < %s GROUP BY 1 ORDER BY 1",
            (first, end),
        )
        if by is UsageBy.DAY:
            rows = _by_day(rows)
        return [sum_row(row[0], row[1:]) for row in rows]

    def limits(self) -> list[LimitState]:
        """The limits of each account."""
        rows = self._rows(
            "SELECT machine, name, status, at, resets_at, used, session"
            " FROM quarterdeck.account_limits ORDER BY machine, name"
        )
        return list(map(limit_of, rows))

    # --- rows ----------------------------------------------------------------------------------

    def _rows(self, query: str, values: Sequence[object] | dict[str, object] = ()) -> list[Row]:
        # All queries are in this module, and values are bound.
        cursor = self.connection.execute(query.encode(), values, binary=True)
        return cursor.fetchall()

    def _whole(self, rows: list[Row], at: int) -> list[Row]:
        """The rows with their large lines, which are elsewhere; `at` is the column of positions."""
        if large := [row[at] for row in rows if row[-1] is None]:
            query = "SELECT position, json FROM quarterdeck.blobs WHERE position = ANY(%s)"
            lines: dict[int, bytes] = dict(self._rows(query, (large,)))
            rows = [
                (*row[:-1], lines.get(row[at], b"")) if row[-1] is None else row for row in rows
            ]
        return rows

    def _decode_rows(self, rows: list[Row]) -> list[Stored]:
        return [
            Stored(session, seq, position, at, decode(json, self._address, session, seq), json)
            for session, seq, position, at, json in self._whole(rows, at=2)
        ]

    def _card(self, stored: Stored) -> AskView:
        if not isinstance(stored.event, AskOpened):
            raise JournalError(
                f"{self._address} is damaged: event {stored.seq} of session {stored.session} is no "
                "question",
                code="damaged",
            )
        return ask_view(stored, stored.event)


def _kind(column: str) -> str:
    return "double precision" if column.endswith("_usd") else "bigint"


def _by_day(rows: Iterable[Row]) -> list[Row]:
    """The sums of slots as sums of days."""
    days: dict[str, list[Any]] = {}
    for slot, *sums in rows:
        day = days.setdefault(day_of(slot), [0] * len(sums))
        day[:] = [one + other for one, other in zip(day, sums, strict=True)]
    return [(day, *sums) for day, sums in sorted(days.items())]
