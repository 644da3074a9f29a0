"""The records that hubs share, in the journal's file: `shared_records.SharingRecords`.

Owns their tables. They are empty for a hub that is alone. Methods run within a transaction of the
writer, or on a reader's connection.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence

from quarterdeck.domain.errors import NotFound
from quarterdeck.journal.ownership import (
    Conditions,
    HubPlace,
    Lease,
    Owner,
    SharedChange,
    SharedChanges,
    SharedValue,
    check_fence,
    check_generation,
    check_head,
    check_lease,
    check_machine,
    machines_of,
    owner_after,
)
from quarterdeck.journal.shared_records import PRUNED, changed_value
from quarterdeck.protocol.events import Event
from quarterdeck.protocol.sessions import LOCAL

SCHEMA = """
    -- For several hubs on one journal; empty otherwise. All numbers come from the one counter.
    CREATE TABLE ticks (tick INTEGER NOT NULL) STRICT;
    INSERT INTO ticks VALUES (0);
    CREATE TABLE hubs (hub TEXT PRIMARY KEY, url TEXT NOT NULL, at INTEGER NOT NULL) STRICT;
    CREATE TABLE machines (
      machine TEXT PRIMARY KEY, hub TEXT NOT NULL, generation INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE owners (
      session INTEGER PRIMARY KEY, hub TEXT NOT NULL, fence INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE leases (
      name TEXT PRIMARY KEY, holder TEXT NOT NULL, fence INTEGER NOT NULL, until INTEGER NOT NULL
    ) STRICT;
    -- A removed value stays as NULL: its version shows the change.
    CREATE TABLE shared (
      namespace TEXT NOT NULL,
      key TEXT NOT NULL,
      value BLOB,
      version INTEGER NOT NULL,
      PRIMARY KEY (namespace, key)
    ) STRICT, WITHOUT ROWID;
    """

_OWNER = (
    "SELECT o.hub, o.fence, coalesce(h.url, '') FROM owners o LEFT JOIN hubs h ON h.hub = o.hub"
)


class SqliteRecords:
    """The records, by one connection."""

    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], float]) -> None:
        self._ask = connection.execute
        self._clock = clock

    def admit(
        self,
        conditions: Conditions,
        session: str,
        number: int,
        head: int,
        running: bool,
        events: Sequence[Event],
    ) -> None:
        """Check the conditions of an append, then note a claim. Raises before any change."""
        check_head(conditions, session, head)
        if conditions.lease is not None:
            check_lease(conditions, *self._lease(conditions.lease))
        if not conditions.asks_owner:
            return
        owner = self._owner(f"{_OWNER} WHERE o.session = ?", number)
        hub, new = owner_after(conditions, session, owner, running)
        for machine in machines_of(events):
            check_machine(machine, self.machine_owner(machine), hub)
        if new:
            self._own(number, hub, self._next())

    def announce(self, hub: str, url: str) -> None:
        """Store where a hub is."""
        self._ask(
            "INSERT INTO hubs VALUES (?, ?, ?) ON CONFLICT (hub) DO UPDATE"
            " SET url = excluded.url, at = max(excluded.at, at + 1)",
            (hub, url, self._now()),
        )

    def hubs(self) -> list[HubPlace]:
        """The hubs, the latest first."""
        rows = self._ask("SELECT hub, url, at FROM hubs ORDER BY at DESC, hub")
        now = self._now()
        return [HubPlace(hub=hub, url=url, at=at, age=now - at) for hub, url, at in rows]

    def forget_hub(self, hub: str) -> None:
        """Remove one."""
        self._ask("DELETE FROM hubs WHERE hub = ?", (hub,))

    def raise_fence(self, machine: str, hub: str, after: int | None, lease: Lease | None) -> int:
        """Give a machine, and its sessions with a run, to a hub."""
        if lease is not None:
            check_fence(lease, *self._lease(lease))
        check_generation(machine, self.machine_owner(machine), after)
        generation = self._next()
        self._ask("INSERT OR REPLACE INTO machines VALUES (?, ?, ?)", (machine, hub, generation))
        rows = self._ask(
            "SELECT number FROM sessions WHERE NOT deleted"
            " AND json_extract(CAST(view AS TEXT), '$.run') IS NOT NULL"
            " AND coalesce(nullif(json_extract(CAST(view AS TEXT), '$.machine'), ''), ?2) = ?1",
            (machine, LOCAL),
        ).fetchall()
        for (number,) in rows:
            self._own(number, hub, generation)
        return generation

    def take_over(self, session: str, hub: str) -> int:
        """Give a session to a hub."""
        query = "SELECT number FROM sessions WHERE session = ? AND NOT deleted"
        if (row := self._ask(query, (session,)).fetchone()) is None:
            raise NotFound("session", session)
        fence = self._next()
        self._own(row[0], hub, fence)
        return fence

    def machine_owner(self, machine: str) -> Owner | None:
        """The owner of a machine."""
        return self._owner(
            "SELECT o.hub, o.generation, coalesce(h.url, '') FROM machines o"
            " LEFT JOIN hubs h ON h.hub = o.hub WHERE o.machine = ?",
            machine,
        )

    def machine_owners(self) -> dict[str, Owner]:
        """The owners of all machines."""
        rows = self._ask(
            "SELECT m.machine, m.hub, m.generation, coalesce(h.url, '') FROM machines m"
            " LEFT JOIN hubs h ON h.hub = m.hub"
        )
        return {machine: Owner(hub=hub, fence=fence, url=url) for machine, hub, fence, url in rows}

    def owner(self, session: str) -> Owner | None:
        """The owner of a session."""
        of = "WHERE o.session = (SELECT number FROM sessions WHERE session = ?)"
        return self._owner(f"{_OWNER} {of}", session)

    def owners(self) -> dict[str, Owner]:
        """The owners of all sessions."""
        rows = self._ask(
            "SELECT s.session, o.hub, o.fence, coalesce(h.url, '') FROM owners o"
            " JOIN sessions s ON s.number = o.session LEFT JOIN hubs h ON h.hub = o.hub"
        )
        return {session: Owner(hub=hub, fence=fence, url=url) for session, hub, fence, url in rows}

    def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        """Take a lease."""
        now = self._now()
        row = self._ask("SELECT holder, until FROM leases WHERE name = ?", (name,)).fetchone()
        if row is not None and row[0] != holder and row[1] > now:
            return None
        fence = self._next()
        until = now + int(seconds * 1000)
        self._ask("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)", (name, holder, fence, until))
        return Lease(name=name, fence=fence)

    def renew_lease(self, lease: Lease, seconds: float) -> bool:
        """Renew one."""
        done = self._ask(
            "UPDATE leases SET until = ? WHERE name = ? AND fence = ?",
            (self._now() + int(seconds * 1000), lease.name, lease.fence),
        )
        return done.rowcount == 1

    def release_lease(self, lease: Lease) -> None:
        """Release one."""
        self._ask("DELETE FROM leases WHERE name = ? AND fence = ?", (lease.name, lease.fence))

    def shared_value(self, namespace: str, key: str) -> SharedValue | None:
        """A shared value."""
        row = self._ask(
            "SELECT value, version FROM shared"
            " WHERE namespace = ? AND key = ? AND value IS NOT NULL",
            (namespace, key),
        ).fetchone()
        return None if row is None else SharedValue(value=row[0], version=row[1])

    def shared_values(self, namespace: str) -> dict[str, SharedValue]:
        """All of a namespace."""
        rows = self._ask(
            "SELECT key, value, version FROM shared"
            " WHERE namespace = ? AND key <> ? AND value IS NOT NULL ORDER BY key",
            (namespace, PRUNED),
        )
        return {key: SharedValue(value=value, version=version) for key, value, version in rows}

    def shared_version(self, namespace: str) -> int:
        """The last version of a namespace."""
        query = "SELECT coalesce(max(version), 0) FROM shared WHERE namespace = ?"
        return int(self._ask(query, (namespace,)).fetchone()[0])

    def shared_changes(self, namespace: str, after: int) -> SharedChanges:
        """What was changed after a version."""
        pruned = self.shared_value(namespace, PRUNED)
        whole = pruned is not None and after < int(pruned.value)
        rows = self._ask(
            "SELECT key, value, version FROM shared WHERE namespace = ? AND key <> ?"
            " AND version > ? AND (value IS NOT NULL OR NOT ?) ORDER BY version, key",
            (namespace, PRUNED, -1 if whole else after, whole),
        )
        found = (SharedChange(key=key, value=value, version=at) for key, value, at in rows)
        return SharedChanges(changes=tuple(found), whole=whole)

    def share(
        self,
        namespace: str,
        values: Mapping[str, bytes | None],
        expected: Mapping[str, int],
        lease: Lease | None,
    ) -> int:
        """Store values."""
        if lease is not None:
            check_fence(lease, *self._lease(lease))
        for key, wanted in expected.items():
            known = self.shared_value(namespace, key)
            if wanted != (0 if known is None else known.version):
                raise changed_value(namespace, key)
        version = self._next()
        for key, value in values.items():
            row = (namespace, key, value, version)
            self._ask("INSERT OR REPLACE INTO shared VALUES (?, ?, ?, ?)", row)
        return version

    def forget_removed(self, namespace: str, before: int) -> None:
        """Forget removals up to a version."""
        self._ask(
            "DELETE FROM shared WHERE namespace = ? AND key <> ? AND value IS NULL"
            " AND version <= ?",
            (namespace, PRUNED, before),
        )
        pruned = self.shared_value(namespace, PRUNED)
        if pruned is None or int(pruned.value) < before:
            row = (namespace, PRUNED, str(before).encode(), before)
            self._ask("INSERT OR REPLACE INTO shared VALUES (?, ?, ?, ?)", row)

    def _lease(self, lease: Lease) -> tuple[int | None, str]:
        row = self._ask("SELECT fence, holder FROM leases WHERE name = ?", (lease.name,)).fetchone()
        return (None, "") if row is None else (row[0], row[1])

    def _own(self, number: int, hub: str, fence: int) -> None:
        self._ask("INSERT OR REPLACE INTO owners VALUES (?, ?, ?)", (number, hub, fence))

    def _owner(self, query: str, key: str | int) -> Owner | None:
        row = self._ask(query, (key,)).fetchone()
        return None if row is None else Owner(hub=row[0], fence=row[1], url=row[2])

    def _next(self) -> int:
        self._ask("UPDATE ticks SET tick = tick + 1")
        return int(self._ask("SELECT tick FROM ticks").fetchone()[0])

    def _now(self) -> int:
        return int(self._clock() * 1000)
