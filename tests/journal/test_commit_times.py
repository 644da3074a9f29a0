"""How long commits take, and how large the files are."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.journal.commit_times import BOUNDS, CommitTimes
from quarterdeck.journal.sqlite import SqliteJournal
from quarterdeck.protocol.events import Noted

pytestmark = pytest.mark.anyio


def test_a_time_counts_in_every_bucket_that_it_fits() -> None:
    times = CommitTimes()
    for seconds in (0.0001, 0.0005, 0.02, 100.0):
        times.add(seconds)
    assert (times.count, round(times.seconds, 4)) == (4, 100.0206)
    assert dict(times.upto()) == {bound: 2 if bound < 0.025 else 3 for bound in BOUNDS}


async def test_a_journal_times_its_commits_and_knows_its_size(tmp_path: Path) -> None:
    async with await SqliteJournal.open(tmp_path / "journal.db") as journal:
        assert journal.commit_times.count == 0
        before = journal.size()
        await journal.append("s", [Noted(level="info", text="x" * 100_000)])
        assert journal.commit_times.count == 1
        assert 0 < journal.commit_times.seconds < 60
        assert journal.size() >= before + 100_000
