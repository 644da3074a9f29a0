"""How the C library gives memory back to the system: for processes that run for months.

By default glibc keeps freed blocks in its heap: the larger the blocks that were freed, the larger
those that it keeps, and each thread gets a heap of its own. A hub and a runner build frames of up
to half a megabyte in several threads, so that their memory grows with every new coincidence of
large frames, although little of it is in use. With fixed limits, large blocks are returned at once.
"""

from __future__ import annotations

import os

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""The parameters of `mallopt`, as in `malloc.h`."""

MMAP_BYTES = 256 * 1024
"""A block of this size or more is memory of its own, which is returned when it is freed."""
TRIM_BYTES = 1024 * 1024
"""So much free memory at the end of the heap is kept."""
ARENAS = 2
"""Heaps of all threads together. Threads of these processes rarely allocate at the same time."""


def bound_free_memory() -> bool:
    """Set the limits; False where the C library has none, or the environment sets its own."""
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return False
    import ctypes  # here: nobody else needs it

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    values = ((_ARENA_MAX, ARENAS), (_MMAP_THRESHOLD, MMAP_BYTES), (_TRIM_THRESHOLD, TRIM_BYTES))
    done = [mallopt(parameter, value) for parameter, value in values]
    return all(each == 1 for each in done)
