"""The tool that runs the official SDK's tests: what it makes of their outcomes, and its list."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def load() -> ModuleType:
    path = ROOT / "tools" / "run_sdk_tests.py"
    spec = importlib.util.spec_from_file_location("run_sdk_tests", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its structs look their types up there
    spec.loader.exec_module(module)
    return module


tool = load()
GROUPS = (tool.Group("mocks", ("test_a.py::T::test_x*", "test_b.py::test_y")),)


def test_failures_are_told_apart_from_those_that_do_not_apply() -> None:
    output = """
PASSED tests/test_a.py::T::test_ok
FAILED tests/test_a.py::T::test_x[one - two] - AssertionError: no
FAILED tests/test_a.py::T::test_x_too
FAILED tests/test_a.py::T::test_other - ValueError
ERROR tests/test_c.py::test_broken - boom
some other line
"""
    report = tool.compare(output, GROUPS)
    assert report.passed == 1
    assert report.by_reason == {"mocks": 2}
    assert report.unexpected == ("test_a.py::T::test_other", "test_c.py::test_broken")
    assert report.passing == ("test_b.py::test_y",)


def documented() -> tuple[str, int, dict[str, int]]:
    """What the how-to says: the SDK's version, how many tests pass, and how many do not apply."""
    page = (ROOT / "docs" / "how-to" / "run-official-sdk-programs.md").read_text()
    found = re.search(
        r"Of the [\d,]+ tests of ([\d.]+), with\nasyncio and trio, ([\d,]+) pass", page
    )
    assert found is not None, page
    rows = re.findall(r"^\| (\d+) \| (they .*) \|$", page, re.MULTILINE)
    counts = {reason: int(number) for number, reason in rows}
    return found[1], int(found[2].replace(",", "")), counts


def test_every_reason_of_the_list_is_in_the_documentation() -> None:
    groups = tool.read_groups(tool.LIST.read_text())
    assert [group.reason for group in groups] == list(documented()[2])
    assert all(group.tests for group in groups)


@pytest.mark.long
@pytest.mark.process
def test_the_sdks_own_tests_pass_with_our_transport_but_for_those_of_the_list() -> None:
    report: Any = tool.run(workers=1)  # `make long` has workers of its own
    version, passed, counts = documented()
    assert report.unexpected == ()
    assert report.passing == (), "these are listed, and pass"
    assert (tool.version(tool.PACKAGE), report.passed) == (version, passed)
    assert report.by_reason == counts
