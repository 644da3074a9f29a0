"""A database that cannot have the journal: each says what is wrong and where, without the password.

The servers are real, but for one that is too old and two that are none. One of them has a journal
that was restored, becomes a standby, and takes over.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import psycopg
import pytest

from quarterdeck.cli.hub.journal_findings import look_at_journal
from quarterdeck.cli.local.findings import Level
from quarterdeck.config.settings import JournalSettings, Settings
from quarterdeck.domain.errors import JournalError, UsageError
from quarterdeck.journal import open_journal
from quarterdeck.journal.postgres import PostgresJournal
from quarterdeck.testing.contracts.journal.support import SECONDS, created_event, note
from quarterdeck.testing.postgres import PostgresServer, find_programs
from support.fake_postgres import fake_postgres, greeting

PASSWORD = "sesame-sesame"


@pytest.fixture(scope="module")
def other() -> Iterator[PostgresServer]:
    """A server beside that of the worker, whose user `locked` needs a password."""
    with PostgresServer() as server:
        rules = server.folder / "data" / "pg_hba.conf"
        rules.write_text(
            "local all locked scram-sha-256\nlocal all barred reject\n" + rules.read_text()
        )
        _do(server.url(), f"CREATE ROLE locked LOGIN PASSWORD '{PASSWORD}'")
        _do(server.url(), "CREATE ROLE barred LOGIN; SELECT pg_reload_conf()")
        _do(server.url(), "CREATE DATABASE locked OWNER locked TEMPLATE template0")
        yield server


def _do(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        return cursor.fetchall() if cursor.description else []


async def _refused(url: str, password: str | None = None) -> JournalError:
    with anyio.fail_after(SECONDS), pytest.raises(JournalError) as caught:
        await open_journal(url, password=password)
    text = str(caught.value)
    assert PASSWORD not in text
    assert "\n" not in text, "one sentence"
    assert text.count("postgresql://") == 1, "it says where"
    return caught.value


async def _doctor(url: str) -> str:
    """What the doctor says of it: one problem."""

    def look() -> str:
        (finding,) = look_at_journal(Settings(journal=JournalSettings(url=url)))
        assert finding.level is Level.PROBLEM
        return finding.text

    return await anyio.to_thread.run_sync(look)


@pytest.mark.process
async def test_a_wrong_user_password_or_database_is_refused_by_name(
    other: PostgresServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    where = f"host={other.folder}"
    for address, given, expected in (
        (f"locked:wrong-{PASSWORD}@/locked?{where}", None, "refuses this user or password"),
        (f"locked@/locked?{where}", f"wrong-{PASSWORD}", "refuses this user or password"),
        (f"locked@/locked?{where}", None, "wants a password: see journal.password_file"),
        (f"stranger:{PASSWORD}@/locked?{where}", None, "no such user: create it"),
        (f"quarterdeck:{PASSWORD}@/missing?{where}", None, "no such database: create it"),
        (f"barred:{PASSWORD}@/locked?{where}", None, "refuses"),
    ):
        error = await _refused(f"postgresql://{address}", given)
        assert expected in str(error)
        assert error.code == "refused"
    # With the right one it works, also where the environment asks for another encoding.
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    url = f"postgresql://locked@/locked?{where}"
    async with await open_journal(url, password=PASSWORD) as journal:
        await journal.append("a", [created_event("日本")])
        assert [view.name for view in await journal.summaries()] == ["日本"]
    assert PASSWORD not in caplog.text


async def test_a_host_that_is_not_there_does_not_answer() -> None:
    for address in (
        f"deck:{PASSWORD}@127.0.0.1:1/deck",
        f"deck:{PASSWORD}@nowhere.invalid/deck",
        f"deck:{PASSWORD}@/deck?host=/nowhere",
    ):
        error = await _refused(f"postgresql://{address}")
        assert error.code == "away"
        assert "does not answer" in str(error)


async def test_a_server_that_is_too_old_says_nothing_or_says_nonsense_is_none() -> None:
    with fake_postgres(greeting("13.22")) as port:
        url = f"postgresql://deck:{PASSWORD}@127.0.0.1:{port}/deck"
        error = await _refused(url)
        assert "PostgreSQL 14 or newer is needed, not 13" in str(error)
        assert error.code == "refused"
        assert "14 or newer" in await _doctor(url)
        error = await _refused(f"{url}?sslmode=require")
        assert "the connection with TLS fails: look at sslmode" in str(error)
        assert error.code == "refused"
    with fake_postgres(None) as port:  # within the time of the address
        error = await _refused(f"postgresql://deck@127.0.0.1:{port}/deck?connect_timeout=2")
        assert error.code == "away"
    with fake_postgres(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        error = await _refused(f"postgresql://deck@127.0.0.1:{port}/deck")
        assert error.code == "away"


@pytest.mark.process
async def test_another_encoding_or_a_read_only_database_is_refused_before_anything_is_made(
    other: PostgresServer,
) -> None:
    _do(other.url(), "CREATE DATABASE old ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    error = await _refused(other.url("old"))
    assert "the encoding LATIN1" in str(error)
    assert "TEMPLATE template0" in str(error)
    url = other.create_database()
    error = await _refused(f"{url}&options=-c%20default_transaction_read_only%3Don")
    assert "default_transaction_read_only" in str(error)
    assert error.code == "refused"
    for each in (other.url("old"), url):
        assert _do(each, "SELECT to_regnamespace('quarterdeck')") == [(None,)]


@pytest.mark.process
async def test_rights_that_are_taken_away_are_told_and_the_hub_goes_on_when_they_are_back(
    other: PostgresServer,
) -> None:
    url = other.create_database()
    name = url.partition("/test")[2].partition("?")[0]
    _do(other.url(), "CREATE ROLE helper LOGIN")
    async with await PostgresJournal.open(url) as journal:
        await journal.append("a", [created_event()])
    guest = f"postgresql://helper@/test{name}?host={other.folder}"
    error = await _refused(guest)  # the tables are somebody else's
    assert error.code == "refused"
    assert "must own the schema quarterdeck" in str(error)
    grant = "GRANT ALL ON ALL TABLES IN SCHEMA quarterdeck TO helper"
    _do(url, f"GRANT USAGE ON SCHEMA quarterdeck TO helper; {grant}")
    async with await PostgresJournal.open(guest) as journal:
        await journal.append("a", [note("1")])
        _do(url, "REVOKE INSERT ON quarterdeck.events FROM helper")
        with pytest.raises(JournalError, match="permission denied for table events") as caught:
            await journal.append("a", [note("2")])
        assert caught.value.code == "refused"
        _do(url, "ALTER ROLE helper SET default_transaction_read_only = on; " + grant)
        _end_connections(url)
        with pytest.raises(JournalError, match="read-only") as caught:
            await journal.append("a", [note("2")])
        assert caught.value.code == "refused"
        _do(url, "ALTER ROLE helper RESET default_transaction_read_only")
        _end_connections(url)
        (stored,) = await journal.append("a", [note("2")], after=2)
        assert stored.position == 3


def _end_connections(url: str) -> None:
    _do(
        url,
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE application_name = 'quarterdeck' AND pid <> pg_backend_pid()",
    )


@pytest.mark.process
async def test_a_dump_that_is_restored_and_a_standby_that_takes_over_begin_a_new_epoch(
    postgres_url: str, other: PostgresServer
) -> None:
    async with await PostgresJournal.open(postgres_url) as journal:
        await journal.append("a", [created_event(), note("1")])
        first = journal.epoch
    url = other.create_database()
    await anyio.to_thread.run_sync(_dump_and_restore, postgres_url, url)
    async with await PostgresJournal.open(url) as journal:
        restored = journal.epoch
        assert restored.partition(".")[0] == first
        assert restored != first, "another system"
        assert journal.position == 2
        # The server ends, and comes back as a standby.
        await anyio.to_thread.run_sync(other.kill)
        (other.folder / "data" / "standby.signal").touch()
        await anyio.to_thread.run_sync(other.start)
        error = await _refused(url)
        assert "is on a standby" in str(error)
        assert error.code == "refused"
        assert "is on a standby" in await _doctor(url)
        with pytest.raises(JournalError, match="read-only") as caught:
            await journal.append("a", [note("2")])
        assert caught.value.code == "refused"
        _do(url, "SELECT pg_promote()")  # it has another timeline
        _end_connections(url)
        for call in (journal.append("a", [note("2")]), journal.summary("a")):
            with pytest.raises(JournalError) as caught:
                await call
            assert caught.value.code == "moved"
    async with await PostgresJournal.open(url) as journal:
        assert journal.epoch not in {first, restored}
        assert journal.epoch.partition(".")[0] == first
        (stored,) = await journal.append("a", [note("2")], after=2)
        assert stored.position == 3


def _dump_and_restore(source: str, target: str) -> None:
    programs = find_programs()
    dump = subprocess.run(
        [str(programs / "pg_dump"), "--schema=quarterdeck", source],
        capture_output=True,
        check=True,
        timeout=SECONDS,
    )
    subprocess.run(
        [str(programs / "psql"), "--quiet", "--set=ON_ERROR_STOP=1", target],
        input=dump.stdout,
        capture_output=True,
        check=True,
        timeout=SECONDS,
    )


async def test_without_the_extra_a_database_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.startswith("quarterdeck.journal.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UsageError, match=r"install quarterdeck\[postgres\]"):
        await open_journal(f"postgresql://deck:{PASSWORD}@host/deck")
    assert "install quarterdeck[postgres]" in await _doctor("postgresql://deck@host/deck")


@pytest.mark.process
def test_the_command_says_it_in_one_sentence_and_ends(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "QUARTERDECK_HOME": str(tmp_path / "home"),
        "QUARTERDECK_JOURNAL_URL": f"postgresql://deck:{PASSWORD}@127.0.0.1:1/deck",
    }
    done = subprocess.run(
        [sys.executable, "-m", "quarterdeck.cli", "serve", "--port", "0", "--no-runner"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode not in (0, -2)
    assert "postgresql://deck@127.0.0.1:1/deck: the database does not answer" in done.stderr
    assert "Traceback" not in done.stderr
    assert PASSWORD not in done.stdout + done.stderr
