"""The journal's file: whose it is, what becomes of it on a full disk, and when it is damaged."""

from __future__ import annotations

import gc
import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from msgspec import Raw

from quarterdeck.domain.errors import JournalError
from quarterdeck.journal import SqliteJournal, fold_all
from quarterdeck.journal.sqlite.file import APPLICATION, MIGRATIONS, connect, set_up
from quarterdeck.journal.sqlite.writer import Writer
from quarterdeck.journal.tail import MOST_EVENTS
from quarterdeck.journal.transaction import Job, Result
from quarterdeck.protocol.events import AnyEvent, Noted, RunStarting, Said, SessionRenamed
from quarterdeck.protocol.stored_events import Stored
from support.bounds import SECONDS
from support.waiting import until


def note(text: str) -> Noted:
    return Noted(level="info", text=text)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


async def written(path: Path, *events: AnyEvent) -> None:
    async with await SqliteJournal.open(path) as journal:
        await journal.append("a", events or [note("1"), note("2"), note("3")])


def edit(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def overwrite(path: Path, content: bytes, at: int = 0) -> None:
    """Put something into the file, which is made if it is not there."""
    old = path.read_bytes() if path.exists() else b""
    path.write_bytes(old[:at] + content + old[at + len(content) :])


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


async def refusal(path: Path) -> JournalError:
    with pytest.raises(JournalError) as caught:
        await SqliteJournal.open(path)
    assert str(path) in str(caught.value)
    return caught.value


# --- the file ------------------------------------------------------------------------------------


async def test_the_files_are_private_to_their_user_whatever_the_umask(path: Path) -> None:
    old = os.umask(0)
    try:
        async with await SqliteJournal.open(path) as journal:
            await journal.append("a", [note("x")])
            await journal.read("a")
            modes = {file.name: mode(file) for file in path.parent.iterdir()}
    finally:
        os.umask(old)
    assert {"journal.db", "journal.db-wal", "journal.db-shm", "journal.db.lock"} == set(modes)
    assert set(modes.values()) == {0o600}


async def test_a_file_that_others_may_read_is_made_private(path: Path) -> None:
    await written(path)
    await anyio.Path(path).chmod(0o644)
    await written(path)
    assert mode(path) == 0o600


async def test_a_closed_journal_is_one_file(path: Path) -> None:
    async with await SqliteJournal.open(path) as journal:
        await journal.append("a", [note("x")])
        await journal.read("a")
    assert {file.name for file in path.parent.iterdir()} == {"journal.db", "journal.db.lock"}


async def test_another_kind_of_file_is_refused_and_left_alone(path: Path) -> None:
    overwrite(path, b"dear diary, today I learned about write-ahead logs")
    assert (await refusal(path)).code == "foreign"
    assert (await anyio.Path(path).read_bytes()).startswith(b"dear diary")


async def test_the_database_of_another_program_is_refused_and_left_alone(path: Path) -> None:
    edit(path, "CREATE TABLE diary (day, text)")
    await anyio.Path(path).chmod(0o644)
    before = await anyio.Path(path).read_bytes()
    assert (await refusal(path)).code == "foreign"
    assert await anyio.Path(path).read_bytes() == before
    assert mode(path) == 0o644


async def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    overwrite(tmp_path / "elsewhere", b"")
    await anyio.Path(path).symlink_to(tmp_path / "elsewhere")
    await refusal(path)


async def test_the_journal_of_a_newer_version_is_refused(path: Path) -> None:
    await written(path)
    edit(path, "PRAGMA user_version = 99")
    error = await refusal(path)
    assert error.code == "newer"
    assert "upgrade" in str(error)


async def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="look at its folder"):
        await SqliteJournal.open(tmp_path / "nowhere" / "journal.db")


async def test_a_refused_file_is_not_kept_locked(path: Path) -> None:
    overwrite(path, b"not a journal")
    await refusal(path)
    await anyio.Path(path).unlink()
    await written(path)


async def test_a_process_that_died_while_making_the_file_leaves_one_that_works(path: Path) -> None:
    overwrite(path, b"")
    await written(path)
    await anyio.Path(path).unlink()
    edit(path, "PRAGMA journal_mode = WAL")
    await written(path)


async def test_a_damaged_header_is_said(path: Path) -> None:
    await written(path)
    overwrite(path, b"\xff" * 84, at=16)
    assert (await refusal(path)).code in {"damaged", "foreign"}


async def test_damaged_pages_are_said_by_whatever_reads_them(path: Path) -> None:
    await written(path, *[note("x" * 3000)] * 200)
    overwrite(path, os.urandom(300_000), at=200_000)

    async def read_on() -> None:
        async with await SqliteJournal.open(path) as journal:
            after = 0
            while page := await journal.read("a", after=after):
                after = page[-1].seq

    with pytest.raises(JournalError) as caught:
        await read_on()
    assert caught.value.code == "damaged"


