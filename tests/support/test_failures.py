"""What a failing test leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

FAILING = """
import logging
import sqlite3

def test_that_fails(tmp_path):
    (tmp_path / "runner.log").write_text("the runner said this")
    (tmp_path / "notes.txt").write_text("nobody asked for this")
    with sqlite3.connect(tmp_path / "journal.db") as journal:
        journal.execute("CREATE TABLE events (position, session, seq, at, json)")
        journal.execute("INSERT INTO events VALUES (1, 7, 3, 99, ?)", (b'{"said":"a line"}',))
    journal.close()
    logging.getLogger("quarterdeck.hub").warning("the hub said that")
    assert False, "on purpose"

def test_that_passes(tmp_path):
    (tmp_path / "runner.log").write_text("fine")
"""


def test_logs_and_lines_are_kept_and_the_output_says_where(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    kept = pytester.path / "kept"
    pytester.makeconftest(
        "import pathlib\nfrom support import failures\n"
        f"failures.KEPT = pathlib.Path({str(kept)!r})\n"
        "pytest_plugins = ('support.failures',)\n"
    )
    pytester.makepyfile(FAILING)
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    done.assert_outcomes(passed=1, failed=1)
    (folder,) = kept.iterdir()
    assert str(folder) in done.stdout.str()
    report = (folder / "report.txt").read_text()
    assert "on purpose" in report
    assert "the hub said that" in report
    contents = {path.name.rpartition("__")[2]: path.read_text() for path in folder.iterdir()}
    assert contents["runner.log"] == "the runner said this"
    assert contents["journal.db.txt"] == '7\t3\t99\t{"said":"a line"}\n'
    assert "notes.txt" not in contents


def test_a_failure_is_reported_where_nothing_can_be_kept(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    pytester.makeconftest(
        "import pathlib\nfrom support import failures\n"
        "failures.KEPT = pathlib.Path(__file__)\n"  # no folder
        "pytest_plugins = ('support.failures',)\n"
    )
    pytester.makepyfile("def test_that_fails():\n    assert False, 'on purpose'\n")
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*on purpose*", "*nothing could be kept*"])
