"""A link for a program that runs on trio: the link lives on an asyncio loop in a thread.

Links belong to asyncio. The SDK also runs on trio, so calls are passed to a loop of the link's own
and their results are passed back. Owns that thread and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar, cast

import anyio
import anyio.to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal
from anyio.lowlevel import current_token

from quarterdeck.links.base import Closing, Dropped, Link, Resumed

T = TypeVar("T")


class _Loop(Protocol):
    """The part of trio's token that is used; any thread may call it."""

    def run_sync_soon(self, function: Callable[..., object], *given: object) -> object: ...


def is_asyncio() -> bool:
    """Whether the running event loop is asyncio's."""
    return isinstance(current_token().native_token, asyncio.AbstractEventLoop)


def from_loop(function: Callable[[str], object]) -> Callable[[str], object]:
    """A function for another thread that runs `function` on the loop that runs now."""
    if is_asyncio():
        return function
    loop = cast("_Loop", current_token().native_token)
    return lambda text: loop.run_sync_soon(function, text)


class ThreadedLink(Closing):
    """A link on an asyncio loop of its own, for callers on another kind of loop."""

    def __init__(self, thread: AbstractContextManager[BlockingPortal]) -> None:
        self._thread = thread
        self._portal: BlockingPortal | None = None
        self._link: Link | None = None

    @classmethod
    async def start(cls, start: Callable[[], Awaitable[Link]]) -> ThreadedLink:
        """Begin a thread and start the link in it."""
        self = cls(start_blocking_portal("asyncio"))
        with anyio.CancelScope(shield=True):
            self._portal = await anyio.to_thread.run_sync(self._thread.__enter__)
        try:
            self._link = await self._call(start)
        except BaseException:
            await self._end_thread()
            raise
        return self

    @property
    def resumable(self) -> bool:
        """As the link."""
        return self._link is not None and self._link.resumable

    @property
    def inner(self) -> Link | None:
        """The link itself, which is another thread's: only its plain values may be read."""
        return self._link

    async def receive(self) -> bytes | Dropped | Resumed:
        """As the link."""
        assert self._link is not None
        return await self._call(self._link.receive)

    async def send(self, data: bytes) -> None:
        """As the link."""
        link = self._link
        assert link is not None
        await self._call(lambda: link.send(data))

    async def end_input(self) -> None:
        """As the link."""
        assert self._link is not None
        await self._call(self._link.end_input)

    async def close(self) -> None:
        """Close the link, then end its thread."""
        if self._portal is None:
            return
        with anyio.CancelScope(shield=True):
            try:
                if self._link is not None:
                    await self._call(self._link.close)
            finally:
                await self._end_thread()

    async def _end_thread(self) -> None:
        self._portal = None
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._thread.__exit__, None, None, None)

    async def _call(self, function: Callable[[], Awaitable[T]]) -> T:
        assert self._portal is not None
        loop = cast("_Loop", current_token().native_token)
        done = anyio.Event()
        future = self._portal.start_task_soon(function)
        future.add_done_callback(lambda _: loop.run_sync_soon(done.set))
        try:
            await done.wait()
        except BaseException:
            future.cancel()
            raise
        return future.result()
