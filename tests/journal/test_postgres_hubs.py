"""Several hubs on one journal in PostgreSQL: none holds up another, whatever happens to one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import anyio
import psycopg
import pytest

from quarterdeck.domain.errors import JournalError, StaleFence, StaleHead
from quarterdeck.journal.base import Journal
from quarterdeck.journal.postgres import PostgresJournal, refold, schema, signals, writer
from quarterdeck.journal.postgres import journal as engine
from quarterdeck.journal.postgres.address import Address
from quarterdeck.journal.views import VIEW_VERSION, fold
from quarterdeck.protocol.events import RunStarting, TurnEnded
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.protocol.usage import UsageBy
from quarterdeck.testing.contracts.journal.support import (
    SECONDS,
    created_event,
    note,
    prompt,
    take,
    texts,
)
from quarterdeck.testing.postgres import PostgresServer
from support.fake_pooler import fake_pooler
from support.journal_beside import journal_beside
from support.processes import Processes
from support.stalled_database import stalled_database
from support.waiting import until


def _query(url: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        return cursor.fetchall() if cursor.description else []


# --- versions ------------------------------------------------------------------------------------


async def test_a_hub_that_is_too_old_for_new_tables_stores_nothing_and_says_what_to_do(
    postgres_url: str,
) -> None:
    address = Address(postgres_url)
    breaking = (*schema.MIGRATIONS, ("ALTER TABLE quarterdeck.hubs ADD COLUMN x int", True))
    async with await PostgresJournal.open(postgres_url) as old:
        await old.append("a", [created_event()])
        with address.connect() as connection:
            schema.set_up(connection, address, breaking)
        for call in (
            old.append("a", [note("x")]),
            old.share("tokens", "one", b"value"),
            old.announce("hub1", "http://one"),
            old.take_lease("work", "hub1", 10),
            old.summary("a"),
        ):
            with anyio.fail_after(SECONDS), pytest.raises(JournalError) as caught:
                await call
            assert caught.value.code == "newer"
            assert "upgrade this hub, and start it again" in str(caught.value)
    for table in ("events", "shared", "hubs", "leases"):
        count = 1 if table == "events" else 0
        assert _query(postgres_url, f"SELECT count(*) FROM quarterdeck.{table}") == [(count,)]


async def test_a_migration_waits_for_the_transactions_that_write_and_the_next_ones_see_it(
    postgres_url: str,
) -> None:
    """Else a hub that looked just before would write to tables that it does not know."""
    address = Address(postgres_url)
    breaking = (*schema.MIGRATIONS, ("ALTER TABLE quarterdeck.hubs ADD COLUMN x int", True))
    done = anyio.Event()

    def migrate() -> None:
        with address.connect() as connection:
            schema.set_up(connection, address, breaking)

    async def run() -> None:
        await anyio.to_thread.run_sync(migrate)
        done.set()

    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    async with await PostgresJournal.open(postgres_url) as old, anyio.create_task_group() as tasks:
        with anyio.fail_after(SECONDS), address.connect() as other:
            schema.begin_writing(other, address)
            tasks.start_soon(run)
            await until(lambda: _query(postgres_url, waiting) == [(1,)])
            assert not done.is_set()
            other.execute("INSERT INTO quarterdeck.hubs VALUES ('one', '', 0)")
            other.execute("COMMIT")
            await done.wait()
        with pytest.raises(JournalError, match="upgrade this hub"):
            await old.append("a", [created_event()])


async def _fill(journal: Journal, session: str) -> None:
    await journal.append(session, [created_event("deck"), RunStarting(run="r1", machine="box")])
    done = TurnEnded(prompts=("p1",), failed=False, outcome="success", cost_usd=0.25)
    await journal.append(session, [prompt("p1"), done, *(note(str(n)) for n in range(1200))])


def _folded(url: str, session: str) -> int:
    (row,) = _query(url, f"SELECT folded FROM quarterdeck.sessions WHERE session = '{session}'")
    return int(row[0])


class Gate:
    """Holds the fold of the session `long` until it is opened, however often it is begun."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

        def wait_and_fold(view: Any, stored: Stored) -> Any:
            if stored.session == "long":
                self.reached.set()
                assert self.opened.wait(SECONDS)
            return fold(view, stored)

        monkeypatch.setattr(refold, "fold", wait_and_fold)


