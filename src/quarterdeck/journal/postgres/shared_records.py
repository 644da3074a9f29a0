"""The records that hubs share, in PostgreSQL: `shared_records.SharingRecords`.

Owns the order of locks, which is the same for all who write: leases, machines, sessions by number,
the ticket last. Each method runs within a transaction, or on a reader's connection. Leases run by
the clock of the database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from quarterdeck.domain.errors import NotFound
from quarterdeck.journal.ownership import (
    HubPlace,
    Lease,
    Owner,
    SharedChange,
    SharedChanges,
    SharedValue,
    check_fence,
    check_generation,
)
from quarterdeck.journal.postgres.address import Connection
from quarterdeck.journal.shared_records import PRUNED, changed_value

NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
"""The time in ms, by the clock of the database."""
_URL = "coalesce(h.url, '')"
_SHARED = "SELECT value, version FROM quarterdeck.shared WHERE namespace = %s AND key = %s"
_MACHINE_NOW = (
    "SELECT 1 FROM quarterdeck.machines WHERE machine = %s AND hub = %s AND generation = %s"
)
_SHARED_NOW = (
    "SELECT 1 FROM quarterdeck.shared s"
    " JOIN unnest(%s::text[], %s::bytea[]) new (key, value)"
    " ON s.key = new.key AND s.value IS NOT DISTINCT FROM new.value"
    " WHERE s.namespace = %s AND s.version = %s HAVING count(*) = %s"
)


class PostgresRecords:
    """The records, by one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.proof: tuple[str, tuple[object, ...]] | None = None
        """The query that has a row if what was changed last is stored, and its values. None: it can
        be done again."""

    def announce(self, hub: str, url: str) -> None:
        """Store where a hub is."""
        self._rows(
            f"INSERT INTO quarterdeck.hubs VALUES (%s, %s, {NOW})"  # noqa: S608
            " ON CONFLICT (hub) DO UPDATE"
            " SET url = excluded.url, at = greatest(excluded.at, hubs.at + 1)",
            (hub, url),
        )

    def hubs(self) -> list[HubPlace]:
        """The hubs, the latest first."""
        rows = self._rows(
            f"SELECT hub, url, at, {NOW} - at FROM quarterdeck.hubs ORDER BY at DESC, hub"  # noqa: S608
        )
        return [HubPlace(hub=hub, url=url, at=at, age=age) for hub, url, at, age in rows]

    def forget_hub(self, hub: str) -> None:
        """Remove one."""
        self._rows("DELETE FROM quarterdeck.hubs WHERE hub = %s", (hub,))

    def raise_fence(self, machine: str, hub: str, after: int | None, lease: Lease | None) -> int:
        """Give a machine, and its sessions with a run, to a hub."""
        self._check(lease)
        # The machine's row first: an append that starts a run there has it locked, too.
        self._rows(
            "INSERT INTO quarterdeck.machines VALUES (%s, '', 0) ON CONFLICT (machine) DO NOTHING",
            (machine,),
        )
        (row,) = self._rows(
            "SELECT hub, generation FROM quarterdeck.machines WHERE machine = %s FOR UPDATE",
            (machine,),
        )
        check_generation(machine, Owner(hub=row[0], fence=row[1]), after)
        rows = self._rows(
            "SELECT number FROM quarterdeck.sessions WHERE run_machine = %s"
            " ORDER BY number FOR UPDATE",
            (machine,),
        )
        generation = self._next()
        self._rows(
            "UPDATE quarterdeck.machines SET generation = %s, hub = %s WHERE machine = %s",
            (generation, hub, machine),
        )
        self._rows(
            "UPDATE quarterdeck.sessions SET owner = %s, fence = %s WHERE number = ANY(%s)",
            (hub, generation, [row[0] for row in rows]),
        )
        self.proof = _MACHINE_NOW, (machine, hub, generation)
        return generation

    def take_over(self, session: str, hub: str) -> int:
        """Give a session to a hub."""
        rows = self._rows(
            "SELECT number FROM quarterdeck.sessions WHERE session = %s AND NOT deleted"
            " AND head > 0 FOR UPDATE",
            (session,),
        )
        if not rows:
            raise NotFound("session", session)
        fence = self._next()
        self._rows(
            "UPDATE quarterdeck.sessions SET owner = %s, fence = %s WHERE number = %s",
            (hub, fence, rows[0][0]),
        )
        self.proof = (
            "SELECT 1 FROM quarterdeck.sessions WHERE session = %s AND owner = %s AND fence = %s",
            (session, hub, fence),
        )
        return fence

    def machine_owner(self, machine: str) -> Owner | None:
        """The owner of a machine."""
        rows = self._rows(
            f"SELECT m.hub, m.generation, {_URL} FROM quarterdeck.machines m"  # noqa: S608
            " LEFT JOIN quarterdeck.hubs h USING (hub) WHERE m.machine = %s AND m.hub <> ''",
            (machine,),
        )
        return Owner(hub=rows[0][0], fence=rows[0][1], url=rows[0][2]) if rows else None

    def machine_owners(self) -> dict[str, Owner]:
        """The owners of all machines."""
        rows = self._rows(
            f"SELECT m.machine, m.hub, m.generation, {_URL} FROM quarterdeck.machines m"  # noqa: S608
            " LEFT JOIN quarterdeck.hubs h USING (hub) WHERE m.hub <> ''"
        )
        return {machine: Owner(hub=hub, fence=fence, url=url) for machine, hub, fence, url in rows}

    def owner(self, session: str) -> Owner | None:
        """The owner of a session."""
        return self._owners("s.session = %s", (session,)).get(session)

    def owners(self) -> dict[str, Owner]:
        """The owners of all sessions."""
        return self._owners("true", ())

    def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        """Take a lease."""
        # The row is there and locked before it is looked at.
        self._rows(
            "INSERT INTO quarterdeck.leases VALUES (%s, '', 0, '-infinity')"
            " ON CONFLICT (name) DO NOTHING",
            (name,),
        )
        (row,) = self._rows(
            "SELECT holder, until > clock_timestamp() FROM quarterdeck.leases"
            " WHERE name = %s FOR UPDATE",
            (name,),
        )
        if row[0] != holder and row[1]:
            return None
        fence = self._next()
        self._rows(
            "UPDATE quarterdeck.leases SET holder = %s, fence = %s,"
            " until = clock_timestamp() + make_interval(secs => %s) WHERE name = %s",
            (holder, fence, seconds, name),
        )
        self.proof = (
            "SELECT 1 FROM quarterdeck.leases WHERE name = %s AND holder = %s AND fence = %s",
            (name, holder, fence),
        )
        return Lease(name=name, fence=fence)

    def renew_lease(self, lease: Lease, seconds: float) -> bool:
        """Renew one."""
        done = self._connection.execute(
            "UPDATE quarterdeck.leases SET until = clock_timestamp() + make_interval(secs => %s)"
            " WHERE name = %s AND fence = %s",
            (seconds, lease.name, lease.fence),
        )
        return done.rowcount == 1

    def release_lease(self, lease: Lease) -> None:
        """Release one. The row stays: a hub that waits for it has it locked."""
        self._rows(
            "UPDATE quarterdeck.leases SET holder = '', fence = 0, until = '-infinity'"
            " WHERE name = %s AND fence = %s",
            (lease.name, lease.fence),
        )

    def shared_value(self, namespace: str, key: str) -> SharedValue | None:
        """A shared value."""
        rows = self._rows(_SHARED, (namespace, key))
        if not rows or rows[0][0] is None:
            return None
        return SharedValue(value=rows[0][0], version=rows[0][1])

    def shared_values(self, namespace: str) -> dict[str, SharedValue]:
        """All of a namespace."""
        rows = self._rows(
            "SELECT key, value, version FROM quarterdeck.shared"
            " WHERE namespace = %s AND key <> %s AND value IS NOT NULL ORDER BY key",
            (namespace, PRUNED),
        )
        return {key: SharedValue(value=value, version=version) for key, value, version in rows}

    def shared_version(self, namespace: str) -> int:
        """The last version of a namespace."""
        query = "SELECT coalesce(max(version), 0) FROM quarterdeck.shared WHERE namespace = %s"
        return int(self._rows(query, (namespace,))[0][0])

    def shared_changes(self, namespace: str, after: int) -> SharedChanges:
        """What was changed after a version."""
        pruned = self.shared_value(namespace, PRUNED)
        whole = pruned is not None and after < int(pruned.value)
        rows = self._rows(
            "SELECT key, value, version FROM quarterdeck.shared WHERE namespace = %s"
            " AND key <> %s AND version > %s AND (value IS NOT NULL OR NOT %s)"
            " ORDER BY version, key",
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
        """Store values. The caller has the ticket first, so no row needs a lock."""
        self._check(lease)
        version = self._next()
        if expected:
            rows = self._rows(
                "SELECT key, version FROM quarterdeck.shared WHERE namespace = %s"
                " AND key = ANY(%s) AND value IS NOT NULL",
                (namespace, list(expected)),
            )
            known = dict(rows)
            for key, wanted in expected.items():
                if wanted != known.get(key, 0):
                    raise changed_value(namespace, key)
        self._rows(
            "INSERT INTO quarterdeck.shared SELECT %s, new.key, new.value, %s"
            " FROM unnest(%s::text[], %s::bytea[]) AS new (key, value)"
            " ON CONFLICT (namespace, key)"
            " DO UPDATE SET value = excluded.value, version = excluded.version",
            (namespace, version, list(values), list(values.values())),
        )
        given = list(values), list(values.values()), namespace, version, len(values)
        self.proof = _SHARED_NOW, given
        return version

    def forget_removed(self, namespace: str, before: int) -> None:
        """Forget removals up to a version."""
        self._next()
        self._rows(
            "DELETE FROM quarterdeck.shared WHERE namespace = %s AND key <> %s AND value IS NULL"
            " AND version <= %s",
            (namespace, PRUNED, before),
        )
        pruned = self.shared_value(namespace, PRUNED)
        if pruned is None or int(pruned.value) < before:
            self._rows(
                "INSERT INTO quarterdeck.shared VALUES (%s, %s, %s, %s)"
                " ON CONFLICT (namespace, key)"
                " DO UPDATE SET value = excluded.value, version = excluded.version",
                (namespace, PRUNED, str(before).encode(), before),
            )

    def _owners(self, condition: str, values: Sequence[object]) -> dict[str, Owner]:
        rows = self._rows(
            f"SELECT s.session, s.owner, s.fence, {_URL} FROM quarterdeck.sessions s"  # noqa: S608
            f" LEFT JOIN quarterdeck.hubs h ON h.hub = s.owner WHERE s.owner <> '' AND {condition}",
            values,
        )
        return {session: Owner(hub=hub, fence=fence, url=url) for session, hub, fence, url in rows}

    def _check(self, lease: Lease | None) -> None:
        """Raises `StaleLease`. The row stays as it is until this transaction ends."""
        if lease is not None:
            rows = self._rows(
                "SELECT fence, holder FROM quarterdeck.leases WHERE name = %s FOR SHARE",
                (lease.name,),
            )
            check_fence(lease, *(rows[0] if rows else (None, "")))

    def _next(self) -> int:
        query = "UPDATE quarterdeck.ticket SET tick = tick + 1 RETURNING tick"
        return int(self._rows(query)[0][0])

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(query.encode(), values, binary=True)
        return cursor.fetchall() if cursor.description else []
