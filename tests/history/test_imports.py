"""Sessions that a CLI left on disk: taken in once, with all that was said, and nothing invented."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import pytest
from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.history.imports import Importer, ImportOutcome, ImportReport
from quarterdeck.journal.base import Journal
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.events import (
    CliSession,
    PromptQueued,
    PromptSent,
    Recalled,
    RunEnded,
    RunStarting,
    Said,
    SessionCreated,
)
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.wire.codec import from_cli
from quarterdeck.wire.messages import Assistant, User
from support.left_sessions import MESSAGES, go_on, left_session
from support.session_files import Disk, user


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def importer(disk: Disk, journal: Journal) -> Importer:
    return Importer(journal, lambda _: [], config_dir=disk.config)


def outcomes(report: ImportReport) -> Counter[ImportOutcome]:
    return Counter(each.outcome for each in report.sessions)


async def test_a_session_shows_its_history_and_where_to_go_on_with_it(disk: Disk) -> None:
    path = left_session(disk, 1)
    journal = MemoryJournal()
    (report,) = (await importer(disk, journal).run()).sessions
    assert (report.outcome, report.messages, report.detail) == (ImportOutcome.NEW, 2 * MESSAGES, "")
    assert report.session is not None
    view = await journal.summary(report.session)
    assert view is not None
    assert (view.cli_session, view.spec.directory) == (path.stem, "/home/ann/project-1")
    assert (view.by, view.name) == ("import", "Prompt 10: fix the näme 10")
    assert (view.run, view.turns, view.cost_usd, view.prompts) == (None, 0, 0.0, {})
    events = [stored.event for stored in await journal.read(report.session)]
    assert isinstance(events[0], SessionCreated)
    assert isinstance(events[1], CliSession)
    messages = [from_cli(bytes(e.line)) for e in events[2:] if isinstance(e, Recalled)]
    assert [type(message) for message in messages] == 2 * [
        User, Assistant, Assistant, User, Assistant, User, Assistant,
    ]  # fmt: skip
    assert isinstance(messages[0], User)
    assert (messages[0].text, messages[0].is_replay) == ("Prompt 10: fix the näme 10", True)


async def test_five_hundred_sessions_are_imported_and_once_only(disk: Disk) -> None:
    for number in range(500):
        left_session(disk, number)
    journal = MemoryJournal()
    report = await importer(disk, journal).run()
    assert outcomes(report) == {ImportOutcome.NEW: 500}
    position = journal.position
    assert position == 500 * (2 + 2 * MESSAGES)
    again = await importer(disk, journal).run()
    assert outcomes(again) == {ImportOutcome.KNOWN: 500}
    assert journal.position == position
    assert [each.session for each in again.sessions] == [each.session for each in report.sessions]


async def test_what_was_said_since_is_added_and_nothing_twice(disk: Disk) -> None:
    path = left_session(disk, 1)
    journal = MemoryJournal()
    (first,) = (await importer(disk, journal).run()).sessions
    go_on(path, 77)
    (second,) = (await importer(disk, journal).run()).sessions
    assert (second.outcome, second.session) == (ImportOutcome.MORE, first.session)
    assert second.messages == MESSAGES
    assert first.session is not None
    uuids = [
        stored.event.uuid
        for stored in await journal.read(first.session)
        if isinstance(stored.event, Recalled)
    ]
    assert len(uuids) == len(set(uuids)) == 3 * MESSAGES


async def test_an_import_that_was_broken_off_is_completed_by_the_next(disk: Disk) -> None:
    path = left_session(disk, 1)
    journal = MemoryJournal()
    created = SessionCreated(spec=SessionSpec(directory="/home/ann/project-1"), by="import")
    await journal.append("half", [created, CliSession(cli_session=path.stem)])
    (report,) = (await importer(disk, journal).run()).sessions
    assert (report.outcome, report.session, report.messages) == (
        ImportOutcome.MORE,
        "half",
        2 * MESSAGES,
    )


async def test_a_dry_run_tells_and_does_nothing(disk: Disk) -> None:
    left_session(disk, 1)
    journal = MemoryJournal()
    report = await importer(disk, journal).run(dry_run=True)
    assert report.dry_run
    assert outcomes(report) == {ImportOutcome.NEW: 1}
    assert report.sessions[0].session is None
    assert journal.position == 0


async def test_broken_files_are_named_and_skipped(disk: Disk) -> None:
    left_session(disk, 1)
    good = left_session(disk, 2)
    garbage = disk.session([b"{not json", b"\xff\xfe"])
    empty = disk.session([], end=b"")
    nowhere = disk.session([{**user(1, "hi"), "cwd": None}])
    folder = disk.folder() / "00000000-0000-4000-8000-00000000000f.jsonl"
    folder.mkdir()
    with good.open("ab") as file:
        file.write(b'{"type":"assistant","uuid":"cut off in the mid')
    journal = MemoryJournal()
    report = await importer(disk, journal).run()
    assert outcomes(report) == {ImportOutcome.NEW: 2, ImportOutcome.BROKEN: 4}
    why = {each.cli_session: each.detail for each in report.sessions}
    assert "there are no messages" in why[garbage.stem]
    assert "empty" in why[empty.stem]
    assert "where it ran" in why[nowhere.stem]
    assert "not a regular file" in why[folder.stem]
    assert len(await journal.summaries()) == 2


@pytest.mark.process
async def test_only_what_is_asked_for_is_imported(disk: Disk) -> None:
    first, second = left_session(disk, 1), left_session(disk, 2)
    journal = MemoryJournal()
    missing = "00000000-0000-4000-8000-0000000000aa"
    report = await importer(disk, journal).run(only=[second.stem, missing])
    assert [(each.cli_session, each.outcome) for each in report.sessions] == [
        (second.stem, ImportOutcome.NEW),
        (missing, ImportOutcome.BROKEN),
    ]
    report = await importer(disk, journal).run(directory="/home/ann/project-1")
    assert [each.cli_session for each in report.sessions] == [first.stem]
    with pytest.raises(UsageError, match="UUID"):
        await importer(disk, journal).run(only=["../../etc/passwd"])


async def test_a_session_with_a_process_here_is_left_to_it(disk: Disk) -> None:
    path = left_session(disk, 1)
    journal = MemoryJournal()
    created = SessionCreated(spec=SessionSpec(directory="/w"), by="ann")
    running = [created, RunStarting(run="r", machine=""), CliSession(cli_session=path.stem)]
    await journal.append("mine", running)
    (report,) = (await importer(disk, journal).run()).sessions
    assert (report.outcome, report.session) == (ImportOutcome.RUNNING, "mine")
    assert await journal.head("mine") == 3


async def test_of_a_session_that_ran_here_only_the_unheard_is_added(disk: Disk) -> None:
    path = disk.session(
        [user(1, "ours"), user(2, "not a uuid of ours"), user(3, "heard"), user(4, "unheard")]
    )
    ids = [str(entry["uuid"]) for entry in (user(n, "") for n in (1, 2, 3))]
    journal = MemoryJournal()
    line = Raw(b'{"type":"user","uuid":"%b","message":{}}' % ids[2].encode())
    await journal.append(
        "mine",
        [
            SessionCreated(spec=SessionSpec(directory="/w"), by="ann"),
            RunStarting(run="r", machine=""),
            CliSession(cli_session=path.stem),
            PromptQueued(prompt=ids[0], content=Raw(b'"ours"'), by="ann"),
            PromptQueued(prompt="chosen", content=Raw(b'"x"'), by="ann"),
            PromptSent(prompt="chosen", run="r", uuid=ids[1]),
            Said(run="r", number=1, line=line),
            RunEnded(run="r", reason="done", clean=True),
        ],
    )
    (report,) = (await importer(disk, journal).run()).sessions
    assert (report.outcome, report.messages) == (ImportOutcome.MORE, 1)


async def test_an_earlier_id_of_the_cli_belongs_to_its_session_too(disk: Disk) -> None:
    left_session(disk, 1)
    journal = MemoryJournal()
    created = SessionCreated(spec=SessionSpec(directory="/w"), by="ann")
    await journal.append("mine", [created, CliSession(cli_session="a newer one")])
    made = Importer(journal, lambda _: ["older", "mine"], config_dir=disk.config)
    (report,) = (await made.run()).sessions
    assert report.session == "mine"


async def test_a_file_that_was_just_written_comes_with_a_warning(disk: Disk) -> None:
    path = left_session(disk, 1)
    now = time.time()
    os.utime(path, (now - 20, now - 20))
    (report,) = (await importer(disk, MemoryJournal()).run()).sessions
    assert report.outcome is ImportOutcome.NEW
    assert "may still run in a terminal" in report.detail
