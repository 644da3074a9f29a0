"""The journal in PostgreSQL as tables, for `transfer`."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, Any

import msgspec

from quarterdeck.domain.errors import JournalError
from quarterdeck.journal.chain import Link, genesis
from quarterdeck.journal.ownership import PRESENT_MS
from quarterdeck.journal.postgres.address import Address, Connection, explained_errors
from quarterdeck.journal.postgres.reader import Reader
from quarterdeck.journal.postgres.rows import BLOB_BYTES
from quarterdeck.journal.postgres.schema import set_up
from quarterdeck.journal.postgres.shared_records import NOW
from quarterdeck.journal.transfer import TABLES, Row
from quarterdeck.protocol.sessions import LOCAL

_PRESENT = f"""
    SELECT CASE url WHEN '' THEN hub ELSE url END, greatest(0, ({NOW} - at) / 1000)
    FROM quarterdeck.hubs WHERE at > {NOW} - {PRESENT_MS} ORDER BY at DESC LIMIT 1
"""  # noqa: S608 - constants of ours
_FETCH = 500
"""Rows that are fetched at once."""
_HEAD = struct.Struct(">qq")
"""Before each large line in a temporary file: its position and size."""


@contextmanager
def postgres_tables(
    url: str, password: str | None = None, *, unused: bool = False
) -> Iterator[PostgresTables]:
    """The tables of a database, as they are at one moment. Raises `JournalError`, `UsageError`.

    `unused`: no hub may use it meanwhile.
    """
    address = Address(url, password)
    with explained_errors(address), address.connect() as connection:
        set_up(connection, address)
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            yield PostgresTables(address, connection, unused=unused)


def _read_large(file: IO[bytes]) -> Iterator[Row]:
    while head := file.read(_HEAD.size):
        position, size = _HEAD.unpack(head)
        yield position, file.read(size)


class _Run(msgspec.Struct):
    """What of a view is in a column of its own."""

    run: str | None = None
    machine: str | None = None


class PostgresTables:
    """The tables, within a transaction."""

    def __init__(self, address: Address, connection: Connection, *, unused: bool) -> None:
        self.name = str(address)
        self._address = address
        self._unused = unused
        self._connection = connection
        self._reader = Reader(address, connection)

    def check_unused(self) -> None:
        """Raises `JournalError` if a hub uses it."""
        if not self._unused:
            return
        with self._address.connect() as connection:  # the transaction does not see new hubs
            row = connection.execute(_PRESENT.encode()).fetchone()
        if row is not None:
            raise JournalError(
                f"the journal {self.name} is in use by the hub {row[0]}, which announced itself "
                f"{row[1]} s ago: stop all of its hubs; one that was killed counts as running for "
                f"{PRESENT_MS // 1000} s",
                code="busy",
            )

    def epoch(self) -> str:
        """The id of the journal."""
        return str(self._one("SELECT epoch FROM quarterdeck.journal"))

    def is_empty(self) -> bool:
        """Whether nothing was ever stored."""
        return not self._one(
            "SELECT (SELECT count(*) FROM quarterdeck.sessions)"
            " + (SELECT count(*) FROM quarterdeck.shared)"
        )

    def tick(self) -> int:
        """The last number of fences and versions."""
        return int(self._one("SELECT tick FROM quarterdeck.ticket"))

    def rows(self, table: str) -> Iterator[Row]:
        """The rows of a table, by its key."""
        columns = [f"t.{name}" for name in TABLES[table]]
        source = f"quarterdeck.{table} t"
        if table == "events":
            columns[-1] = "coalesce(t.json, b.json)"
            source += " LEFT JOIN quarterdeck.blobs b USING (position)"
            columns[0] = "position"
        where = "WHERE head > 0" if table == "sessions" else ""
        order = ", ".join(str(at + 1) for at in range(min(5, len(columns))))
        query = f"SELECT {', '.join(columns)} FROM {source} {where} ORDER BY {order}"  # noqa: S608
        with self._connection.cursor("copy", binary=True) as cursor:
            cursor.execute(query.encode())
            while some := cursor.fetchmany(_FETCH):
                yield from some

    def add(self, table: str, rows: Iterable[Row]) -> None:
        """Add rows."""
        if table == "events":
            self._add_events(rows)
        elif table == "sessions":
            self._add_sessions(rows)
        else:
            self._copy(table, TABLES[table], rows)

    def finish(self, epoch: str, tick: int) -> None:
        """Set what is not in a table."""
        execute = self._connection.execute
        execute("UPDATE quarterdeck.journal SET epoch = %s", (epoch,))
        execute(
            "UPDATE quarterdeck.ticket SET tick = %s,"
            " position = coalesce((SELECT max(position) FROM quarterdeck.events), 0),"
            " seal = coalesce("
            "(SELECT seal FROM quarterdeck.chain ORDER BY position DESC LIMIT 1), %s)",
            (tick, genesis(epoch)),
        )
        execute(
            "SELECT setval(pg_get_serial_sequence('quarterdeck.sessions', 'number'),"
            " coalesce((SELECT max(number) FROM quarterdeck.sessions), 0) + 1, false)"
        )

    def links(self, after: int, limit: int) -> list[Link]:
        """A page of the audit log's chain."""
        return self._reader.links(after, limit)

    def _add_events(self, rows: Iterable[Row]) -> None:
        with TemporaryFile() as large:  # while a table is copied, no other one can be

            def place_rows() -> Iterator[Row]:
                for position, session, seq, at, json in rows:
                    if len(json) > BLOB_BYTES:
                        large.write(_HEAD.pack(position, len(json)) + json)
                    small = json if len(json) <= BLOB_BYTES else None
                    yield position, session, seq, at, len(json), small

            self._copy("events", ("position", "session", "seq", "at", "size", "json"), place_rows())
            large.seek(0)
            self._copy("blobs", ("position", "json"), _read_large(large))

    def _add_sessions(self, rows: Iterable[Row]) -> None:
        def place_rows() -> Iterator[Row]:
            for row in rows:
                run = msgspec.json.decode(row[9], type=_Run)
                machine = (run.machine or LOCAL) if run.run is not None and not row[7] else None
                yield *row[:6], bool(row[6]), bool(row[7]), *row[8:], machine

        self._copy("sessions", (*TABLES["sessions"], "run_machine"), place_rows())

    def _copy(self, table: str, columns: tuple[str, ...], rows: Iterable[Row]) -> None:
        query = f"COPY quarterdeck.{table} ({', '.join(columns)}) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(query.encode()) as copying:
            for row in rows:
                copying.write_row(row)

    def _one(self, query: str) -> Any:
        row = self._connection.execute(query.encode()).fetchone()
        return None if row is None else row[0]