async def test_a_long_session_of_an_older_version_holds_up_no_other_append(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        await PostgresJournal.open(postgres_url) as one,
        await PostgresJournal.open(postgres_url) as other,
        anyio.create_task_group() as tasks,
    ):
        await _fill(one, "long")
        usage = await one.usage(UsageBy.SESSION)
        gate = Gate(monkeypatch)
        _query(
            postgres_url,
            "UPDATE quarterdeck.sessions SET folded = 0, view = '{}', run_machine = NULL",
        )
        _query(postgres_url, "UPDATE quarterdeck.usage SET turns = 99")
        stored: list[Stored] = []

        async def append() -> None:
            stored.extend(await one.append("long", [note("last")]))

        with anyio.fail_after(SECONDS):
            tasks.start_soon(append)
            await until(gate.reached.is_set)
            for table in ("ticket", "sessions"):  # nothing is locked meanwhile
                _query(postgres_url, f"SELECT 1 FROM quarterdeck.{table} FOR UPDATE NOWAIT")
            await other.append("b", [created_event()])
            await other.append("b", [note("goes on")], after=1)
            await other.take_over("long", "hub2")
            assert not stored
            gate.opened.set()
            await until(lambda: bool(stored))
        assert _folded(postgres_url, "long") == VIEW_VERSION
        assert await one.usage(UsageBy.SESSION) == usage
        view = await other.summary("long")
        assert view is not None
        assert (view.name, view.turns, view.head) == ("deck", 1, stored[0].seq)
        assert await other.has_prompt("long", "p1")
        query = "SELECT run_machine FROM quarterdeck.sessions WHERE session = 'long'"
        assert _query(postgres_url, query) == [("box",)]