async def test_a_damaged_event_is_named_and_the_others_can_be_read(path: Path) -> None:
    await written(path)
    edit(path, "UPDATE events SET json = CAST('{\"kind\":' AS BLOB) WHERE seq = 2")
    async with await SqliteJournal.open(path) as journal:
        with pytest.raises(JournalError, match="event 2 of session a") as caught:
            await journal.read("a")
        assert caught.value.code == "damaged"
        assert [each.seq for each in await journal.read("a", after=2)] == [3]
        assert await journal.raw_events("a") is None
        with pytest.raises(JournalError, match="event 2 of session a"):
            await journal.follow({"a": 0}).next_text()
        await journal.append("b", [note("x")])
        assert await journal.head("b") == 1


async def test_events_that_are_missing_from_the_file_are_said_to_a_follower(path: Path) -> None:
    await written(path)
    edit(path, "DELETE FROM events WHERE seq > 1")
    async with await SqliteJournal.open(path) as journal:
        follower = journal.follow({"a": 1})
        with anyio.fail_after(SECONDS), pytest.raises(JournalError, match="lacks"):
            await anext(follower)


# --- its versions --------------------------------------------------------------------------------


async def test_an_older_schema_is_brought_up_to_date(path: Path) -> None:
    await written(path)
    connection = connect(path)
    set_up(connection, path, (*MIGRATIONS, "CREATE TABLE more (x ANY) STRICT;", "DROP TABLE more;"))
    assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS) + 2,)
    assert connection.execute("SELECT count(*) FROM events").fetchone() == (3,)
    connection.close()


async def test_a_migration_that_fails_leaves_the_file_as_it_was(path: Path) -> None:
    await written(path)
    connection = connect(path)
    with pytest.raises(sqlite3.OperationalError):
        set_up(connection, path, (*MIGRATIONS, "DROP TABLE audit; DROP TABLE nothing;"))
    connection.close()
    await written(path)


def test_the_file_names_its_program(path: Path) -> None:
    path.touch()
    connection = connect(path)
    set_up(connection, path)
    assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
    connection.close()


async def test_views_that_another_version_folded_are_made_anew(path: Path) -> None:
    await written(path, SessionRenamed(name="deck", by="ann"), *[note("x")] * 2500)
    edit(path, "UPDATE sessions SET folded = 0, view = x'7b7d'")
    async with await SqliteJournal.open(path) as journal:
        view = await journal.summary("a")
        assert view is not None
        assert (view.name, view.head) == ("deck", 2501)


# --- writing -------------------------------------------------------------------------------------


