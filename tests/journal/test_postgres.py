"""The journal in PostgreSQL: what the contract suite does not ask of every engine."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.cli.hub.backup import run_backup, run_restore
from quarterdeck.cli.hub.journal_findings import look_at_journal
from quarterdeck.cli.hub.journals import run_copy
from quarterdeck.cli.local.findings import Level
from quarterdeck.config.settings import JournalSettings, Settings
from quarterdeck.domain.errors import ConfigError, JournalError, StaleFence, StaleHead, UsageError
from quarterdeck.journal import SqliteJournal, open_journal, transfer
from quarterdeck.journal.base import Journal, Owner
from quarterdeck.journal.chain import Check
from quarterdeck.journal.postgres import PostgresJournal, diagnosis, rows, schema, staging, writer
from quarterdeck.journal.postgres import journal as engine
from quarterdeck.journal.postgres.address import Address, explained_errors
from quarterdeck.journal.postgres.rows import PostgresGroup
from quarterdeck.journal.postgres.shared_records import NOW
from quarterdeck.journal.views import VIEW_VERSION
from quarterdeck.protocol.events import RunStarting, Said, TurnEnded
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.protocol.usage import UsageBy
from quarterdeck.service.journal_place import database_password, open_configured
from quarterdeck.testing.contracts.journal.support import (
    SECONDS,
    answer_event,
    ask_event,
    created_event,
    note,
    prompt,
    read_all,
    take,
    texts,
)
from quarterdeck.testing.postgres import PostgresServer
from support.fake_pooler import fake_pooler
from support.pgbouncer import real_pooler


def _query(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        return cursor.fetchall() if cursor.description else []


async def _fill(journal: Journal) -> None:
    """A bit of everything."""
    await journal.append("a", [created_event("deck"), RunStarting(run="r1", machine="box")])
    await journal.append("a", [prompt("p1"), ask_event("q1"), answer_event("q1"), ask_event("q2")])
    done = TurnEnded(prompts=("p1",), failed=False, outcome="success", cost_usd=0.25)
    await journal.append("a", [done, note("ä" * 900_000)], snapshot=b"\x00state")
    await journal.append("gone", [created_event(), ask_event("q3"), answer_event("q3"), note("x")])
    await journal.delete("gone", by="ann")
    await journal.append("b", [note(str(number)) for number in range(700)])
    await journal.share("tokens", "one", b"\x00value")


async def _everything(journal: Journal) -> list[Stored]:
    found: list[Stored] = []
    follower = journal.follow(after=0)
    while follower.behind:
        found += await anext(follower)
    return found


async def _facts(journal: Journal) -> list[object]:
    """What two journals with the same content have in common."""
    return [
        await _everything(journal),
        await journal.summaries(archived=None),
        await journal.open_asks(),
        await journal.find_ask("q1"),
        await journal.links(),
        await journal.usage(UsageBy.SESSION),
        await journal.latest_snapshot("a"),
        await journal.has_prompt("a", "p1"),
        await journal.shared_values("tokens"),
        journal.position,
    ]


async def copy(source: object, target: object, *, json_output: bool = False) -> None:
    def call() -> int:
        return run_copy(str(source), str(target), json_output=json_output)

    assert await anyio.to_thread.run_sync(call) == 0


async def test_a_journal_is_copied_to_a_database_and_back(
    tmp_path: Path, postgres_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    first, last = tmp_path / "first.db", tmp_path / "last.db"
    async with await open_journal(first) as journal:
        await _fill(journal)
        facts, epoch = await _facts(journal), journal.epoch
    await copy(first, postgres_url)
    assert "found the same" in capfd.readouterr().err
    async with await open_journal(postgres_url) as journal:
        assert await _facts(journal) == facts
        assert journal.epoch.startswith(f"{epoch}.")
        (more,) = await journal.append("new", [created_event("after it")])
        assert more.position == journal.position
        await journal.append("a", [answer_event("q2")])
        check = Check(journal.epoch)
        check.add(await journal.links())
        assert check.result().good
        facts = await _facts(journal)
    with pytest.raises(UsageError, match="not empty"):
        await copy(first, postgres_url)
    await copy(postgres_url, last, json_output=True)
    assert '"events":' in capfd.readouterr().out
    async with await SqliteJournal.open(last) as journal:
        assert await _facts(journal) == facts
        await journal.append("a", [note("it goes on")], after=await journal.head("a"))
    for source, target in ((last, last), (tmp_path / "none.db", last), ("mysql://x", last)):
        with pytest.raises(UsageError):
            await copy(source, target)
    _query(postgres_url, "UPDATE quarterdeck.chain SET seal = digest")
    with pytest.raises(JournalError, match="was changed"):
        await copy(postgres_url, tmp_path / "other.db")


async def test_a_journal_that_a_hub_uses_is_neither_copied_nor_copied_to(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(source: object, target: object, sentence: str) -> None:
        with pytest.raises(JournalError, match=sentence) as caught:
            await copy(source, target)
        assert caught.value.code == "busy"

    file = tmp_path / "journal.db"
    async with await open_journal(file) as journal:
        await journal.append("a", [note("1")])
        await refused(file, postgres_url, "in use by another process")
        await refused(postgres_url, file, "in use by another process")
    stop_all = "in use by the hub http://one.*: stop all of its hubs"
    async with await open_journal(postgres_url) as journal:
        await journal.announce("hub1", "http://one")
        await refused(file, postgres_url, stop_all)
        await refused(postgres_url, tmp_path / "empty.db", stop_all)
        assert journal.position == 0
        await journal.forget_hub("hub1")
        await journal.announce("hub2", "http://killed")
    _query(postgres_url, "UPDATE quarterdeck.hubs SET at = at - 21000")

    real = transfer._digest

    def digest(*values: Any) -> str:
        row = f"('one', 'http://one', {NOW}) ON CONFLICT DO NOTHING"
        _query(postgres_url, f"INSERT INTO quarterdeck.hubs VALUES {row}")
        return real(*values)

    monkeypatch.setattr(transfer, "_digest", digest)
    await refused(file, postgres_url, stop_all)  # it came meanwhile
    assert _query(postgres_url, "SELECT count(*) FROM quarterdeck.events") == [(0,)]
    monkeypatch.undo()
    _query(postgres_url, "DELETE FROM quarterdeck.hubs WHERE hub = 'one'")
    await copy(file, postgres_url)
    assert _query(postgres_url, "SELECT count(*) FROM quarterdeck.events") == [(1,)]


async def test_a_large_line_is_in_a_table_of_its_own_and_read_as_any_other(
    postgres_url: str,
) -> None:
    async with await PostgresJournal.open(postgres_url) as journal:
        line = Raw(b'{"t":"%b"}' % (b"x" * 2_000_000))
        await journal.append("a", [note("1"), Said(run="r", number=1, line=line), note("3")])
        await journal.append("b", [note("of another")])
        stored = await read_all(journal, "a")
        assert [len(each.json) > 2_000_000 for each in stored] == [False, True, False]
        assert _query(postgres_url, "SELECT position FROM quarterdeck.blobs") == [(2,)]
        assert (await journal.sizes())["a"] == sum(len(each.json) for each in stored)
        raw = await journal.raw_events("a", after=1)
        assert raw is not None
        assert raw.last == 2
        await journal.delete("a", by="ann")
        assert _query(postgres_url, "SELECT position FROM quarterdeck.blobs") == []
        assert journal.size() > 0


async def test_a_server_that_is_killed_loses_nothing_and_doubles_nothing(
    postgres: PostgresServer, postgres_url: str
) -> None:
    async with (
        await PostgresJournal.open(postgres_url) as journal,
        await PostgresJournal.open(postgres_url) as other,
    ):
        follower = other.follow(after=0)
        acknowledged: list[Stored] = []

        async def write(session: str) -> None:
            for number in range(60):
                acknowledged.extend(await journal.append(session, [note(f"{session}{number}")]))

        with anyio.fail_after(SECONDS * 2):
            async with anyio.create_task_group() as group:
                for session in "abcd":
                    group.start_soon(write, session)
                for _ in range(3):
                    await anyio.sleep(0.05)
                    await anyio.to_thread.run_sync(postgres.kill)
                    await anyio.to_thread.run_sync(postgres.start)
            stored = await _everything(journal)
            assert sorted(stored, key=lambda each: each.position) == sorted(
                acknowledged, key=lambda each: each.position
            )
            assert [each.position for each in stored] == list(range(1, 241))
            for session in "abcd":
                of_one = [each for each in stored if each.session == session]
                assert texts(of_one) == [f"{session}{number}" for number in range(60)]
            assert await take(follower, 240) == stored


def cut_next_commit(monkeypatch: pytest.MonkeyPatch, *, stored: bool) -> list[int]:
    """The connection breaks right after, or right before, the next commit arrives."""
    real: Any = psycopg.Connection.execute
    cut: list[int] = []

    def execute(self: Any, query: object, *values: object, **named: object) -> object:
        if query == "COMMIT" and not cut:
            cut.append(1)
            if stored:
                real(self, "COMMIT")
            self.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return real(self, query, *values, **named)

    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    return cut


@pytest.mark.parametrize("stored", [True, False])
async def test_a_commit_without_an_answer_is_looked_for_before_it_is_tried_again(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    async with await PostgresJournal.open(postgres_url) as journal:
        await journal.append("a", [created_event()])
        cut = cut_next_commit(monkeypatch, stored=stored)
        with anyio.fail_after(SECONDS):
            (found,) = await journal.append("a", [note("once")], after=1)
        assert cut
        assert texts(await journal.read("a")) == ["once"]
        assert await journal.read("a", after=1) == [found]
        (then,) = await journal.append("a", [note("then")], after=2)
        assert then.position == 3


@pytest.mark.parametrize("stored", [True, False])
async def test_so_is_one_that_changes_what_hubs_share(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    """Else a hub would learn that another one was faster, which was itself."""
    async with await PostgresJournal.open(postgres_url) as journal:
        await journal.append("a", [created_event()])
        with anyio.fail_after(SECONDS):
            for number in range(2):
                cut = cut_next_commit(monkeypatch, stored=stored)
                before = await journal.shared_value("tokens", "one")
                known = 0 if before is None else before.version
                values = {"one": bytes([number]), "two": None}
                version = await journal.share_all("tokens", values, expected={"one": known})
                value = await journal.shared_value("tokens", "one")
                assert value is not None
                assert (cut, value.version, value.value) == ([1], version, bytes([number]))
                monkeypatch.undo()
            cut = cut_next_commit(monkeypatch, stored=stored)
            fence = await journal.raise_fence("box", "hub1", after=0)
            owner = await journal.machine_owner("box")
            assert cut
            assert owner == Owner(hub="hub1", fence=fence)
            monkeypatch.undo()
            cut = cut_next_commit(monkeypatch, stored=stored)
            fence = await journal.take_over("a", "hub1")
            assert cut
            assert await journal.owner("a") == Owner(hub="hub1", fence=fence)
            monkeypatch.undo()
            cut = cut_next_commit(monkeypatch, stored=stored)
            lease = await journal.take_lease("work", "hub1", 60)
            assert cut
            assert lease is not None
            await journal.append("a", [note("with it")], lease=lease)


async def test_a_hub_that_is_stopped_in_a_transaction_holds_nobody_up(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as stopped:
        async with await PostgresJournal.open(postgres_url) as journal:
            await journal.append("a", [created_event()])
            stopped.execute(
                "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 200;"
                "SELECT * FROM quarterdeck.begin_group('{}', '{a}', '{0}', 0)"
            )
            with anyio.fail_after(SECONDS):
                await journal.append("a", [note("goes on")], after=1)
            assert texts(await journal.read("a")) == ["goes on"]
        with pytest.raises(psycopg.Error):
            stopped.execute("COMMIT")


@pytest.mark.parametrize("known", [False, True])
async def test_no_run_starts_on_a_machine_that_another_hub_takes_for_the_first_time(
    postgres_url: str, known: bool
) -> None:
    """There was no row to lock: the run was stored after its machine's new hub had looked."""
    begin = [created_event(), RunStarting(run="r1", machine="box")]
    async with await open_journal(postgres_url) as journal, anyio.create_task_group() as tasks:
        if known:  # a run was begun there once, before it had a runner
            await journal.append("b", begin, after=0, claim="one")
            assert await journal.machine_owner("box") is None
            assert await journal.machine_owners() == {}
        refused = anyio.Event()

        async def start() -> None:
            with pytest.raises(StaleFence):
                await journal.append("a", begin, after=0, claim="one")
            refused.set()

        connection = await psycopg.AsyncConnection.connect(postgres_url)
        async with connection:
            await connection.execute(
                "INSERT INTO quarterdeck.machines VALUES ('box', 'other', 5)"
                " ON CONFLICT (machine) DO UPDATE SET hub = 'other', generation = 5"
            )
            tasks.start_soon(start)
            query = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            with anyio.fail_after(SECONDS):
                while _query(postgres_url, query) == [(0,)]:  # noqa: ASYNC110 - it waits for us
                    await anyio.sleep(0.01)
            assert not refused.is_set()
        with anyio.fail_after(SECONDS):
            await refused.wait()
        assert await journal.summary("a") is None


