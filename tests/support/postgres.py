"""A PostgreSQL server for the tests of one worker, and an empty journal for each test.

The server is started by the first test that wants one. It does not wait for the disk (`fsync` is
off): a killed server loses nothing then, and no test cuts the power.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from quarterdeck.testing.postgres import PostgresServer


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server for all tests of this worker."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def _postgres_database(postgres: PostgresServer) -> str:
    return postgres.create_database()


@pytest.fixture
def postgres_url(_postgres_database: str) -> str:
    """A database without a journal. The one before is dropped: that takes less than a new one."""
    with psycopg.connect(_postgres_database, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS quarterdeck CASCADE")
    return _postgres_database


def replace_database(server: PostgresServer, url: str) -> None:
    """A copy of a database takes its place, as after a restore: its identity is another one."""
    name = url.partition("@/")[2].partition("?")[0]
    with psycopg.connect(server.url(), autocommit=True) as connection:

        def do(query: str) -> None:
            connection.execute(query.encode())

        do(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        do(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        with_nobody = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'"
        while (row := connection.execute(with_nobody.encode()).fetchone()) and row[0]:
            pass
        do(f"ALTER DATABASE {name} RENAME TO {name}_before")
        do(f"CREATE DATABASE {name} TEMPLATE {name}_before")
