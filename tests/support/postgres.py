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
