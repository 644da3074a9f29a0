"""A pytest plugin for the inner loop: `pytest --quick` runs the tests that start no process.

A test that starts one is marked `process` (or `real_cli`), or uses a fixture that does. Under
`--quick` such tests are left out, and one that starts a process all the same fails and says so: the
inner loop stays quick by itself. A few that compute for seconds are marked `heavy` and left out as
well, and property tests try a tenth of their examples (`support.examples`).
"""

from __future__ import annotations

import sys
from collections.abc import Generator

import pytest

from support.examples import use_profile

STARTERS = frozenset(
    {"browser", "clis", "postgres", "postgres_url", "processes", "pytester", "quarterdeck"}
)
"""Fixtures that start processes, or hand them out."""
MARKS = ("process", "real_cli", "heavy")
EVENTS = frozenset({"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen"})

_watching = False


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--quick", action="store_true", help="only tests that are quick")


def pytest_configure(config: pytest.Config) -> None:
    """Watch for processes from now on; a hook of this kind cannot be taken away again."""
    use_profile(quick=config.getoption("--quick"))
    if config.getoption("--quick"):
        sys.addaudithook(_refuse)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not quick."""
    if not config.getoption("--quick"):
        return
    slow = [item for item in items if _is_slow(item)]
    items[:] = [item for item in items if not _is_slow(item)]
    config.hook.pytest_deselected(items=slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Only tests are watched: pytest itself, and its workers, may start what they like."""
    global _watching  # noqa: PLW0603 - an audit hook has nowhere else to look
    _watching = True
    try:
        return (yield)
    finally:
        _watching = False


def _is_slow(item: pytest.Item) -> bool:
    used: object = getattr(item, "fixturenames", ())
    assert isinstance(used, list | tuple)
    return any(item.get_closest_marker(mark) for mark in MARKS) or bool(STARTERS & {*used})


def _refuse(event: str, _: object) -> None:
    if _watching and event in EVENTS:
        raise AssertionError("this test starts a process: mark it with pytest.mark.process")