async def test_appends_that_are_refused_fold_nothing(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hub of another version that no longer owns a session must not fold it back."""
    async with await PostgresJournal.open(postgres_url) as journal:
        await _fill(journal, "long")
        fence = await journal.raise_fence("box", "hub1")
        Gate(monkeypatch)  # never opened
        _query(postgres_url, f"UPDATE quarterdeck.sessions SET folded = {VIEW_VERSION + 1}")
        with anyio.fail_after(SECONDS):
            with pytest.raises(StaleHead):
                await journal.append("long", [note("x")], after=1)
            with pytest.raises(StaleFence):
                await journal.append("long", [note("x")], fence=fence - 1)
        assert _folded(postgres_url, "long") == VIEW_VERSION + 1


@pytest.mark.parametrize("theirs", [VIEW_VERSION - 1, VIEW_VERSION + 1])
async def test_hubs_of_two_versions_write_to_one_session_in_turn(
    postgres_url: str, processes: Processes, theirs: int
) -> None:
    async with await PostgresJournal.open(postgres_url) as ours:
        await _fill(ours, "a")
        usage = await ours.usage(UsageBy.SESSION)
        async with journal_beside(postgres_url, processes, fold=theirs) as other:
            for number in range(2):
                assert await other.append("a", f"theirs {number}") == 1205 + 2 * number
                assert _folded(postgres_url, "a") == theirs
                (stored,) = await ours.append("a", [note(f"ours {number}")])
                assert stored.position == 1206 + 2 * number
                assert _folded(postgres_url, "a") == VIEW_VERSION
            assert await other.view("a") == {"name": "deck", "turns": 1}
        view = await ours.summary("a")
        assert view is not None
        assert (view.name, view.turns, view.head) == ("deck", 1, 1208)
        assert await ours.usage(UsageBy.SESSION) == usage
        assert texts(await ours.read("a", after=1204)) == [
            "theirs 0", "ours 0", "theirs 1", "ours 1"
        ]  # fmt: skip


async def test_of_two_hubs_that_start_with_old_views_one_folds_them(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await PostgresJournal.open(postgres_url) as journal:
        for session in ("long", "b", "runs"):
            await _fill(journal, session)
        await journal.append("b", [RunStarting(run="r2", machine="gone")])
        await journal.announce("hub1", "http://one")
        await journal.take_over("runs", "hub1")
    _query(postgres_url, "UPDATE quarterdeck.sessions SET folded = 0")
    monkeypatch.setattr(engine, "id", lambda _: 7, raising=False)  # as in two forks of a process
    gate = Gate(monkeypatch)
    opened: list[PostgresJournal] = []

    async def open_one() -> None:
        opened.append(await PostgresJournal.open(postgres_url))

    try:
        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(open_one)
                await until(gate.reached.is_set)
                await open_one()  # it does not wait, and folds nothing
                assert len(opened) == 1
                assert _folded(postgres_url, "long") == 0
                gate.opened.set()
        assert len(opened) == 2
        folded = {name: _folded(postgres_url, name) for name in ("long", "b", "runs")}
        # What runs at a hub that is there is left to it: it may be of the older version.
        assert folded == {"long": VIEW_VERSION, "b": VIEW_VERSION, "runs": 0}
        holders = _query(postgres_url, "SELECT holder FROM quarterdeck.leases WHERE name='refold'")
        assert holders == [("",)], "it was given back"
    finally:
        gate.opened.set()
        for each in opened:
            await each.close()


# --- connections ---------------------------------------------------------------------------------

_POISON = """
    CREATE FUNCTION quarterdeck.poison() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF position('poison'::bytea IN NEW.json) > 0 THEN
        PERFORM pg_terminate_backend(pg_backend_pid());
        PERFORM pg_sleep(60);
      END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER poison BEFORE INSERT ON quarterdeck.events
      FOR EACH ROW EXECUTE FUNCTION quarterdeck.poison();
"""


async def test_an_append_that_breaks_the_connection_each_time_fails_alone(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took all others with it, and was tried again for ever."""
    monkeypatch.setattr(writer, "RETRY_SECONDS", 0.01)
    async with await PostgresJournal.open(postgres_url) as journal:
        await journal.append("a", [created_event()])
        _query(postgres_url, _POISON)
        outcomes: dict[str, str] = {}

        async def append(session: str, text: str) -> None:
            try:
                await journal.append(session, [note(text)])
                outcomes[session] = "stored"
            except JournalError as error:
                outcomes[session] = str(error)

        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as tasks:
                for number in range(9):
                    tasks.start_soon(append, f"s{number}", "poison" if number == 4 else "fine")
        assert "nothing was stored: look at the log of the server" in outcomes.pop("s4")
        assert set(outcomes.values()) == {"stored"}
        assert await journal.head("s4") == 0
        (stored,) = await journal.append("a", [note("goes on")], after=1)
        assert stored.position == 10


async def test_a_connection_that_never_lasts_is_given_up_at_the_deadline(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "AWAY_SECONDS", 0.2)
    monkeypatch.setattr(writer, "MOST_LOSSES", 10**9)
    async with await PostgresJournal.open(postgres_url) as journal:
        _query(postgres_url, _POISON)
        with anyio.fail_after(SECONDS), pytest.raises(JournalError) as caught:
            await journal.append("a", [note("poison")])
        assert caught.value.code == "away"


async def test_an_error_of_our_own_on_the_way_back_leaves_no_append_waiting(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = schema.identity
    errors = [ValueError("odd")]

    def identity(connection: Any) -> str:
        if errors:
            raise errors.pop()
        return real(connection)

    async with await PostgresJournal.open(postgres_url) as journal:
        await journal.append("a", [created_event()])
        monkeypatch.setattr(writer, "identity", identity)
        _query(
            postgres_url,
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE application_name = 'quarterdeck' AND query LIKE 'COMMIT%'",
        )
        with anyio.fail_after(SECONDS):
            with pytest.raises(JournalError, match="ValueError: odd"):
                await journal.append("a", [note("1")])
            await journal.append("a", [note("2")], after=1)
        assert "the journal's writer failed" in caplog.text


async def test_a_hub_that_is_stopped_while_it_holds_the_ticket_is_put_out_of_the_way(
    postgres_url: str, processes: Processes
) -> None:
    """The server ends its transaction; when it goes on, it stores its event again, once."""
    async with (
        await PostgresJournal.open(postgres_url) as journal,
        journal_beside(postgres_url, processes) as other,
    ):
        await journal.append("a", [created_event()])
        await other.append_and_stop("b", "late")
        with anyio.fail_after(SECONDS):
            (stored,) = await journal.append("a", [note("goes on")], after=1)
        assert stored.position == 2
        assert await other.go_on() == 3
        assert texts(await take(journal.follow({"b": 0}), 1)) == ["late"]
        assert _query(postgres_url, "SELECT count(*) FROM quarterdeck.events") == [(3,)]


@pytest.mark.parametrize("pooled", [False, True])
async def test_a_hub_that_is_stopped_while_it_sends_a_statement_is_put_out_of_the_way(
    postgres: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch, pooled: bool
) -> None:
    """The server waits for the rest of a message, and has the ticket locked."""
    monkeypatch.setattr(schema, "POOLED_MS", 1500)
    name = postgres_url.partition("@/")[2].partition("?")[0]
    async with AsyncExitStack() as stack:
        journal = await stack.enter_async_context(await PostgresJournal.open(postgres_url))
        stall, folder = await stack.enter_async_context(stalled_database(postgres.folder))
        url = f"postgresql://quarterdeck@/{name}?host={folder}"
        if pooled:
            url = stack.enter_context(fake_pooler(folder, name, by_transaction=True))
        other = await stack.enter_async_context(await PostgresJournal.open(url))
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stored: list[Stored] = []

        async def append() -> None:
            stored.extend(await other.append("b", [note("x" * 500_000)]))

        with anyio.fail_after(SECONDS):
            stall.after(100_000)
            tasks.start_soon(append)
            await stall.stalled.wait()
            await journal.append("a", [note("goes on")])
            await until(lambda: bool(stored))
        assert [stored[0].position, len(await journal.read("b"))] == [2, 1]


# --- signals -------------------------------------------------------------------------------------

_LISTENING = (
    "FROM pg_stat_activity WHERE query = 'LISTEN quarterdeck' AND datname = current_database()"
)


async def test_another_hub_is_woken_by_a_signal_long_before_it_looks(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "POLL_SECONDS", 3600.0)
    async with (
        await PostgresJournal.open(postgres_url) as one,
        await PostgresJournal.open(postgres_url) as other,
    ):
        follower = other.follow(after=0)
        with anyio.fail_after(SECONDS):
            await until(lambda: _query(postgres_url, f"SELECT count(*) {_LISTENING}") == [(2,)])
            for number in range(5):
                (stored,) = await one.append("a", [note(str(number))])
                assert await take(follower, 1) == [stored]


async def test_a_hub_that_gets_no_signals_looks_by_itself(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(signals, "RETRY_SECONDS", 3600.0)  # it does not listen again
    async with (
        await PostgresJournal.open(postgres_url) as one,
        await PostgresJournal.open(postgres_url) as other,
    ):
        follower = other.follow(after=0)
        with anyio.fail_after(SECONDS):
            await until(lambda: _query(postgres_url, f"SELECT count(*) {_LISTENING}") == [(2,)])
            _query(postgres_url, f"SELECT pg_terminate_backend(pid, 5000) {_LISTENING}")
            for number in range(3):
                (stored,) = await one.append("a", [note(str(number))])
                assert await take(follower, 1) == [stored]
            assert _query(postgres_url, f"SELECT count(*) {_LISTENING}") == [(0,)]


class Watched:
    """What the connections of this process execute: which, in which state, and how often."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.notified: list[tuple[int, object]] = []
        self.writers: set[int] = set()
        self.gate = threading.Event()
        real: Callable[..., Any] = psycopg.Cursor.execute

        def execute(cursor: Any, query: object, *values: object, **named: object) -> object:
            text = query.decode() if isinstance(query, bytes) else str(query)
            info = cursor.connection.info
            if "INSERT INTO quarterdeck.events" in text:
                self.writers.add(info.backend_pid)
            if "NOTIFY" in text:
                self.notified.append((info.backend_pid, info.transaction_status))
                assert self.gate.wait(SECONDS)
            return real(cursor, query, *values, **named)

        monkeypatch.setattr(psycopg.Cursor, "execute", execute)


async def test_signals_are_outside_of_transactions_and_one_is_for_many_commits(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(monkeypatch)
    async with await PostgresJournal.open(postgres_url) as journal:
        with anyio.fail_after(SECONDS):
            await journal.append("a", [created_event()])
            await until(lambda: len(watched.notified) == 1)
            for number in range(50):  # the appends do not wait for the signal
                await journal.append("a", [note(str(number))])
            assert len(watched.notified) == 1
            watched.gate.set()
            await until(lambda: len(watched.notified) == 2)
    # One for the first commit, one for the fifty others, one that ends our own listener.
    assert len(watched.notified) <= 3
    assert watched.writers
    for process, status in watched.notified:
        assert process not in watched.writers
        assert status == psycopg.pq.TransactionStatus.IDLE
