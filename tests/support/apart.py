"""Shared fixtures in tasks of their own, so that an error in one cannot end the tests' own task.

All asynchronous tests and fixtures of a worker run in one task. A fixture that holds a task group
there for many tests gives that group the right to cancel the task: one child that raises would
cancel whichever test runs. `apart` holds it in another task.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import TypeVar

import pytest

T = TypeVar("T")


class SharedFixtureEnded(Exception):
    """What a fixture holds for many tests has ended before them."""


class Hosted:
    """A context manager's value, and the task in which the manager is held."""

    def __init__(self, value: object, task: asyncio.Task[None]) -> None:
        self.value = value
        self.task = task

    def error(self) -> SharedFixtureEnded | None:
        """Why it has ended, or nothing while it is held."""
        if not self.task.done():
            return None
        error = SharedFixtureEnded(f"a shared fixture has ended: {type(self.value).__name__}")
        error.__cause__ = _cause(self.task)
        return error


_hosted: list[Hosted] = []


@asynccontextmanager
async def apart(manager: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
    """Hold `manager` in a task of its own, from here to the end of this context.

    Its error is raised at the end. A test that uses the value meanwhile fails at once, see
    `support.contained`. Exceptions of the body are not given to `manager`. If one of these holds
    another, both end with the inner one.
    """
    opened: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    leave = asyncio.Event()

    async def hold() -> None:
        async with manager as value:
            opened.set_result(value)
            await leave.wait()

    maker = asyncio.current_task()

    def end_what_holds_it(_: asyncio.Task[None]) -> None:
        if maker is not None and not leave.is_set() and any(maker is each.task for each in _hosted):
            maker.cancel("what it holds has ended")

    task = asyncio.create_task(hold())
    task.add_done_callback(end_what_holds_it)
    hosted: Hosted | None = None
    try:
        await asyncio.wait((task, opened), return_when=asyncio.FIRST_COMPLETED)
        if opened.done():
            hosted = Hosted(opened.result(), task)
            _hosted.append(hosted)
            yield opened.result()
    finally:
        early = hosted is not None and task.done()
        leave.set()
        if hosted is None:
            task.cancel()
        else:
            _hosted.remove(hosted)
        await asyncio.wait((task,))
        if early and hosted is not None and (error := hosted.error()):
            raise error
        if cause := _cause(task):
            raise cause


def used_by(item: pytest.Item) -> list[Hosted]:
    """What a test uses of that which is held now, by its fixtures or theirs."""
    info = getattr(item, "_fixtureinfo", None)
    if not _hosted or info is None:
        return []
    made = [each[-1].cached_result for each in info.name2fixturedefs.values()]
    values = [result[0] for result in made if result is not None]
    return [each for each in _hosted if any(each.value is value for value in values)]


@contextmanager
def cancelled_with(hosted: list[Hosted]) -> Iterator[None]:
    """Cancel the calling task as soon as one of these ends."""
    caller = asyncio.current_task()
    assert caller is not None

    def cancel(_: asyncio.Task[None]) -> None:
        caller.cancel("a shared fixture has ended")

    for each in hosted:
        each.task.add_done_callback(cancel)
    try:
        yield
    finally:
        for each in hosted:
            each.task.remove_done_callback(cancel)


def _cause(task: asyncio.Task[None]) -> BaseException | None:
    """The error of a task that has ended. A cancellation is told as one, and not passed on."""
    if task.cancelled():
        return SharedFixtureEnded("its task was cancelled")
    return task.exception()
