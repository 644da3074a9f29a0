"""Facts about a database that a person should know before hubs rely on it. Changes nothing."""

from __future__ import annotations

import time
from ipaddress import ip_address
from typing import Any

from quarterdeck.domain.structs import Value
from quarterdeck.journal.ownership import PRESENT_MS
from quarterdeck.journal.postgres.address import (
    Address,
    Connection,
    backend,
    explained_errors,
    is_pooled,
)
from quarterdeck.journal.postgres.schema import MIGRATIONS, check_server
from quarterdeck.journal.postgres.shared_records import PostgresRecords

ROUNDS = 5


class Diagnosis(Value):
    """What was found."""

    name: str
    """The address, without the password."""
    server: str
    """PostgreSQL's version."""
    latency_ms: float
    """The shortest of some round trips."""
    clock_ms: float
    """How far the database's clock is ahead of this one."""
    fsync: bool
    synchronous_commit: str
    standbys: str
    """`synchronous_standby_names`; empty: a standby may lack the newest events."""
    pooler: str
    """The mode of a pooler that is between here and the database: session or transaction. Empty
    without one."""
    schema: int
    """The version of the tables; 0 if there are none."""
    known: int
    """The version that this program makes."""
    oldest: int = 0
    """The oldest version of a program that may use the tables."""
    readable: bool = False
    """Whether others can read the connection: it leaves this machine without TLS."""
    hubs: tuple[str, ...] = ()
    """The addresses that hubs have announced a moment ago."""


def diagnose(url: str, password: str | None = None) -> Diagnosis:
    """Look at a database. Raises `JournalError`, `UsageError`."""
    address = Address(url, password)
    with explained_errors(address), address.connect() as connection:
        check_server(connection, address)
        latency, clock = _times(connection)
        server, fsync, commit, standbys, table = _one(
            connection,
            "SELECT current_setting('server_version'), current_setting('fsync'),"
            " current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),"
            " to_regclass('quarterdeck.journal')::text",
        )
        schema = oldest = 0
        hubs: list[str] = []
        if table is not None:
            schema, oldest = _one(connection, "SELECT version, compatible FROM quarterdeck.journal")
            places = PostgresRecords(connection).hubs()
            hubs = sorted(place.url for place in places if place.url and place.age < PRESENT_MS)
        return Diagnosis(
            name=str(address),
            server=server.partition(" ")[0],
            latency_ms=latency,
            clock_ms=clock,
            fsync=fsync == "on",
            synchronous_commit=commit,
            standbys=standbys,
            pooler=_pooler(address, connection),
            schema=schema,
            known=len(MIGRATIONS),
            oldest=oldest,
            readable=_is_readable(connection),
            hubs=tuple(hubs),
        )


def _is_readable(connection: Connection) -> bool:
    """Whether a connection leaves this machine without TLS."""
    if connection.pgconn.ssl_in_use or connection.info.host.startswith(("/", "@")):
        return False
    return not ip_address(connection.info.hostaddr.partition("%")[0]).is_loopback


def _times(connection: Connection) -> tuple[float, float]:
    """The shortest round trip, and how far the other clock is ahead, both in ms."""
    found: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        began = time.time()
        (there,) = _one(connection, "SELECT extract(epoch FROM clock_timestamp())::float8")
        ended = time.time()
        found.append(((ended - began) * 1000, (there - (began + ended) / 2) * 1000))
    return min(found)


def _pooler(address: Address, connection: Connection) -> str:
    """The mode of the pooler, if there is one.

    In session mode a connection keeps its server process. In transaction mode another connection
    gets the same one, or takes it away.
    """
    if not is_pooled(connection):
        return ""
    mine = backend(connection)
    with address.connect() as other, other.transaction():
        theirs = backend(other)
        return "session" if mine == backend(connection) != theirs else "transaction"


def _one(connection: Connection, query: str) -> tuple[Any, ...]:
    row = connection.execute(query.encode()).fetchone()
    if row is None:
        raise AssertionError("these queries have one row")
    return row
