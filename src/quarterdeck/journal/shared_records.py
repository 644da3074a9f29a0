"""The part of every engine that several hubs on one journal need: `base.Sharing`.

Owns the checks of its arguments. An engine gives the records (`SharingRecords`, blocking) and says
how they are changed and looked at. The rules of appends are in `ownership`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from quarterdeck.domain.errors import Conflict, JournalError, UsageError
from quarterdeck.journal.event_codec import check_session
from quarterdeck.journal.ownership import (
    HubPlace,
    Lease,
    Owner,
    SharedChanges,
    SharedValue,
    check_name,
)
from quarterdeck.protocol.sessions import LOCAL

_Answer = TypeVar("_Answer")

LONGEST_LEASE = 24 * 3600.0
LARGEST_VALUE = 64 * 1024 * 1024
"""Bytes of the shared values of one change, together."""
PRUNED = ""
"""The key of a namespace that tells up to which version removals are forgotten. No name is empty,
so no other value has it."""


class SharingRecords(Protocol):
    """The records of an engine. Each method is one step of a transaction."""

    def announce(self, hub: str, url: str) -> None:
        """Store where a hub is."""

    def hubs(self) -> list[HubPlace]:
        """The hubs, the latest first."""

    def forget_hub(self, hub: str) -> None:
        """Remove one."""

    def raise_fence(self, machine: str, hub: str, after: int | None, lease: Lease | None) -> int:
        """Give a machine, and its sessions with a run, to a hub. Raises before any change."""

    def take_over(self, session: str, hub: str) -> int:
        """Give a session to a hub. Raises `NotFound`."""

    def machine_owner(self, machine: str) -> Owner | None:
        """The owner of a machine."""

    def machine_owners(self) -> dict[str, Owner]:
        """The owners of all machines."""

    def owner(self, session: str) -> Owner | None:
        """The owner of a session."""

    def owners(self) -> dict[str, Owner]:
        """The owners of all sessions."""

    def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        """Take a lease."""

    def renew_lease(self, lease: Lease, seconds: float) -> bool:
        """Renew one."""

    def release_lease(self, lease: Lease) -> None:
        """Release one."""

    def shared_value(self, namespace: str, key: str) -> SharedValue | None:
        """A shared value."""

    def shared_values(self, namespace: str) -> dict[str, SharedValue]:
        """All of a namespace."""

    def shared_version(self, namespace: str) -> int:
        """The last version of a namespace."""

    def shared_changes(self, namespace: str, after: int) -> SharedChanges:
        """What was changed after a version."""

    def share(
        self,
        namespace: str,
        values: Mapping[str, bytes | None],
        expected: Mapping[str, int],
        lease: Lease | None,
    ) -> int:
        """Store values. Raises `Conflict` and `StaleFence` before anything is written."""

    def forget_removed(self, namespace: str, before: int) -> None:
        """Forget removals up to a version."""


class SharingJournal(ABC):
    """The `Sharing` of an engine."""

    @abstractmethod
    async def _change(self, work: Callable[[SharingRecords], _Answer]) -> _Answer:
        """Change the records, in one transaction that is durable when this returns."""

    @abstractmethod
    async def _look(self, question: Callable[[SharingRecords], _Answer]) -> _Answer:
        """Look at the records."""

    @property
    def trouble(self) -> JournalError | None:
        """Why it can be neither read nor written now; None: nothing is known to be wrong."""
        return None

    async def announce(self, hub: str, url: str) -> None:
        """Tell where this hub is."""
        check_name(hub, "hub")
        if url:
            check_name(url, "url")
        await self._change(lambda records: records.announce(hub, url))

    async def hubs(self) -> list[HubPlace]:
        """The hubs."""
        return await self._look(lambda records: records.hubs())

    async def forget_hub(self, hub: str) -> None:
        """Remove a hub's announcement."""
        check_name(hub, "hub")
        await self._change(lambda records: records.forget_hub(hub))

    async def raise_fence(
        self, machine: str, hub: str, *, after: int | None = None, lease: Lease | None = None
    ) -> int:
        """Give a machine to a hub."""
        name = machine or LOCAL
        check_name(name, "machine")
        check_name(hub, "hub")
        return await self._change(lambda records: records.raise_fence(name, hub, after, lease))

    async def take_over(self, session: str, hub: str) -> int:
        """Give a session to a hub."""
        check_session(session)
        check_name(hub, "hub")
        return await self._change(lambda records: records.take_over(session, hub))

    async def machine_owner(self, machine: str) -> Owner | None:
        """The owner of a machine."""
        return await self._look(lambda records: records.machine_owner(machine or LOCAL))

    async def machine_owners(self) -> dict[str, Owner]:
        """The owners of all machines."""
        return await self._look(lambda records: records.machine_owners())

    async def owner(self, session: str) -> Owner | None:
        """The owner of a session."""
        check_session(session)
        return await self._look(lambda records: records.owner(session))

    async def owners(self) -> dict[str, Owner]:
        """The owners of all sessions."""
        return await self._look(lambda records: records.owners())

    async def fence(self, session: str) -> int:
        """The fence of a session."""
        owner = await self.owner(session)
        return 0 if owner is None else owner.fence

    async def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        """Take a lease."""
        check_name(name, "name")
        check_name(holder, "holder")
        _check_seconds(seconds)
        return await self._change(lambda records: records.take_lease(name, holder, seconds))

    async def renew_lease(self, lease: Lease, seconds: float) -> bool:
        """Renew a lease."""
        _check_seconds(seconds)
        return await self._change(lambda records: records.renew_lease(lease, seconds))

    async def release_lease(self, lease: Lease) -> None:
        """Release a lease."""
        await self._change(lambda records: records.release_lease(lease))

    async def shared_value(self, namespace: str, key: str) -> SharedValue | None:
        """A shared value."""
        return await self._look(lambda records: records.shared_value(namespace, key))

    async def shared_values(self, namespace: str) -> dict[str, SharedValue]:
        """All shared values of a namespace."""
        return await self._look(lambda records: records.shared_values(namespace))

    async def shared_version(self, namespace: str) -> int:
        """The version of a namespace's last change."""
        return await self._look(lambda records: records.shared_version(namespace))

    async def shared_changes(self, namespace: str, *, after: int = 0) -> SharedChanges:
        """What was changed in a namespace after a version."""
        return await self._look(lambda records: records.shared_changes(namespace, after))

    async def share(
        self,
        namespace: str,
        key: str,
        value: bytes | None,
        *,
        expected: int | None = None,
        lease: Lease | None = None,
    ) -> int:
        """Store a shared value."""
        known = {} if expected is None else {key: expected}
        return await self.share_all(namespace, {key: value}, expected=known, lease=lease)

    async def share_all(
        self,
        namespace: str,
        values: Mapping[str, bytes | None],
        *,
        expected: Mapping[str, int] | None = None,
        lease: Lease | None = None,
    ) -> int:
        """Store several values of a namespace, all or none."""
        check_name(namespace, "namespace")
        for key in values:
            check_name(key, "key")
        if not values or not values.keys() >= (expected or {}).keys():
            raise UsageError("values: at least one is wanted, and each that is expected")
        if sum(len(value or b"") for value in values.values()) > LARGEST_VALUE:
            raise UsageError(f"{namespace}: more than {LARGEST_VALUE} bytes cannot be shared")
        given, known = dict(values), dict(expected or {})
        return await self._change(lambda records: records.share(namespace, given, known, lease))

    async def forget_removed(self, namespace: str, *, before: int) -> None:
        """Forget which values were removed up to a version."""
        check_name(namespace, "namespace")
        await self._change(lambda records: records.forget_removed(namespace, before))


def changed_value(namespace: str, key: str) -> Conflict:
    """The error of a value that is not the expected one."""
    return Conflict("changed", f"{namespace}/{key} was changed meanwhile; nothing was stored")


def _check_seconds(seconds: float) -> None:
    if not 0 < seconds <= LONGEST_LEASE:
        raise UsageError(f"seconds: must be a number above 0, at most {LONGEST_LEASE:g}")
