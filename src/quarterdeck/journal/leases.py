"""The lease under which a piece of work is done, for those who record it.

A singleton's work passes many hands before it is recorded: a retention rule gives a command, a
schedule writes to its store. Each record of it names the lease, so that the journal refuses it once
another hub took the lease over. What is recorded otherwise (the sessions that a schedule started go
on after it) asks for a lease by its name, and does not get that of another singleton.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from quarterdeck.journal.ownership import Lease

_held: ContextVar[Lease | None] = ContextVar("held", default=None)


@contextmanager
def hold_lease(lease: Lease) -> Iterator[None]:
    """What is done in the block is done under this lease, also in its threads and tasks."""
    token = _held.set(lease)
    try:
        yield
    finally:
        _held.reset(token)


def lease_for(name: str) -> Lease | None:
    """The lease of this name, if what runs here is done under it."""
    lease = _held.get()
    return lease if lease is not None and lease.name == name else None
