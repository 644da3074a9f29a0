"""A pytest plugin: with `--grouped` a table of cases is one test, and names all that fail.

pytest takes about 4 ms for a test that computes nothing: to set it up, to report it, and to send
the report to the process that started the workers. The tables of the policy have thousands of
rows. So the Makefile runs a parametrised test that takes nothing but its parameters as one test:
all cases run, also after one that fails. Without the option every case is a test of its own, which
is what one wants while looking for a mistake: `pytest tests/policy/test_decide.py -k …`.

What has fixtures, is asynchronous, a property test, or has marks at single cases stays as it is. So
does what is not quick: there 4 ms are nothing, and workers share the cases.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from itertools import product
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from support.quick import MARKS

Case = tuple[str, Mapping[str, Any]]
"""What a case is called, and its values by parameter."""

MOST = 300
"""Characters of a value that are shown."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--grouped", action="store_true", help="a table of cases is one test")


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> pytest.Item | None:
    """One test for all cases, if the test is a function of its parameters only."""
    if not collector.config.getoption("--grouped") or not isinstance(collector, pytest.Module):
        return None
    if not inspect.isfunction(obj) or not collector.funcnamefilter(name):
        return None
    table = cases_of(obj)
    if table is None or any(collector.get_closest_marker(mark) for mark in MARKS):
        return None
    test = in_a_row(obj, table)
    return pytest.Function.from_parent(collector, name=name, callobj=test, originalname=name)


def cases_of(test: Callable[..., object]) -> list[Case] | None:
    """The cases of a test with their names; nothing if they cannot be run in a row."""
    marks: list[pytest.Mark] = getattr(test, "pytestmark", [])
    columns = [_rows(mark) for mark in marks if mark.name == "parametrize"]
    if not columns or inspect.iscoroutinefunction(test) or hasattr(test, "hypothesis"):
        return None
    if any(mark.name in {"usefixtures", *MARKS} for mark in marks):
        return None
    known = [rows for rows in columns if rows]
    if len(known) < len(columns):
        return None
    found: list[Case] = []
    for rows in product(*known):
        values = {name: value for _, row in rows for name, value in row.items()}
        found.append(("-".join(name for name, _ in rows), values))
    return found if found[0][1].keys() == inspect.signature(test).parameters.keys() else None


def in_a_row(test: Callable[..., object], table: list[Case]) -> Callable[[], None]:
    """A test that tries every case, and fails with all that failed."""

    def run() -> None:
        failed: list[BaseException] = []
        skipped: list[str] = []
        for name, values in table:
            try:
                test(**values)
            except pytest.skip.Exception as reason:
                skipped.append(f"{name}: {reason}")
            except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - all are told
                error.add_note(f"case: {name}")
                failed.append(error)
        if failed:
            names = "\n".join(error.__notes__[-1] for error in failed)
            text = f"{len(failed)} of {len(table)} cases failed\n{names}\n"
            raise BaseExceptionGroup(text, failed)
        if skipped:
            pytest.skip("\n".join(skipped))

    run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
    marks: list[pytest.Mark] = getattr(test, "pytestmark", [])
    run.pytestmark = [mark for mark in marks if mark.name != "parametrize"]  # type: ignore[attr-defined]
    return run


def _rows(mark: pytest.Mark) -> list[Case]:
    """What one decorator says: the name of each row, and its values by parameter."""
    given = dict(zip(("argnames", "argvalues", "indirect", "ids"), mark.args, strict=False))
    given |= mark.kwargs
    if given.get("indirect") or not isinstance(given["argvalues"], Collection):
        return []  # an iterator could be read once only
    names = given["argnames"]
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",") if name.strip()]
    found: list[Case] = []
    for row in given["argvalues"]:
        each = ParameterSet.extract_from(row, force_tuple=len(names) == 1)
        if each.marks or len(each.values) != len(names):
            return []
        name = each.id if isinstance(each.id, str) else ", ".join(map(_shown, each.values))
        found.append((name, dict(zip(names, each.values, strict=True))))
    return found


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MOST else f"{text[:MOST]}…"
