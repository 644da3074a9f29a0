"""A pytest plugin: every asynchronous test is bounded, and whatever leaves it is its failure only.

All asynchronous tests and fixtures of a worker run in one task of anyio's plugin. A cancellation
that leaves a test would end that task, and with it every test after it. Here it becomes an ordinary
error of its test, and the task goes on: a fixture that was left in a cancelled state is still
torn down where it was set up, and says what its error was.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

import anyio
import pytest
from anyio._backends._asyncio import TestRunner
from anyio.streams.memory import MemoryObjectReceiveStream
from hypothesis.errors import StopTest

from support.apart import cancelled_with, used_by
from support.bounds import TEST_SECONDS

Test = Callable[..., Awaitable[None]]
Work = tuple[Awaitable[Any], "asyncio.Future[Any]"]
_PASSED_ON = (Exception, pytest.fail.Exception, pytest.skip.Exception, KeyboardInterrupt, StopTest)
"""What pytest, hypothesis and people mean by it, as it is."""


class TestWasCancelled(Exception):
    """Something cancelled the test's task, and it was not the test's bound."""

    __test__ = False


class TestRaised(Exception):
    """The test raised what would end the worker: SystemExit, or a group with such an exception."""

    __test__ = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bound every asynchronous test, and every example of an asynchronous property test."""
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        if (handle := getattr(item.obj, "hypothesis", None)) is not None:
            # Cases of one table share the function.
            if inspect.iscoroutinefunction(handle.inner_test) and not hasattr(
                handle.inner_test, "is_contained"
            ):
                handle.inner_test = contained(handle.inner_test, item)
        elif inspect.iscoroutinefunction(item.obj):
            item.obj = contained(item.obj, item)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test at once if a shared fixture that it uses has ended before it."""
    for hosted in used_by(item):
        if error := hosted.error():
            raise error


def contained(test: Test, item: pytest.Item) -> Test:
    """The test with an outermost bound. A bound in a fixture would cancel more than the test."""

    @wraps(test)
    async def run(*args: object, **named: object) -> None:
        hosted = used_by(item)
        # Not a cancel scope: what a test enters may be left by its fixture, after the bound.
        bound = asyncio.timeout(TEST_SECONDS)
        try:
            async with bound:
                with cancelled_with(hosted):
                    await test(*args, **named)
        except BaseException as error:
            # A task group of the test may have counted the cancellation as well.
            _uncancel()
            if bound.expired():
                raise TimeoutError(f"the test took more than {TEST_SECONDS:g} s") from error
            if isinstance(error, _PASSED_ON):
                raise
            for each in hosted:
                if ended := each.error():
                    raise ended from ended.__cause__
            if isinstance(error, asyncio.CancelledError):
                raise TestWasCancelled(f"the test's task was cancelled: {error}") from error
            raise TestRaised(f"{type(error).__name__}: {error}") from error

    run.is_contained = True  # type: ignore[attr-defined]
    return run


def _uncancel() -> None:
    task = asyncio.current_task()
    while task is not None and task.uncancel():
        pass


async def _run_tests_and_fixtures(
    self: TestRunner, receive_stream: MemoryObjectReceiveStream[Work]
) -> None:
    """What anyio's runner does, but that a cancellation does not end it.

    A scope that a fixture holds may cancel this task again and again, until the fixture leaves it
    here. So what there is to do is taken without waiting, and only the end of the stream ends this.
    """
    try:
        with receive_stream, self._send_stream:
            while True:
                try:
                    work, future = receive_stream.receive_nowait()
                except anyio.WouldBlock:
                    try:
                        work, future = await receive_stream.receive()
                    except asyncio.CancelledError:
                        _uncancel()
                        continue
                await _do(work, future)
    except anyio.EndOfStream:
        pass
    finally:
        self._runner_task = None  # the next call makes another one


async def _do(work: Awaitable[Any], future: asyncio.Future[Any]) -> None:
    """Await a test or a part of a fixture, and tell how it ended."""
    try:
        value = await work
    except KeyboardInterrupt as error:
        future.set_exception(error)
        raise
    except asyncio.CancelledError as error:
        _uncancel()
        cancelled = TestWasCancelled(f"a fixture was cancelled: {error}")
        cancelled.__cause__ = error
        if not future.done():
            future.set_exception(cancelled)
    except BaseException as error:  # noqa: BLE001  (it is raised where it is waited for)
        if not future.done():
            future.set_exception(error)
    else:
        if not future.done():
            future.set_result(value)


_run = TestRunner.run_test
_exit = TestRunner.__exit__


def _run_test(self: TestRunner, test: Test, arguments: dict[str, Any]) -> None:
    """What anyio's runner does, but that the end of an example does not end the runner's task."""
    stopped: list[StopTest] = []

    async def example(**named: object) -> None:
        try:
            await test(**named)
        except StopTest as told:
            stopped.append(told)

    _run(self, example, arguments)
    for told in stopped:
        raise told


def _end(self: TestRunner, *error: Any) -> None:
    """Let the task end before the event loop cancels what is left."""
    if self._runner_task is not None:
        self._send_stream.close()
    _exit(self, *error)


TestRunner._run_tests_and_fixtures = _run_tests_and_fixtures  # type: ignore[method-assign]
TestRunner.run_test = _run_test  # type: ignore[method-assign, assignment]
TestRunner.__exit__ = _end  # type: ignore[method-assign]
