"""What leaves an asynchronous test, and what ends a shared fixture, fails that test only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from support.apart import SharedFixtureEnded, apart

TESTS = Path(__file__).parents[1]

START = """
import asyncio
from contextlib import asynccontextmanager

import anyio
import pytest

from support import contained
from support.apart import apart


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"
"""

LEAVING = (
    START
    + """
from hypothesis import HealthCheck, given, settings, strategies as st


@pytest.fixture
def short_bound(monkeypatch):
    monkeypatch.setattr(contained, "TEST_SECONDS", 0.1)


@pytest.fixture(scope="session")
async def for_all():
    async with anyio.create_task_group():
        yield


async def raise_it(error):
    raise error


async def test_cancelled(for_all):
    asyncio.current_task().cancel("by the test")
    await anyio.sleep(9)


async def test_exits(for_all):
    raise SystemExit("leaving")


async def test_fails_in_a_group(for_all):
    async with anyio.create_task_group() as group:
        group.start_soon(raise_it, KeyError("inner"))
        group.start_soon(raise_it, pytest.fail.Exception("beside it"))


async def test_takes_too_long(for_all, short_bound):
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 99)


@settings(
    max_examples=2,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(number=st.none())
async def test_example_takes_too_long(number, short_bound):
    await anyio.sleep(99)


async def test_is_skipped(for_all):
    pytest.skip("not here")


@pytest.fixture
async def crossed():
    async with anyio.create_task_group() as group:
        yield group


async def test_cancelled_by_its_fixture(crossed):
    crossed.start_soon(raise_it, KeyError("behind the test"))
    await anyio.sleep(9)


async def test_cancelled_after_its_end(crossed):
    crossed.start_soon(raise_it, KeyError("behind the end"))


async def test_after_all_of_them(for_all):
    await anyio.sleep(0)


@settings(
    max_examples=50,
    deadline=None,
    database=None,
    suppress_health_check=[*HealthCheck],
)
@given(data=st.data())
async def test_examples_that_cannot_be_made(data, crossed):
    data.draw(st.integers(1, 99).filter(lambda number: number % 9 == 0))  # many are given up
    await anyio.sleep(0)
"""
)


def run_in(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, suite: str
) -> pytest.RunResult:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # to import them takes seconds
    pytester.makepyfile(suite)
    plugins = ("no:cacheprovider", "anyio", "support.contained", "_hypothesis_pytestplugin")
    return pytester.runpytest_subprocess(
        "--anyio-mode=auto", *(option for name in plugins for option in ("-p", name))
    )


def test_whatever_leaves_a_test_fails_that_test_only(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run_in(pytester, monkeypatch, LEAVING)
    done.assert_outcomes(passed=3, failed=6, skipped=1, errors=2)
    done.stdout.fnmatch_lines_random(
        [
            "E*TestWasCancelled: the test's task was cancelled: by the test",
            "E*TestRaised: SystemExit: leaving",
            "E*TestRaised: BaseExceptionGroup: *",
            "E*TimeoutError: the test took more than 0.1 s",
            "*KeyError: 'behind the test'",
            "*KeyError: 'behind the end'",
            "FAILED *::test_example_takes_too_long*",
            "FAILED *::test_cancelled_by_its_fixture*",
            "ERROR *::test_cancelled_by_its_fixture*",
            "ERROR *::test_cancelled_after_its_end*",
        ]
    )


SHARED = (
    START
    + """
@asynccontextmanager
async def inner():
    async with anyio.create_task_group() as group:
        yield [group]
        group.cancel_scope.cancel()


@asynccontextmanager
async def serving():
    async with apart(inner()) as (group,):
        yield group


@pytest.fixture(scope="module")
async def shared():
    async with apart(serving()) as group:
        yield group


@pytest.fixture
async def of_shared(shared):
    return shared


async def raise_it():
    raise KeyError("in the shared one")


async def test_before(of_shared):
    of_shared.start_soon(anyio.sleep, 99)


async def test_meanwhile(of_shared):
    of_shared.start_soon(raise_it)
    await anyio.sleep(99)


async def test_afterwards(of_shared):
    pass


async def test_without_it():
    await anyio.sleep(0)
"""
)


def test_tests_of_a_shared_fixture_that_ends_fail_at_once_with_its_error(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run_in(pytester, monkeypatch, SHARED)
    # Of the errors, one is at the set-up of the test after, and one at the end of the fixture.
    done.assert_outcomes(passed=2, failed=1, errors=2)
    done.stdout.fnmatch_lines_random(
        [
            "FAILED *::test_meanwhile*",
            "ERROR *::test_afterwards*",
            "ERROR *::test_without_it*",
        ]
    )
    assert done.stdout.str().count("| KeyError: 'in the shared one'") == 3


class _Scene:
    """A context manager that notes the task of its start and of its end."""

    def __init__(self, fails_at: str = "") -> None:
        self.tasks: list[int] = []
        self.fails_at = fails_at

    async def __aenter__(self) -> _Scene:
        self.tasks.append(anyio.get_current_task().id)
        await anyio.lowlevel.checkpoint()
        if self.fails_at == "start":
            raise KeyError("start")
        return self

    async def __aexit__(self, *error: object) -> None:
        self.tasks.append(anyio.get_current_task().id)
        if self.fails_at == "end":
            raise KeyError("end")


async def test_what_is_apart_begins_and_ends_in_one_other_task() -> None:
    scene = _Scene()
    async with apart(scene) as given:
        assert given is scene
        assert len(scene.tasks) == 1
    assert scene.tasks[0] == scene.tasks[1] != anyio.get_current_task().id


@pytest.mark.parametrize("at", ["start", "end"])
async def test_an_error_at_the_start_or_the_end_is_raised_there(at: str) -> None:
    with pytest.raises(KeyError, match=at):
        async with apart(_Scene(fails_at=at)):
            assert at == "end"


@asynccontextmanager
async def _ending() -> AsyncIterator[anyio.CancelScope]:
    with anyio.CancelScope() as scope:
        yield scope


async def test_one_that_ends_early_without_an_error_says_so() -> None:
    with pytest.raises(SharedFixtureEnded):  # noqa: PT012  (it is raised where the context ends)
        async with apart(_ending()) as scope:
            scope.cancel()
            await anyio.sleep(0.01)