async def test_a_database_that_is_away_is_told_and_waited_for(
    postgres: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (writer, engine):
        monkeypatch.setattr(module, "AWAY_SECONDS", 0.3)
    async with await PostgresJournal.open(postgres_url) as journal:
        await journal.append("a", [created_event()])
        await anyio.to_thread.run_sync(postgres.kill)
        try:
            for call in (journal.append("a", [note("x")]), journal.summary("a")):
                with pytest.raises(JournalError) as caught:
                    await call
                assert caught.value.code == "away"
            with pytest.raises(JournalError) as opening:
                await PostgresJournal.open(postgres_url)
            assert opening.value.code == "away"
        finally:
            await anyio.to_thread.run_sync(postgres.start)
        with anyio.fail_after(SECONDS):
            await journal.append("a", [note("2")], after=1)
        assert texts(await journal.read("a")) == ["2"]


async def test_a_wrong_address_is_told_without_the_password(
    postgres: PostgresServer, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    folder = postgres.folder
    wrong = {
        f"postgresql://nobody:sesame@/postgres?host={folder}": "away",
        f"postgresql://quarterdeck:sesame@/missing?host={folder}": "away",
        "postgresql://deck:sesame@127.0.0.1:1/deck": "away",
    }
    for url in wrong:
        with pytest.raises(JournalError) as caught:
            await PostgresJournal.open(url)
        assert "sesame" not in str(caught.value)
        assert caught.value.code in {"away", "refused"}
    for url in ("mysql://deck:sesame@host/deck", "postgresql://deck:sesame@host:port:1/x y=%%"):
        with pytest.raises(UsageError) as refused:
            await PostgresJournal.open(url)
        assert "sesame" not in str(refused.value)
    address = Address("postgresql://deck:sesame@db.example:5433/deck?sslmode=require")
    assert str(address) == "postgresql://deck@db.example:5433/deck"
    assert "sesame" not in repr(address)
    assert "sesame" not in caplog.text


async def test_a_user_without_rights_is_told_what_it_needs(
    postgres: PostgresServer, postgres_url: str
) -> None:
    _query(postgres_url, "DROP ROLE IF EXISTS guest")
    _query(postgres_url, "CREATE ROLE guest LOGIN")
    database = postgres_url.rpartition("/test")[2].partition("?")[0]
    url = f"postgresql://guest@/test{database}?host={postgres.folder}"
    with pytest.raises(JournalError, match="schema quarterdeck") as caught:
        await PostgresJournal.open(url)
    assert caught.value.code == "refused"
    _query(postgres_url, "CREATE SCHEMA quarterdeck AUTHORIZATION guest")
    async with await PostgresJournal.open(url) as journal:
        await journal.append("a", [created_event()])
        assert await journal.head("a") == 1


async def test_a_database_of_another_program_or_a_newer_one_is_refused(postgres_url: str) -> None:
    _query(postgres_url, "CREATE SCHEMA quarterdeck")
    _query(postgres_url, "CREATE TABLE quarterdeck.events (x int)")
    with pytest.raises(JournalError) as caught:
        await PostgresJournal.open(postgres_url)
    assert caught.value.code == "foreign"
    _query(postgres_url, "DROP SCHEMA quarterdeck CASCADE")
    async with await PostgresJournal.open(postgres_url):
        pass
    _query(postgres_url, "UPDATE quarterdeck.journal SET version = 99")
    async with await PostgresJournal.open(postgres_url):
        pass  # it only added something
    _query(postgres_url, "UPDATE quarterdeck.journal SET compatible = 99")
    with pytest.raises(JournalError) as caught:
        await PostgresJournal.open(postgres_url)
    assert caught.value.code == "newer"


async def test_an_old_hub_goes_on_while_a_new_one_migrates(postgres_url: str) -> None:
    address = Address(postgres_url)
    async with await PostgresJournal.open(postgres_url) as old:
        await old.append("a", [created_event()])
        more = (*schema.MIGRATIONS, ("ALTER TABLE quarterdeck.events ADD COLUMN x int", False))
        with address.connect() as connection:
            schema.set_up(connection, address, more)
        await old.append("a", [note("goes on")], after=1)
        assert texts(await old.read("a")) == ["goes on"]
        with address.connect() as connection:
            epoch = schema.set_up(connection, address, more)
        assert epoch == old.epoch


async def test_a_migration_does_not_wait_for_a_backup_while_writers_wait_for_it(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "MIGRATION_MS", 200)
    address = Address(postgres_url)
    more = (*schema.MIGRATIONS, ("ALTER TABLE quarterdeck.events ADD COLUMN x int", False))
    async with await PostgresJournal.open(postgres_url) as journal:
        with psycopg.connect(postgres_url) as backup:
            backup.execute("SELECT count(*) FROM quarterdeck.events")
            with (
                address.connect() as connection,
                pytest.raises(JournalError, match="such as a backup: try again") as caught,
                explained_errors(address),
            ):
                schema.set_up(connection, address, more)
            assert caught.value.code == "busy"
            await journal.append("a", [created_event()])
        with address.connect() as connection:
            schema.set_up(connection, address, more)


async def test_views_of_another_version_are_folded_again(postgres_url: str) -> None:
    async with await PostgresJournal.open(postgres_url) as journal:
        await _fill(journal)
        facts = await _facts(journal)
    old = "UPDATE quarterdeck.sessions SET folded = 0, view = '{}', run_machine = NULL"
    _query(postgres_url, f"{old} WHERE NOT deleted")
    _query(postgres_url, "UPDATE quarterdeck.usage SET turns = 99 WHERE turns > 0")
    async with await PostgresJournal.open(postgres_url) as journal:
        assert await _facts(journal) == facts
        # One of a version beside this one: for a reader, and then for a writer.
        _query(postgres_url, f"{old} WHERE session = 'a'")
        view = await journal.summary("a")
        assert view is not None
        assert view.name == "deck"
        await journal.append("a", [note("x")], after=view.head)
        query = "SELECT folded FROM quarterdeck.sessions WHERE session = 'a'"
        assert _query(postgres_url, query) == [(VIEW_VERSION,)]
        assert await journal.raise_fence("box", "hub1") == await journal.fence("a")


async def test_another_database_has_another_epoch(postgres_url: str) -> None:
    async with await PostgresJournal.open(postgres_url) as journal:
        await journal.append("a", [created_event()])
        epoch = journal.epoch
        _query(postgres_url, "UPDATE quarterdeck.journal SET database = 'the one before'")
    async with await PostgresJournal.open(postgres_url) as journal:
        assert journal.epoch.partition(".")[0] == epoch
        assert journal.epoch != epoch
        await journal.append("a", [note("x")])
        journal._writer._identity = "the one before"
        _query(
            postgres_url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'quarterdeck' AND pid <> pg_backend_pid()",
        )
        for call in (journal.append("a", [note("y")]), journal.summary("a")):
            with pytest.raises(JournalError) as caught:
                await call
            assert caught.value.code == "moved"


async def test_one_bad_append_does_not_fail_those_beside_it(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = rows.write_group
    deadlocks: list[int] = []

    def write(connection: Any, group: PostgresGroup) -> None:
        if "bad" in group.sessions:
            raise psycopg.errors.DiskFull("no room")
        if not deadlocks:
            deadlocks.append(1)
            raise psycopg.errors.DeadlockDetected("try again")
        real(connection, group)

    monkeypatch.setattr(staging, "write_group", write)
    async with await PostgresJournal.open(postgres_url) as journal:
        failed: list[str] = []

        async def append(session: str) -> None:
            try:
                await journal.append(session, [note("x")], after=0)
            except JournalError as error:
                failed.append(f"{session} {error.code}")

        async with anyio.create_task_group() as group:
            for session in ("a", "bad", "b", "c"):
                group.start_soon(append, session)
        assert failed == ["bad full"]
        assert deadlocks
        assert await journal.head("c") == 1
        with pytest.raises(StaleHead):
            await journal.append("c", [note("x")], after=0)


async def test_a_backup_of_a_database_is_restored_into_an_empty_one(
    postgres: PostgresServer, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "policy.toml").write_text("# kept")
    monkeypatch.setenv("QUARTERDECK_HOME", str(home))
    monkeypatch.setenv("QUARTERDECK_JOURNAL_URL", postgres_url)
    file = tmp_path / "hub.backup"
    async with await PostgresJournal.open(postgres_url) as journal:
        await _fill(journal)
        facts, epoch = await _facts(journal), journal.epoch
        assert await anyio.to_thread.run_sync(run_backup, file) == 0  # it is in use meanwhile

    def put_back() -> int:
        return run_restore(file, check_only=False)

    with pytest.raises(UsageError, match="not empty"):
        await anyio.to_thread.run_sync(put_back)
    _query(postgres_url, "DROP SCHEMA quarterdeck CASCADE")
    assert await anyio.to_thread.run_sync(put_back) == 0
    async with await open_journal(postgres_url) as again:
        assert await _facts(again) == facts
        assert again.epoch.partition(".")[0] == epoch
        assert again.epoch != epoch
    assert not list(home.glob(".restore-*"))


async def test_the_password_of_the_configuration_is_in_a_file(
    postgres_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    settings = JournalSettings(url=postgres_url, password_file=str(file))
    for text, good in (("sesame\n", True), ("", False), ("a\0b", False)):
        file.write_text(text)
        if good:
            assert database_password(settings) == "sesame"
            async with await open_configured(tmp_path, settings) as journal:
                assert journal.position == 0
        else:
            with pytest.raises(ConfigError):
                database_password(settings)
    file.unlink()
    with pytest.raises(ConfigError, match="cannot be read"):
        database_password(settings)
    with pytest.raises(UsageError):
        JournalSettings(password_file=str(file))
    async with await open_configured(tmp_path, JournalSettings()) as journal:
        assert isinstance(journal, SqliteJournal)


async def test_the_doctor_looks_at_the_database(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(url: str) -> dict[str, Level]:
        settings = Settings(journal=JournalSettings(url=url))
        return {finding.text: finding.level for finding in look_at_journal(settings)}

    assert list(look_at_journal(Settings())) == []
    async with await PostgresJournal.open(postgres_url):
        first = await anyio.to_thread.run_sync(found, postgres_url)
    assert any("PostgreSQL 1" in text for text in first)
    assert first["fsync is off: a power failure can lose everything"] is Level.PROBLEM
    seen = diagnosis.diagnose(postgres_url)
    assert (seen.schema, seen.pooler, seen.standbys) == (len(schema.MIGRATIONS), "", "")
    assert (seen.oldest, seen.readable) == (1, False)
    odd = replace(
        seen,
        latency_ms=99.0,
        clock_ms=9e4,
        schema=99,
        pooler="transaction",
        fsync=True,
        synchronous_commit="local",
        readable=True,
    )
    monkeypatch.setattr(diagnosis, "diagnose", lambda *_: odd)
    assert list(found(postgres_url).values()).count(Level.WARNING) == 6
    monkeypatch.setattr(diagnosis, "diagnose", lambda *_: replace(odd, oldest=99))
    levels = found(postgres_url)
    assert any("store nothing" in text and levels[text] is Level.PROBLEM for text in levels)
    monkeypatch.undo()
    (away,) = look_at_journal(Settings(journal=JournalSettings(url="postgresql://x@127.0.0.1:1/x")))
    assert away.level is Level.PROBLEM


@pytest.mark.process
@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize("pooler", [fake_pooler, real_pooler], ids=["ours", "pgbouncer"])
async def test_two_hubs_work_behind_a_pooler_and_the_doctor_names_it(
    postgres: PostgresServer,
    postgres_url: str,
    mode: str,
    pooler: Callable[..., AbstractContextManager[str]],
) -> None:
    name = postgres_url.partition("@/")[2].partition("?")[0]
    by_transaction = mode == "transaction"
    with pooler(postgres.folder, name, by_transaction=by_transaction) as url:

        def look() -> list[str]:
            settings = Settings(journal=JournalSettings(url=url))
            return [finding.text for finding in look_at_journal(settings)]

        async with await PostgresJournal.open(url) as one, await PostgresJournal.open(url) as other:
            follower = other.follow(after=0)
            with anyio.fail_after(SECONDS):
                for number in range(12):  # statements are repeated, and would be prepared
                    await one.append("a", [note(str(number))])
                    await other.append("b", [prompt(f"p{number}"), ask_event(f"q{number}")])
                    assert await one.head("a") == number + 1
                    assert len(await other.read("a")) == number + 1
                assert len(await take(follower, 36)) == 36
                texts_ = await anyio.to_thread.run_sync(look)
        assert any(f"in {mode} mode is between" in text for text in texts_)
