"""Who may write what, when several hubs share one journal. Pure.

Owns the records of it (owners, leases, shared values) and the rules that every engine applies in
the transaction of an append. Each number here comes from one counter of the journal, so a later
one is always higher: a machine's generation, the fence of a session or a lease, and the version of
a shared value. The engines store the records; nothing here knows how.

One hub on its own journal gives none of the conditions below, and nothing is checked.

The work of a singleton passes many hands before it is recorded: a retention rule gives a command, a
schedule writes to its store. Each record of it names the lease (`hold_lease`), so that the journal
refuses it once another hub took the lease over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from quarterdeck.domain.errors import StaleFence, StaleHead, StaleLease, UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.events import Event, RunStarting
from quarterdeck.protocol.sessions import LOCAL

_LONGEST = 256
PRESENT_MS = 20_000
"""A hub that announced nothing for so long is gone."""


class Owner(Value):
    """The hub that owns a session or a machine."""

    hub: str
    fence: int
    """The fence of the session, or the generation of the machine."""
    url: str = ""
    """Where the hub is reached, as it announced itself; empty if it did not."""


class HubPlace(Value):
    """A hub, as it announced itself."""

    hub: str
    url: str
    at: int
    """When it announced itself last, in ms since 1970, by the journal's clock. Each announcement of
    a hub has a later time, also if that clock was set back meanwhile."""
    age: int = 0
    """How long ago that was, in ms, by the journal's clock; negative if it was set back."""


class Lease(Value):
    """A lease that was taken: `append` with it stores nothing once another holder took it."""

    name: str
    fence: int


class SharedValue(Value):
    """A value of the shared store."""

    value: bytes
    version: int


class SharedChange(Value):
    """A value of the shared store that was changed; None: it was removed."""

    key: str
    value: bytes | None
    version: int


class SharedChanges(Value):
    """What was changed in a namespace, the oldest first.

    `whole`: these are all values, because removals that were asked for are not known any more. What
    is not among them is not there.
    """

    changes: tuple[SharedChange, ...]
    whole: bool = False


class Conditions(Value):
    """The conditions of an append. Without any, everything is stored."""

    after: int | None = None
    fence: int | None = None
    claim: str | None = None
    lease: Lease | None = None

    @property
    def asks_owner(self) -> bool:
        """Whether it depends on the owner of the session."""
        return self.fence is not None or self.claim is not None


def conditions_of(
    after: int | None, fence: int | None, claim: str | None, lease: Lease | None
) -> Conditions | None:
    """The conditions, or None if there are none. Raises `UsageError`."""
    if after is None and fence is None and claim is None and lease is None:
        return None
    if claim is not None:
        check_name(claim, "claim")
    return Conditions(after=after, fence=fence, claim=claim, lease=lease)


def check_name(name: str, what: str) -> None:
    """Refuse an invalid name of a hub, machine, lease or key. Raises `UsageError`."""
    if not 0 < len(name) <= _LONGEST or not name.isprintable() or not _encodes(name):
        raise UsageError(f"{what}: 1 to {_LONGEST} printable characters are wanted")


def check_head(conditions: Conditions, session: str, head: int) -> None:
    """Raises `StaleHead` if the session's last event is not the expected one."""
    if conditions.after is not None and conditions.after != head:
        raise StaleHead(session, head, conditions.after)


def check_lease(conditions: Conditions, fence: int | None, holder: str) -> None:
    """Compare with the fence and holder of the lease's row. Raises `StaleFence`."""
    if conditions.lease is not None:
        check_fence(conditions.lease, fence, holder)


def check_fence(lease: Lease, fence: int | None, holder: str) -> None:
    """Compare a lease with the fence and holder of its row. Raises `StaleLease`."""
    if lease.fence != fence:
        raise StaleLease(f"lease {lease.name}", holder)


def owner_after(
    conditions: Conditions, session: str, owner: Owner | None, running: bool
) -> tuple[str, bool]:
    """The owner of a session after an append, and whether that is new.

    `running`: the session has a run. Raises `StaleFence`: of a session with a run only the owner
    writes; another hub may claim a session without a run.
    """
    hub, fence = ("", 0) if owner is None else (owner.hub, owner.fence)
    if conditions.fence is not None and conditions.fence < fence:
        raise StaleFence(f"session {session}", hub)
    if conditions.claim is None or conditions.claim == hub:
        return hub, False
    if running and hub:
        raise StaleFence(f"session {session}", hub)
    return conditions.claim, True


def machines_of(events: Iterable[Event]) -> list[str]:
    """The machines on which these events start a run."""
    starts = (event for event in events if isinstance(event, RunStarting))
    return sorted({event.machine or LOCAL for event in starts})


def check_generation(machine: str, owner: Owner | None, after: int | None) -> None:
    """A machine is taken only from the owner that is known. Raises `StaleFence`."""
    if after is not None and after != (0 if owner is None else owner.fence):
        raise StaleFence(f"machine {machine}", "" if owner is None else owner.hub)


def check_machine(machine: str, owner: Owner | None, hub: str) -> None:
    """A run starts on no machine of another hub. Raises `StaleFence`.

    A machine without an owner has no runner: the CLI came to its hub by itself.
    """
    if owner is not None and owner.hub != hub:
        raise StaleFence(f"machine {machine}", owner.hub)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


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
