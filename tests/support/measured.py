"""A pytest plugin: where coverage is measured, and where to measure it would only take time.

Python 3.11 calls the measurement for each line of every module, also of other libraries: a test
takes two to four times as long. So tests are left out that reach nothing which cheaper tests do not
reach: property tests and heavy ones, which take the same branches thousands of times, those with a
browser, with hubs as processes, with every real CLI, about security, documents and tools. And what
imports run is measured in one worker, since it is the same in all. The number that `make test`
tells is therefore a little too low, never too high.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage

MARKS = ("hypothesis", "heavy")
FOLDERS = frozenset({"bench", "browser", "docs", "faults", "real_cli", "security", "tools"})
TESTS = Path(__file__).parents[1]
FIRST = "gw0"


@pytest.hookimpl(trylast=True)  # after the plugin that marks property tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what reaches nothing of its own. Other tests are marked `no_cover` themselves."""
    for item in items:
        marked = any(item.get_closest_marker(mark) for mark in MARKS)
        if marked or _folder(item.path) in FOLDERS:
            item.add_marker("no_cover")


@pytest.hookimpl(trylast=True)  # after the plugin that measures
def pytest_sessionstart(session: pytest.Session) -> None:
    """Have one measurement in a worker.

    Its plugin starts one before it knows that it is in a worker, and another one then. Whenever the
    second one pauses, the first one goes on, and nobody wants what it finds.
    """
    controller = _controller(session.config)
    if controller is None or not hasattr(session.config, "workerinput"):
        return
    controller.pause()
    while below := Coverage.current():
        below.stop()
    controller.resume()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Measure imports in the first worker only."""
    controller = _controller(session.config)
    worker: dict[str, Any] = getattr(session.config, "workerinput", {})
    if controller is None or worker.get("workerid", FIRST) == FIRST:
        return (yield)
    controller.pause()
    try:
        return (yield)
    finally:
        controller.resume()


def _folder(path: Path) -> str:
    return path.relative_to(TESTS).parts[0] if path.is_relative_to(TESTS) else ""


def _controller(config: pytest.Config) -> Any:
    """What measures, if anything does."""
    return getattr(config.pluginmanager.getplugin("_cov"), "cov_controller", None)
