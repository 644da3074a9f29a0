"""What the doctor says of the sandbox: which kind agents get, and what to install."""

from __future__ import annotations

from quarterdeck.cli.local.findings import Level, sandbox_findings
from quarterdeck.sandbox import Kind, Probe

WORKS = Probe(kind=Kind.BUBBLEWRAP, works=True)
LACKS = Probe(kind=Kind.BUBBLEWRAP, works=False, why="it is not installed")
LANDLOCK = Probe(kind=Kind.LANDLOCK, works=True, why="git commits only in a work tree")


def test_the_first_kind_that_works_is_the_one_in_force() -> None:
    found = list(sandbox_findings([WORKS, LANDLOCK], platform="linux"))
    assert [(one.level, one.text) for one in found] == [
        (Level.OK, "bubblewrap works, and agents run in it"),
        (Level.OK, "landlock works too: git commits only in a work tree"),
    ]


def test_a_missing_kind_comes_with_advice_and_the_next_one_is_in_force() -> None:
    first, second = sandbox_findings([LACKS, LANDLOCK], platform="linux")
    assert (first.level, first.text) == (
        Level.NOTE,
        "bubblewrap does not work: it is not installed",
    )
    assert "Install the package bubblewrap" in first.advice
    assert second.text.startswith("landlock works, and agents run in it")


def test_a_machine_without_any_kind_is_a_warning_with_what_to_install() -> None:
    *_, last = sandbox_findings([LACKS], platform="linux")
    assert last.level is Level.WARNING
    assert "apt install bubblewrap" in last.advice
    (alone,) = sandbox_findings([], platform="win32")
    assert (alone.level, alone.advice) == (Level.WARNING, "")
