"""A pytest plugin: what a failing test leaves to be understood by, under .cache/failures/TEST/.

`report.txt` has the traceback and what was printed and logged (a hub in this process logs there).
Beside it are the logs of the processes that ran meanwhile (hub, runner), the lines of every CLI as
the journal has them, records of fake CLIs, and pictures of the pages that were open. The folder is
named in the output of pytest. A whole run begins with an empty folder.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import time
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

KEPT = Path(__file__).parents[2] / ".cache" / "failures"
LOGS = ("*.log", "*.err", "*.ndjson", "record*")
JOURNAL = "journal.db"
BROWSERS = "playwright_chromium"  # its profile has logs that tell nobody anything
MOST_BYTES = 5_000_000  # of a file; its end says how it failed
MOST_FILES = 60
MOST_EVENTS = 5000

_running: list[tuple[pytest.Item, float]] = []
_failed: set[str] = set()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Forget what an earlier run has left."""
    if not hasattr(session.config, "workerinput"):
        shutil.rmtree(KEPT, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Know which test runs, and since when."""
    _running.append((item, time.time()))
    try:
        return (yield)
    finally:
        _running.pop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep what there is while the test's processes and files are still there."""
    report = yield
    if report.failed:
        folder = folder_of(item)
        _failed.add(item.nodeid)
        since = next((at for running, at in _running if running is item), 0.0)
        try:
            _keep(folder, report, _base_of(item), since)
        except OSError as error:  # a full disk; or another run of this checkout began, and forgot
            report.sections.append(("nothing could be kept", str(error)))
        else:
            report.sections.append(("kept for a closer look", str(folder)))
    return report


def folder_of(item: pytest.Item) -> Path:
    """Where the remains of a test are kept."""
    return KEPT / re.sub(r"[^\w.=-]+", "_", item.nodeid)[:150]


def picture_folder() -> Path | None:
    """Where to put a picture of a page, if the test that runs has failed."""
    for item, _ in _running:
        if item.nodeid in _failed:
            return folder_of(item)
    return None


def _base_of(item: pytest.Item) -> Path | None:
    """The folder of all temporary folders of this worker: some are shared by a whole module."""
    factory = getattr(item.config, "_tmp_path_factory", None)
    return factory.getbasetemp() if factory is not None else None


def _keep(folder: Path, report: pytest.TestReport, base: Path | None, since: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "report.txt").open("a", encoding="utf-8", errors="replace") as file:
        file.write(f"{report.nodeid}, in {report.when}\n\n{report.longreprtext}\n")
        for title, content in report.sections:
            file.write(f"\n--- {title} ---\n{content}\n")
    if base is None:
        return
    for found in _touched(base, since):
        name = str(found.relative_to(base)).replace("/", "__")[-180:]
        try:
            if found.name == JOURNAL:
                _write_lines(found, folder / f"{name}.txt")
            else:
                _copy_end(found, folder / name)
        except (OSError, sqlite3.Error) as error:  # it may be gone, or be no journal after all
            (folder / f"{name}.unreadable").write_text(str(error))


def _touched(base: Path, since: float) -> Iterable[Path]:
    """The logs and journals that were written to since then, the newest first."""
    found: list[tuple[float, Path]] = []
    for pattern in (*LOGS, JOURNAL):
        for path in base.rglob(pattern):
            try:
                at = path.stat().st_mtime
            except OSError:
                continue
            if path.name == JOURNAL:  # what was written last may be in the file beside it
                beside = path.with_name(f"{JOURNAL}-wal")
                at = max(at, beside.stat().st_mtime if beside.exists() else at)
            if at >= since - 1 and path.is_file() and BROWSERS not in str(path):
                found.append((at, path))
    return [path for _, path in sorted(found, reverse=True)[:MOST_FILES]]


def _copy_end(source: Path, target: Path) -> None:
    with source.open("rb") as file:
        file.seek(max(0, source.stat().st_size - MOST_BYTES))
        target.write_bytes(file.read())


def _write_lines(journal: Path, target: Path) -> None:
    """Every event of a journal, one a line: session, number, what it was."""
    connection = sqlite3.connect(f"file:{journal}?mode=ro", uri=True, timeout=1.0)
    try:
        rows = connection.execute(
            "SELECT session, seq, at, json FROM events ORDER BY position DESC LIMIT ?",
            (MOST_EVENTS,),
        ).fetchall()
    finally:
        connection.close()
    with target.open("w", encoding="utf-8", errors="replace") as file:
        for session, seq, at, json in reversed(rows):
            file.write(f"{session}\t{seq}\t{at}\t{bytes(json).decode(errors='replace')[:4000]}\n")
