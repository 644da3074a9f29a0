"""Who waits for the answer to a control request, and what they get.

Each request ends once: answered, refused, lost with its process, or given up. Below `session`,
which sends requests and hears of their endings; it knows no process.
"""

from __future__ import annotations

from collections.abc import Iterable

import anyio
from msgspec import Raw

from quarterdeck.domain.errors import RequestCancelled, RequestRefused, RequestTimeout
from quarterdeck.wire.exchange import Abandoned, Answered, Ending, Lost, Refused


class Waiter:
    """The answer to one request, once it is there."""

    def __init__(self, subtype: str) -> None:
        self._subtype = subtype
        self._done = anyio.Event()
        self._ending: Ending | None = None

    def end(self, ending: Ending) -> None:
        """End the wait."""
        self._ending = ending
        self._done.set()

    async def wait(self, seconds: float) -> Raw:
        """The answer. Raises `RequestRefused`, `RequestCancelled` or `RequestTimeout`."""
        with anyio.move_on_after(seconds):
            await self._done.wait()
        match self._ending:
            case Answered(json=json):
                return json if json is not None else Raw(b"{}")
            case Refused(error=error, code=code):
                raise RequestRefused(self._subtype, error, code=code)
            case Lost(reason=reason) | Abandoned(reason=reason):
                raise RequestCancelled(self._subtype, reason)
            case None:
                raise RequestTimeout(self._subtype, seconds)


class Waiters:
    """Everybody who waits, by the id of their request."""

    def __init__(self) -> None:
        self._waiting: dict[str, Waiter] = {}
        self._expected: dict[str, Waiter] = {}
        """Also those whose answer is there, until their callers have it."""

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def expect(self, request_id: str, subtype: str) -> Waiter:
        """A caller will wait for this answer."""
        waiter = self._waiting[request_id] = self._expected[request_id] = Waiter(subtype)
        return waiter

    async def answer(self, request_id: str, seconds: float) -> Raw:
        """Wait for an expected answer. Raises what `Waiter.wait` does."""
        return await self._expected[request_id].wait(seconds)

    def forget(self, request_id: str) -> None:
        """The caller does not wait any more."""
        self._waiting.pop(request_id, None)
        self._expected.pop(request_id, None)

    def end_all(self, reason: str) -> None:
        """No answer can come here any more."""
        self.settle([(request_id, Lost(reason=reason)) for request_id in tuple(self._waiting)])

    def settle(self, endings: Iterable[tuple[str, Ending]]) -> None:
        """Requests have ended: end the waits for them."""
        for request_id, ending in endings:
            waiter = self._waiting.pop(request_id, None)
            if waiter is not None:
                waiter.end(ending)
