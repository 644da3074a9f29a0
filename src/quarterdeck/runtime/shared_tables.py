"""The rows of a small SQLite file that several hubs have alike.

Owns which rows have changed here (triggers note them, in the transaction of the change), the form
in which a row travels, and how rows of other hubs are put into the file. `Tables` is one file of
one hub. It does not know where the rows are kept for all hubs: a `Mirror` does, and is above.
Blocking; a caller has the connection for itself.

Names of tables and columns come from this file's own schema only. A row of another hub with a table
or a column that is not here (it has another version) is passed over, or put in without it.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Protocol, TypeGuard

import msgspec

from quarterdeck.domain.structs import DECODE_ERRORS, Value

log = logging.getLogger(__name__)

Cell = int | float | str | bytes | None

_SCHEMA = """
CREATE TABLE IF NOT EXISTS _shared_changed (
  name TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY (name, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _shared_rows (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _shared_seen (epoch TEXT NOT NULL, version INTEGER NOT NULL) STRICT;
"""
_SEQUENCE = "sqlite_sequence"


class Mirror(Protocol):
    """Where the rows of a file are kept for all hubs."""

    def note_open(self, connection: sqlite3.Connection) -> None:
        """The file is open, and has its tables."""

    def refresh(self, connection: sqlite3.Connection) -> None:
        """Put in what other hubs have changed. Outside of a transaction."""

    def publish(self, connection: sqlite3.Connection) -> None:
        """Tell all hubs what this transaction has changed, before it is committed.

        Raises `RowConflict`: another hub was faster, and nothing is to be committed.
        """

    def confirm(self) -> None:
        """Raises `StaleLease` if the work under whose lease rows are written is another hub's."""


class RowConflict(Exception):
    """Another hub has changed the same rows meanwhile: do it again, on top of what it did."""


class Row(Value):
    """A row, as it travels."""

    name: str
    """Its table."""
    key: tuple[Cell, ...]
    cells: dict[str, Cell]


class Incoming(Value):
    """A row of the other hubs; without a row it was removed."""

    id: str
    row: bytes | None
    version: int


class _Table(Value):
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    """The columns that name a row; `rowid` where it has no key."""
    counted: bool
    """Its key is a number that SQLite gives."""

    @property
    def named(self) -> bool:
        return self.key != ("rowid",)


class Tables:
    """The tables of one file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Note changes from now on; a file that does so already goes on."""
        self.connection = connection
        connection.execute("PRAGMA recursive_triggers = ON")  # what REPLACE removes is noted, too
        connection.executescript(_SCHEMA)
        self._tables = {table.name: table for table in _tables(connection)}
        for table in self._tables.values():
            connection.executescript(_triggers(table))

    # --- what has changed here -------------------------------------------------------------------

    def changed_rows(self) -> dict[str, bytes | None]:
        """The rows that have changed here and are not told yet, by their ids."""
        found: dict[str, bytes | None] = {}
        counted: set[str] = set()
        for name, key in self._ask("SELECT name, key FROM _shared_changed").fetchall():
            table = self._tables.get(name)
            if table is None:
                continue
            row = self._row(table, _key(key))
            found[_id(name, _key(key))] = None if row is None else msgspec.msgpack.encode(row)
            if table.counted:
                counted.add(name)
        for name in counted:
            query = f"SELECT seq FROM {_SEQUENCE} WHERE name = ?"  # noqa: S608 - a constant
            if (last := self._ask(query, (name,)).fetchone()) is not None:
                row = Row(name=_SEQUENCE, key=(name,), cells={"seq": last[0]})
                found[_id(_SEQUENCE, (name,))] = msgspec.msgpack.encode(row)
        return found

    def known_versions(self, ids: Iterable[str]) -> dict[str, int]:
        """The versions that these rows have for all hubs, as far as this one knows."""
        sequences = {_id(_SEQUENCE, (name,)) for name in self._tables}
        query = "SELECT version FROM _shared_rows WHERE id = ?"
        rows = {id_: self._ask(query, (id_,)).fetchone() for id_ in ids if id_ not in sequences}
        return {id_: 0 if row is None else int(row[0]) for id_, row in rows.items()}

    def note_stored(self, rows: Mapping[str, bytes | None], version: int) -> None:
        """All hubs have these rows. What has changed again meanwhile is still to be told."""
        now = self.changed_rows()
        for name, key in self._ask("SELECT name, key FROM _shared_changed").fetchall():
            id_ = _id(name, _key(key))
            if id_ in rows and (name not in self._tables or rows[id_] == now[id_]):
                self._ask("DELETE FROM _shared_changed WHERE name = ? AND key = ?", (name, key))
            if id_ in rows:
                self._know(id_, name, key, None if rows[id_] is None else version)

    # --- what others have changed ----------------------------------------------------------------

    def seen_version(self, epoch: str) -> int | None:
        """The version up to which the rows of others are here; None: it was never shared there."""
        row = self._ask("SELECT version FROM _shared_seen WHERE epoch = ?", (epoch,)).fetchone()
        return None if row is None else int(row[0])

    def see(self, epoch: str, version: int) -> None:
        """The rows of others are here up to this version."""
        self._ask("DELETE FROM _shared_seen")
        self._ask("INSERT INTO _shared_seen VALUES (?, ?)", (epoch, version))

    def take(self, incoming: Iterable[Incoming], *, whole: bool) -> list[Row]:
        """Put in rows of others; gives those that are new here. Within a transaction.

        What was changed here and not told is replaced: the others know nothing of it.
        """
        new: list[Row] = []
        there: set[str] = set()
        for each in incoming:
            there.add(each.id)
            known = self._ask(
                "SELECT name, key, version FROM _shared_rows WHERE id = ?", (each.id,)
            ).fetchone()
            if known is not None and known[2] == each.version:
                continue
            if each.row is None:
                if known is not None:
                    new += self._remove(each.id, known[0], known[1])
                continue
            row = _decode_row(each.row)
            if row is None or (row.name == _SEQUENCE and self._put_sequence(row)):
                continue
            if self._put(row):
                self._note_version(each.id, row.name, self._text(row.key), each.version)
                new.append(row)
        if whole:
            known_here = self._ask("SELECT id, name, key FROM _shared_rows").fetchall()
            for id_, name, key in known_here:
                if id_ not in there:
                    new += self._remove(id_, name, key)
        return new

    def join(self, incoming: Iterable[Incoming]) -> int:
        """Share a file for the first time: have what the others have, and ours where they lack it.

        Gives the number of rows that the others had otherwise. Within a transaction.
        """
        self._ask("DELETE FROM _shared_changed")
        self._ask("DELETE FROM _shared_rows")
        others = list(incoming)
        own = {table.name: self._all(table) for table in self._tables.values()}
        if others:
            for table in self._tables.values():
                self._ask(f"DELETE FROM {_quote(table.name)}")  # noqa: S608 - ours
            self._ask("DELETE FROM _shared_changed")
            self.take(others, whole=False)
        lost = 0
        for table in self._tables.values():
            lost += self._add_own(table, own[table.name], alone=not others)
        return lost

    def reset(self, incoming: Iterable[Incoming]) -> None:
        """Have what the others have, and nothing else. Within a transaction."""
        for name in (*self._tables, "_shared_rows"):
            self._ask(f"DELETE FROM {_quote(name)}")  # noqa: S608 - ours
        self.take(incoming, whole=False)
        self._ask("DELETE FROM _shared_changed")

    def has_rows(self) -> bool:
        """Whether anything is stored here."""
        return any(
            self._ask(f"SELECT 1 FROM {_quote(name)} LIMIT 1").fetchone()  # noqa: S608 - ours
            for name in self._tables
        )

    # --- rows ------------------------------------------------------------------------------------

    def _add_own(self, table: _Table, rows: list[Row], *, alone: bool) -> int:
        """Rows that only this hub has; gives how many of them the others have otherwise."""
        if alone:
            for row in rows:
                values = (table.name, self._text(row.key))
                self._ask("INSERT OR IGNORE INTO _shared_changed VALUES (?, ?)", values)
            return 0
        if not table.named and self._all(table):
            return 0
        lost = 0
        for row in rows:
            cells = row.cells
            if self._row(table, row.key) == row:
                continue
            if table.counted:  # the others use its number for something else
                cells = {name: cell for name, cell in cells.items() if name not in table.key}
            lost += not self._insert(table, cells, "IGNORE")
        return lost

    def _row(self, table: _Table, key: tuple[Cell, ...]) -> Row | None:
        where = " AND ".join(f"{_quote(column)} IS ?" for column in table.key)
        found = self._select(table, f"WHERE {where}", key)
        return found[0] if found else None

    def _all(self, table: _Table) -> list[Row]:
        return self._select(table, "", ())

    def _select(self, table: _Table, where: str, values: tuple[Cell, ...]) -> list[Row]:
        columns = ", ".join(map(_quote, (*table.key, *table.columns)))
        query = f"SELECT {columns} FROM {_quote(table.name)} {where}"  # noqa: S608 - ours
        size = len(table.key)
        return [
            Row(
                name=table.name,
                key=tuple(row[:size]),
                cells=dict(zip(table.columns, row[size:], strict=True)),
            )
            for row in self._ask(query, values).fetchall()
        ]

    def _put(self, row: Row) -> bool:
        table = self._tables.get(row.name)
        if table is None or len(row.key) != len(table.key):
            log.warning("a row of the table %r is not known here", row.name[:100])
            return False
        cells = {name: row.cells[name] for name in table.columns if name in row.cells}
        if not table.named:
            cells["rowid"] = row.key[0]
        return self._insert(table, cells, "REPLACE")

    def _put_sequence(self, row: Row) -> bool:
        name, last = row.key[0] if row.key else None, row.cells.get("seq")
        if not isinstance(name, str) or name not in self._tables or not isinstance(last, int):
            return False
        have = self._ask("SELECT seq FROM sqlite_sequence WHERE name = ?", (name,)).fetchone()
        if have is None:
            self._ask("INSERT INTO sqlite_sequence VALUES (?, ?)", (name, last))
        else:
            values = (max(last, have[0]), name)
            self._ask("UPDATE sqlite_sequence SET seq = ? WHERE name = ?", values)
        return True

    def _insert(self, table: _Table, cells: Mapping[str, Cell], conflict: str) -> bool:
        columns = ", ".join(map(_quote, cells))
        marks = ", ".join("?" * len(cells))
        into = f"{_quote(table.name)} ({columns})"
        query = f"INSERT OR {conflict} INTO {into} VALUES ({marks})"  # noqa: S608 - ours
        try:
            return self._ask(query, tuple(cells.values())).rowcount == 1
        except (sqlite3.IntegrityError, OverflowError) as error:  # of another version, or damaged
            log.error("a row of the table %s does not fit: %s", table.name, error)
            return False

    def _remove(self, id_: str, name: str, key: str) -> list[Row]:
        table = self._tables.get(name)
        self._know(id_, name, key, None)
        if table is None:
            return []
        where = " AND ".join(f"{_quote(column)} IS ?" for column in table.key)
        self._ask(f"DELETE FROM {_quote(name)} WHERE {where}", _key(key))  # noqa: S608 - ours
        self._ask("DELETE FROM _shared_changed WHERE name = ? AND key = ?", (name, key))
        return [Row(name=name, key=_key(key), cells={})]

    def _note_version(self, id_: str, name: str, key: str, version: int) -> None:
        self._ask("DELETE FROM _shared_changed WHERE name = ? AND key = ?", (name, key))
        self._know(id_, name, key, version)

    def _know(self, id_: str, name: str, key: str, version: int | None) -> None:
        if version is None:
            self._ask("DELETE FROM _shared_rows WHERE id = ?", (id_,))
        else:
            self._ask(
                "INSERT OR REPLACE INTO _shared_rows VALUES (?, ?, ?, ?)", (id_, name, key, version)
            )

    def _text(self, key: tuple[Cell, ...]) -> str:
        """A key as the triggers write it."""
        query = f"SELECT json_array({', '.join('?' * len(key))})"
        return str(self._ask(query, key).fetchone()[0])

    def _ask(self, query: str, values: tuple[Cell, ...] = ()) -> sqlite3.Cursor:
        return self.connection.execute(query, values)


def _tables(connection: sqlite3.Connection) -> list[_Table]:
    rows = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table'"
        r" AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name NOT LIKE '\_shared\_%' ESCAPE '\'"
    ).fetchall()
    found: list[_Table] = []
    for name, sql in rows:
        columns = connection.execute(f"PRAGMA table_info({_quote(name)})").fetchall()
        keys = sorted((row[5], row[1]) for row in columns if row[5])
        found.append(
            _Table(
                name=name,
                columns=tuple(row[1] for row in columns),
                key=tuple(column for _, column in keys) or ("rowid",),
                counted="AUTOINCREMENT" in sql.upper(),
            )
        )
    return found


def _triggers(table: _Table) -> str:
    """Note each change. Not `INSERT OR …`: the statement that fires a trigger overrides that."""

    def note(row: str) -> str:
        key = f"json_array({', '.join(f'{row}.{_quote(column)}' for column in table.key)})"
        name = _literal(table.name)
        return (
            f"INSERT INTO _shared_changed SELECT {name}, {key} WHERE NOT EXISTS"  # noqa: S608 - ours
            f" (SELECT 1 FROM _shared_changed WHERE name = {name} AND key = {key});"
        )

    parts = {"INSERT": note("NEW"), "UPDATE": note("OLD") + note("NEW"), "DELETE": note("OLD")}
    return "".join(
        f"CREATE TRIGGER IF NOT EXISTS {_quote(f'_shared_{table.name}_{event}')}"
        f" AFTER {event} ON {_quote(table.name)} BEGIN {body} END;"
        for event, body in parts.items()
    )


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class _Wire(Value):
    """A row before its cells are looked at: msgspec knows no union of text and bytes."""

    name: str
    key: tuple[object, ...]
    cells: dict[str, object]


def _decode_row(data: bytes) -> Row | None:
    try:
        found = msgspec.msgpack.decode(data, type=_Wire)
    except DECODE_ERRORS as error:
        log.error("a row of another hub cannot be read: %s", error)
        return None
    key = [cell for cell in found.key if _is_cell(cell)]
    cells = {name: cell for name, cell in found.cells.items() if _is_cell(cell)}
    if len(key) < len(found.key) or len(cells) < len(found.cells):
        log.error("a row of another hub has a value that SQLite cannot store")
        return None
    return Row(name=found.name, key=tuple(key), cells=cells)


def _is_cell(value: object) -> TypeGuard[Cell]:
    return value is None or isinstance(value, int | float | str | bytes)


def _key(text: str) -> tuple[Cell, ...]:
    return msgspec.json.decode(text, type=tuple[int | float | str | None, ...])


def _id(name: str, key: tuple[Cell, ...]) -> str:
    """A row's name for all hubs: short and printable, whatever its key is."""
    digest = hashlib.sha256(msgspec.json.encode(key)).hexdigest()[:40]
    return f"{name}.{digest}"
