"""Work on large texts, off the event loop.

One pass over a text of 32 MiB (a copy, a search, a scan as JSON) takes 5 to 60 ms of a processor,
and a prompt of that size needs a dozen. A thread does not make a pass shorter, and nobody else runs
during it; but between two passes the event loop runs, which on the loop itself it would not. So the
loop waits for one pass at most. What is small is done at once: a thread would cost more than it.

What is done in `off_loop` must be a sequence of short calls, each of which goes over the text once.
What can only be done on the loop, such as to send a large message, waits for `large_turn` first: in
one round of the loop every task that is ready runs, and all of them may have something large.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

LARGE = 1024 * 1024
"""Bytes from which it is worth a thread: a pass over fewer takes about a millisecond."""
THREADS = 2
"""Of their own: nothing else waits for a large text. More would only share the interpreter."""

_T = TypeVar("_T")
_Args = TypeVarTuple("_Args")

_limiter: RunVar[CapacityLimiter] = RunVar("large texts")
_turns: RunVar[asyncio.Lock] = RunVar("turns of large texts")


async def off_loop(size: int, work: Callable[[*_Args], _T], *args: *_Args) -> _T:
    """Call `work`, which goes over so many bytes: at once if they are few, else in a thread."""
    if size < LARGE:
        return work(*args)
    limiter = _limiter.get(None)
    if limiter is None:
        limiter = CapacityLimiter(THREADS)
        _limiter.set(limiter)
    return await to_thread.run_sync(work, *args, limiter=limiter)


async def large_turn(size: int) -> None:
    """Return in a round of the event loop in which no other caller does something large.

    What is done until the caller next waits is done alone. For few bytes it returns at once.
    """
    if size < LARGE:
        return
    turns = _turns.get(None)
    if turns is None:
        turns = asyncio.Lock()
        _turns.set(turns)
    async with turns:
        await asyncio.sleep(0)
