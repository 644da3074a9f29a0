"""What the hub keeps for people, in one SQLite file: preferences, saved prompts, templates.

Owns the rule by which the changes of several devices become one state, who may change what, and
the limits. Blocking, and safe to use from several threads. The routes are above. It knows neither
sessions nor HTTP: a key is an id that some session may have.

A person is the name and role of a login: a viewer's token that has an owner's name must not read
the owner's drafts.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from quarterdeck.domain.errors import Conflict, Forbidden, NotFound, UsageError
from quarterdeck.fronts.http.roles import Person
from quarterdeck.protocol.people import (
    LONGEST_DRAFT,
    LONGEST_SETTING,
    Library,
    NewSavedPrompt,
    NewTemplate,
    Preference,
    PreferenceChange,
    PreferenceKind,
    PreferencePage,
    SavedPrompt,
    SessionTemplate,
)
from quarterdeck.protocol.roles import Right, Role
from quarterdeck.runtime.shared_tables import Mirror, Row
from quarterdeck.runtime.sqlite_files import SqliteFile, again

FILE = "people.db"
MOST_KEPT = {PreferenceKind.PIN: 500, PreferenceKind.READ: 5000}
"""Of one person; the oldest are forgotten."""
MOST_ALLOWED = {PreferenceKind.DRAFT: 300, PreferenceKind.SETTING: 100}
"""Of one person; a further one is refused, because nothing that was typed may be forgotten."""
MOST_DRAFT_CHARACTERS = 2_000_000
"""All drafts of one person together."""
MOST_ENTRIES = 200
"""Saved prompts of one author, and templates."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS preferences (
  person TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL,
  value TEXT NOT NULL, at INTEGER NOT NULL, version INTEGER NOT NULL,
  PRIMARY KEY (person, kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS preferences_by_version ON preferences (person, version);
CREATE TABLE IF NOT EXISTS library (
  kind TEXT NOT NULL, id TEXT NOT NULL, person TEXT NOT NULL, by TEXT NOT NULL,
  shared INTEGER NOT NULL, body TEXT NOT NULL, updated INTEGER NOT NULL, version INTEGER NOT NULL,
  PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counter (version INTEGER NOT NULL) STRICT;
"""

Entry = Literal["prompt", "template"]


class PeopleStore:
    """The file. Raises `sqlite3.Error` when it cannot be read or written."""

    def __init__(
        self,
        folder: Path,
        *,
        clock: Callable[[], float] = time.time,
        mirror: Mirror | None = None,
    ) -> None:
        """`mirror`: several hubs have the same people."""
        self._file = SqliteFile(folder / FILE, _SCHEMA, synchronous="NORMAL", mirror=mirror)
        self.look = self._file.look
        self._clock = clock
        self._listeners: set[Callable[[Person, int], None]] = set()

    def listen(self, listener: Callable[[Person, int], None]) -> None:
        """Have `listener` called with each person whose preferences have changed, and the version.

        It is called where `notify` is.
        """
        self._listeners.add(listener)

    def notify(self, person: Person, version: int) -> None:
        """Tell the listeners that a person's preferences have changed."""
        for listener in self._listeners:
            listener(person, version)

    def note_remote_change(self, rows: Sequence[Row]) -> None:
        """Tell the listeners what people have changed at other hubs."""
        versions: dict[str, int] = {}
        for row in rows:
            owner, version = row.key[0], row.cells.get("version")
            if row.name == "preferences" and isinstance(owner, str) and isinstance(version, int):
                versions[owner] = max(version, versions.get(owner, 0))
        for owner, version in versions.items():
            role, _, name = owner.partition(":")
            if role in {each.value for each in Role}:
                self.notify(Person(name=name, role=Role(role), grant=""), version)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    # --- preferences -----------------------------------------------------

    def preferences(self, person: Person, after: int = 0) -> PreferencePage:
        """The preferences that changed after a version."""
        with self._file.read_transaction() as db:
            return _page(db, _key(person), after)

    @again
    def change(
        self, person: Person, changes: Sequence[PreferenceChange], after: int = 0
    ) -> PreferencePage:
        """Take a device's changes; gives all that is new to that device.

        Raises `UsageError` for a value that does not fit its kind, and `Conflict` at a limit.
        """
        for each in changes:
            _check(each)
        owner = _key(person)
        with self._file.write_transaction() as db:
            for each in changes:
                self._merge(db, owner, each)
            for kind in {each.kind for each in changes}:
                _enforce_limits(db, owner, kind)
            return _page(db, owner, after)

    def _merge(self, db: sqlite3.Connection, owner: str, new: PreferenceChange) -> None:
        now = int(self._clock() * 1000)
        at = min(new.at, now)
        row = db.execute(
            "SELECT value, at, version FROM preferences WHERE person = ? AND kind = ? AND key = ?",
            (owner, new.kind.value, new.key),
        ).fetchone()
        value: bool | int | str | None = new.value
        if row is not None:
            old = msgspec.json.decode(row[0], type=bool | int | str)
            value = _winner(new, at, old, row[1], row[2])
            at = max(at, row[1])
        if value is None:
            return
        db.execute(
            "INSERT OR REPLACE INTO preferences VALUES (?, ?, ?, ?, ?, ?)",
            (
                owner,
                new.kind.value,
                new.key,
                msgspec.json.encode(value).decode(),
                at,
                _next_version(db),
            ),
        )

    # --- the library -----------------------------------------------------

    def library(self, person: Person) -> Library:
        """The person's own entries, and the shared ones."""
        with self._file.read_transaction() as db:
            rows = db.execute(
                "SELECT kind, id, person, by, shared, body, updated, version FROM library"
                " WHERE person = ? OR shared ORDER BY id",
                (_key(person),),
            ).fetchall()
        prompts = [_prompt(person, row) for row in rows if row[0] == "prompt"]
        templates = [_template(person, row) for row in rows if row[0] == "template"]
        return Library(
            prompts=tuple(sorted(prompts, key=lambda each: each.name.casefold())),
            templates=tuple(sorted(templates, key=lambda each: each.name.casefold())),
        )

    @again
    def save(
        self, person: Person, kind: Entry, id_: str, new: NewSavedPrompt | NewTemplate
    ) -> None:
        """Store an entry. The same again changes nothing.

        Raises `Forbidden` for an entry of another person, and `Conflict` when it was changed
        meanwhile or there are too many.
        """
        with self._file.write_transaction() as db:
            row = _row(db, kind, id_)
            body = msgspec.json.encode(msgspec.structs.replace(new, version=0)).decode()
            if row is None:
                if new.version:
                    raise Conflict("changed_meanwhile", "the entry was deleted meanwhile")
                (count,) = db.execute(
                    "SELECT count(*) FROM library WHERE kind = ? AND person = ?",
                    (kind, _key(person)),
                ).fetchone()
                if count >= MOST_ENTRIES:
                    raise Conflict("too_many", f"you have {MOST_ENTRIES} of these already")
                owner, author = _key(person), person.name
            else:
                _need_change(person, kind, id_, row)
                if row[5] == body:
                    return
                if row[7] != new.version:
                    raise Conflict("changed_meanwhile", "the entry was changed meanwhile: reload")
                owner, author = row[2], row[3]
            db.execute(
                "INSERT OR REPLACE INTO library VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    kind,
                    id_,
                    owner,
                    author,
                    int(new.shared),
                    body,
                    int(self._clock() * 1000),
                    _next_version(db),
                ),
            )

    @again
    def remove(self, person: Person, kind: Entry, id_: str) -> None:
        """Delete an entry. Raises `NotFound` and `Forbidden`."""
        with self._file.write_transaction() as db:
            row = _row(db, kind, id_)
            if row is None:
                raise NotFound(kind, id_)
            _need_change(person, kind, id_, row)
            db.execute("DELETE FROM library WHERE kind = ? AND id = ?", (kind, id_))


def renumber_united(db: sqlite3.Connection) -> None:
    """The rows of two hubs that were alone have become one: all of them are news to all devices."""
    db.execute(
        "INSERT INTO counter SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM counter)",
    )
    most = "SELECT max(version) FROM (SELECT version FROM {} UNION ALL SELECT version FROM counter)"
    (last,) = db.execute(
        f"SELECT max(({most.format('preferences')}), ({most.format('library')}))"
    ).fetchone()
    for table in ("preferences", "library"):
        db.execute(f"UPDATE {table} SET version = version + ?", (last,))  # noqa: S608 - constants
    db.execute("UPDATE counter SET version = ?", (2 * last,))


def copy_of(folder: Path) -> bytes | None:
    """The file as one piece, for a backup, also while a hub uses it; None if there is none."""
    path = folder / FILE
    if not path.exists():
        return None
    source = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    copy = sqlite3.connect(":memory:")
    try:
        source.backup(copy)
        return copy.serialize()
    finally:
        copy.close()
        source.close()


# --- rules ---------------------------------------------------------------------------------------


def _winner(
    new: PreferenceChange, at: int, old: bool | int | str, old_at: int, version: int
) -> bool | int | str | None:
    """What two devices' values become; None if the stored one stays."""
    if old == new.value and type(old) is type(new.value):
        return None
    if new.kind is PreferenceKind.READ:
        assert isinstance(old, int)
        assert isinstance(new.value, int)
        return new.value if new.value > old else None
    if new.kind is PreferenceKind.DRAFT:
        assert isinstance(old, str)
        assert isinstance(new.value, str)
        return _joined_drafts(old, new.value, known=new.base == version)
    return new.value if at > old_at else None


def _joined_drafts(old: str, new: str, *, known: bool) -> str | None:
    """Two drafts of one session. No text is lost that a device did not know of."""
    if known or not old:
        return new
    if not new or new in old:
        return None
    if old in new:
        return new
    joined = f"{old}\n\n{new}"
    return joined if len(joined) <= LONGEST_DRAFT else new


def _check(change: PreferenceChange) -> None:
    value, kind = change.value, change.kind
    fits = {
        PreferenceKind.PIN: isinstance(value, bool),
        PreferenceKind.READ: isinstance(value, int) and not isinstance(value, bool),
        PreferenceKind.DRAFT: isinstance(value, str),
        PreferenceKind.SETTING: isinstance(value, str) and len(value) <= LONGEST_SETTING,
    }
    if not fits[kind]:
        raise UsageError(f"changes: the value does not fit a preference of the kind {kind.value}")


def _enforce_limits(db: sqlite3.Connection, owner: str, kind: PreferenceKind) -> None:
    """Keep the limits of one kind. Raises `Conflict`."""
    if kind in MOST_KEPT:
        db.execute(
            "DELETE FROM preferences WHERE person = ?1 AND kind = ?2 AND key IN (SELECT key FROM"
            " preferences WHERE person = ?1 AND kind = ?2 ORDER BY at DESC LIMIT -1 OFFSET ?3)",
            (owner, kind.value, MOST_KEPT[kind]),
        )
        return
    db.execute(
        # An empty draft is kept for a while, so that other devices learn that it was sent.
        "DELETE FROM preferences WHERE person = ?1 AND kind = 'draft' AND value = '\"\"' AND key IN"
        " (SELECT key FROM preferences WHERE person = ?1 AND kind = 'draft' AND value = '\"\"'"
        " ORDER BY version DESC LIMIT -1 OFFSET ?2)",
        (owner, MOST_ALLOWED[PreferenceKind.DRAFT]),
    )
    count, size = db.execute(
        "SELECT count(*), coalesce(sum(length(value)), 0) FROM preferences"
        " WHERE person = ? AND kind = ? AND value <> '\"\"'",
        (owner, kind.value),
    ).fetchone()
    if count > MOST_ALLOWED[kind]:
        raise Conflict(
            "too_many", f"at most {MOST_ALLOWED[kind]} of the kind {kind.value} are kept"
        )
    if kind is PreferenceKind.DRAFT and size > MOST_DRAFT_CHARACTERS:
        raise Conflict(
            "too_many", f"drafts have at most {MOST_DRAFT_CHARACTERS} characters together"
        )


def _page(db: sqlite3.Connection, owner: str, after: int) -> PreferencePage:
    rows = db.execute(
        "SELECT kind, key, value, at, version FROM preferences"
        " WHERE person = ? AND version > ? ORDER BY version",
        (owner, after),
    ).fetchall()
    found = tuple(
        Preference(
            kind=PreferenceKind(kind),
            key=key,
            value=msgspec.json.decode(value, type=bool | int | str),
            at=at,
            version=version,
        )
        for kind, key, value, at, version in rows
    )
    return PreferencePage(preferences=found, version=found[-1].version if found else after)


def _next_version(db: sqlite3.Connection) -> int:
    row = db.execute("SELECT version FROM counter").fetchone()
    version = 1 if row is None else int(row[0]) + 1
    db.execute("DELETE FROM counter")
    db.execute("INSERT INTO counter VALUES (?)", (version,))
    return version


# --- rows of the library -------------------------------------------------------------------------

_Row = tuple[str, str, str, str, int, str, int, int]


def _row(db: sqlite3.Connection, kind: Entry, id_: str) -> _Row | None:
    row: _Row | None = db.execute(
        "SELECT kind, id, person, by, shared, body, updated, version FROM library"
        " WHERE kind = ? AND id = ?",
        (kind, id_),
    ).fetchone()
    return row


def _may_change(person: Person, row: _Row) -> bool:
    return row[2] == _key(person) or (bool(row[4]) and person.may(Right.MANAGE))


def _need_change(person: Person, kind: Entry, id_: str, row: _Row) -> None:
    if _may_change(person, row):
        return
    if row[4]:
        raise Forbidden(f"this {kind} is {row[3]}'s: only its author and owners may change it")
    raise NotFound(kind, id_)  # entries of other people are not disclosed


def _prompt(person: Person, row: _Row) -> SavedPrompt:
    body = msgspec.json.decode(row[5], type=NewSavedPrompt)
    return SavedPrompt(
        id=row[1],
        name=body.name,
        text=body.text,
        shared=body.shared,
        by=row[3],
        may_change=_may_change(person, row),
        updated=row[6],
        version=row[7],
    )


def _template(person: Person, row: _Row) -> SessionTemplate:
    body = msgspec.json.decode(row[5], type=NewTemplate)
    return SessionTemplate(
        id=row[1],
        name=body.name,
        spec=body.spec,
        prompt=body.prompt,
        shared=body.shared,
        by=row[3],
        may_change=_may_change(person, row),
        updated=row[6],
        version=row[7],
    )


def is_same(one: Person, other: Person) -> bool:
    """Whether two logins share their preferences."""
    return _key(one) == _key(other)


def _key(person: Person) -> str:
    return f"{person.role.value}:{person.name}"
