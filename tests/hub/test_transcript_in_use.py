"""One owner for each session of the CLI: a conversation that goes on elsewhere is left there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quarterdeck.domain.errors import Conflict
from quarterdeck.hub.transcript_in_use import RECENT_SECONDS, TranscriptInUse
from quarterdeck.protocol.events import RunEnded
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec
from support.session_files import Disk, user

NOW = 1_790_000_000.0


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def written(disk: Disk, seconds_ago: float) -> str:
    path = disk.session([user(1, "hi")])
    os.utime(path, (NOW - seconds_ago, NOW - seconds_ago))
    return path.stem


def view(cli_session: str | None, *, ended_ago: float | None = None, **spec: str) -> SessionView:
    ended = None if ended_ago is None else RunEnded(run="r", reason="done")
    updated = int((NOW - (ended_ago or 0)) * 1000)
    return SessionView(
        session="s",
        cli_session=cli_session,
        ended=ended,
        updated=updated,
        spec=SessionSpec(directory="/w", machine=spec.get("machine")),
    )


async def check(disk: Disk, found: SessionView) -> None:
    await TranscriptInUse(disk.config, clock=lambda: NOW).check(found)


async def test_an_imported_session_that_is_being_written_is_refused(disk: Disk) -> None:
    with pytest.raises(Conflict, match="written to 10 s ago") as refused:
        await check(disk, view(written(disk, 10)))
    assert refused.value.code == "runs_elsewhere"


async def test_one_that_has_been_still_for_a_while_is_free(disk: Disk) -> None:
    await check(disk, view(written(disk, RECENT_SECONDS + 1)))


async def test_the_last_words_of_our_own_process_are_no_sign_of_another(disk: Disk) -> None:
    await check(disk, view(written(disk, 10), ended_ago=10))
    await check(disk, view(written(disk, 10), ended_ago=12))


async def test_words_long_after_our_process_ended_are_somebody_elses(disk: Disk) -> None:
    with pytest.raises(Conflict):
        await check(disk, view(written(disk, 10), ended_ago=100))


async def test_what_cannot_be_seen_from_here_is_free(disk: Disk) -> None:
    await check(disk, view(None))
    await check(disk, view("no uuid"))
    await check(disk, view("00000000-0000-4000-8000-0000000000aa"))
    await check(disk, view(written(disk, 1), machine="far"))