async def test_appends_at_the_same_time_share_commits(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits: list[int] = []
    commit = Writer._commit

    def counted(writer: Writer, jobs: list[Job]) -> object:
        commits.append(len(jobs))
        return commit(writer, jobs)

    monkeypatch.setattr(Writer, "_commit", counted)
    async with await SqliteJournal.open(path) as journal, anyio.create_task_group() as group:
        for number in range(200):
            group.start_soon(journal.append, f"s{number % 7}", [note(str(number))])
    assert sum(commits) == 200
    assert len(commits) < 20


async def test_an_append_that_cannot_be_written_does_not_harm_those_beside_it(path: Path) -> None:
    impossible: list[AnyEvent] = [
        RunStarting(run="r", machine="m"),
        Said(run="r", number=2**63, line=Raw(b"{}")),  # more than a column takes
    ]
    async with await SqliteJournal.open(path) as journal:
        outcomes: dict[int, str] = {}

        async def append(number: int) -> None:
            try:
                await journal.append("a", impossible if number == 5 else [note(str(number))])
                outcomes[number] = "stored"
            except JournalError:
                outcomes[number] = "refused"

        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(append, number)
        assert [number for number in outcomes if outcomes[number] == "refused"] == [5]
        assert [each.seq for each in await journal.read("a")] == list(range(1, 10))
        view = await journal.summary("a")
        assert view is not None
        assert view.run is None


async def test_a_cancelled_append_is_stored_whole_or_not_at_all(path: Path) -> None:
    async with await SqliteJournal.open(path) as journal:
        for number in range(30):
            with anyio.CancelScope() as scope:
                if number % 2:
                    scope.cancel()
                await journal.append("a", [note("x"), note("y")])
        await journal.append("a", [note("end")])
        stored = await journal.read("a")
        texts = "".join(each.event.text for each in stored if isinstance(each.event, Noted))
        assert texts.removesuffix("end").replace("xy", "") == ""
        assert [each.seq for each in stored] == list(range(1, len(stored) + 1))
        assert len(stored) >= 31


async def test_a_line_of_20_mb_is_kept_as_it_is(path: Path) -> None:
    line = b'{"type":"user","text":"' + b"x" * 20_000_000 + b'"}'
    async with await SqliteJournal.open(path) as journal:
        await journal.append("a", [Said(run="r", number=1, line=Raw(line))])
        (stored,) = await journal.read("a")
        assert isinstance(stored.event, Said)
        assert bytes(stored.event.line) == line
        with anyio.fail_after(SECONDS):
            assert await anext(journal.follow({"a": 0})) == [stored]


async def test_a_full_disk_refuses_the_append_and_takes_the_next_when_there_is_room(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quarterdeck.journal.sqlite.writer.connect", limited)
    async with await SqliteJournal.open(path) as journal:
        await journal.append("a", [note("fits")])
        with pytest.raises(JournalError, match="make room") as caught:
            await journal.append("a", [note("x" * 2000)] * 100)
        assert caught.value.code == "full"
        assert await journal.head("a") == len(await journal.read("a")) == 1
        assert [each.seq for each in await journal.append("a", [note("fits too")])] == [2]


def limited(path: Path) -> sqlite3.Connection:
    """A connection for which SQLite says that the disk is full after some pages."""
    connection = connect(path)
    connection.execute("PRAGMA max_page_count = 40")
    return connection


@pytest.mark.process
async def test_a_file_that_may_not_grow_any_more_is_as_a_full_disk(
    path: Path,
) -> None:
    with anyio.fail_after(SECONDS):
        done = await anyio.run_process(
            [sys.executable, "-m", "support.journal_on_a_full_disk", str(path)],
            env={"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
            check=False,
        )
    assert done.returncode == 0, done.stderr.decode()
    stored, last = map(int, done.stdout.split())
    assert stored > 0
    async with await SqliteJournal.open(path) as journal:
        assert await journal.head("a") == last
        assert len(await journal.read("a", limit=5000)) == last


# --- reading -------------------------------------------------------------------------------------


@pytest.mark.no_cover
async def test_a_follower_that_stops_reading_holds_no_events(path: Path) -> None:
    async with await SqliteJournal.open(path) as journal:
        stalled = [journal.follow({"a": 0}), journal.follow()]
        for _ in range(50):
            await journal.append("a", [note("unread")] * 1000)
        things = gc.get_referents(*gc.get_objects())
        # By its type: `isinstance` would ask a weak proxy for an object that is gone. By its text:
        # a hub that tests of this process share has events of its own.
        stored = (thing for thing in things if type(thing) is Stored)
        held = len({id(each) for each in stored if each.event == note("unread")})
        assert MOST_EVENTS <= held <= MOST_EVENTS + 1000
        for follower in stalled:
            seqs: list[int] = []
            with anyio.fail_after(SECONDS):
                while len(seqs) < 50_000:
                    seqs += [each.seq for each in await anext(follower)]
            assert seqs == list(range(1, 50_001))


@pytest.mark.no_cover
async def test_a_reader_does_not_hold_back_the_write_ahead_log(path: Path) -> None:
    wal = path.with_name(path.name + "-wal")
    async with await SqliteJournal.open(path) as journal:
        for _ in range(40):
            await journal.append("a", [note("x" * 1000)] * 500)
            await journal.read("a", limit=3)
        assert wal.stat().st_size < 8_000_000


@pytest.mark.heavy
@pytest.mark.no_cover
async def test_a_journal_of_a_million_events_is_opened_read_and_added_to(path: Path) -> None:
    await written(path, SessionRenamed(name="deck", by="ann"))
    edit(
        path,
        "DELETE FROM events",
        "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 200)"
        " INSERT INTO sessions SELECT i, 's' || i, head, updated, said, sent, 0, 0, folded,"
        " CAST(replace(view, '\"a\"', '\"s' || i || '\"') AS BLOB) FROM n, sessions"
        " WHERE number = 1",
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999999)"
        " INSERT INTO events SELECT i + 1, i % 200 + 1, i / 200 + 1, 1700000000000,"
        ' CAST(\'{"kind":"noted","level":"info","text":"\' || i || \'"}\' AS BLOB) FROM n',
        "UPDATE sessions SET head = 5000",
    )
    async with await SqliteJournal.open(path) as journal:
        assert journal.position == 1_000_000
        assert len(await journal.summaries(limit=200)) == 200
        assert [each.seq for each in await journal.read("s77", after=4990)] == [*range(4991, 5001)]
        assert await journal.open_asks() == []
        assert (await journal.append("s77", [note("more")]))[0].seq == 5001
        view = await journal.summary("s77")
        assert view is not None
        assert (view.session, view.head) == ("s77", 5001)
        page = await journal.read("s77", limit=100)
        assert fold_all(None, page) is not None
        assert len(page) == 100


async def test_what_is_read_can_be_followed_from_at_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await SqliteJournal.open(path) as journal:
        await journal.append("a", [note("1")])
        stored = anyio.Event()
        late: list[Callable[[], None]] = []
        tell = journal._deliver

        def hold(results: list[Result]) -> None:
            late.append(lambda: tell(results))
            stored.set()

        monkeypatch.setattr(journal, "_deliver", hold)
        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(journal.append, "a", [note("2")])
                await stored.wait()  # it is in the file, and nobody has heard of it
                heads: list[int] = []

                async def read() -> None:
                    heads.append((await journal.read("a"))[-1].seq)
                    heads.extend(view.head for view in await journal.summaries())
                    view = await journal.summary("a")
                    assert view is not None
                    journal.follow({"a": view.head})

                tasks.start_soon(read)
                await until(lambda: "a" in journal._tail._listening)
                assert heads == []
                late.pop()()
        assert heads == [2, 2]
