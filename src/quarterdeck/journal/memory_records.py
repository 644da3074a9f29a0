"""The records that hubs share, in memory: `shared_records.SharingRecords`, for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from quarterdeck.domain.errors import NotFound
from quarterdeck.journal.ownership import (
    Conditions,
    HubPlace,
    Lease,
    Owner,
    SharedChange,
    SharedChanges,
    SharedValue,
    check_fence,
    check_generation,
    check_head,
    check_lease,
    check_machine,
    machines_of,
    owner_after,
)
from quarterdeck.journal.shared_records import changed_value
from quarterdeck.protocol.events import Event


class MemoryRecords:
    """The records. `runs` gives the sessions with the machines of their runs; None: no run."""

    def __init__(
        self, clock: Callable[[], float], runs: Callable[[], dict[str, str | None]]
    ) -> None:
        self._clock = clock
        self._runs = runs
        self._tick = 0
        self._hubs: dict[str, HubPlace] = {}
        self._machines: dict[str, Owner] = {}
        self._owners: dict[str, Owner] = {}
        self._leases: dict[str, tuple[str, int, float]] = {}
        self._shared: dict[tuple[str, str], SharedChange] = {}
        self._versions: dict[str, int] = {}
        self._pruned: dict[str, int] = {}

    def admit(
        self,
        conditions: Conditions,
        session: str,
        head: int,
        running: bool,
        events: Sequence[Event],
    ) -> None:
        """Check the conditions of an append, then note a claim. Raises before any change."""
        check_head(conditions, session, head)
        if conditions.lease is not None:
            holder, fence, _ = self._leases.get(conditions.lease.name, ("", None, 0.0))
            check_lease(conditions, fence, holder)
        if not conditions.asks_owner:
            return
        hub, new = owner_after(conditions, session, self._owners.get(session), running)
        for machine in machines_of(events):
            check_machine(machine, self._machines.get(machine), hub)
        if new:
            self._owners[session] = Owner(hub=hub, fence=self._next())

    def announce(self, hub: str, url: str) -> None:
        """Store where a hub is."""
        known = self._hubs.get(hub)
        at = max(int(self._clock() * 1000), 0 if known is None else known.at + 1)
        self._hubs[hub] = HubPlace(hub=hub, url=url, at=at)

    def hubs(self) -> list[HubPlace]:
        """The hubs, the latest first."""
        now = int(self._clock() * 1000)
        found = (replace(place, age=now - place.at) for place in self._hubs.values())
        return sorted(found, key=lambda place: (-place.at, place.hub))

    def forget_hub(self, hub: str) -> None:
        """Remove one."""
        self._hubs.pop(hub, None)

    def raise_fence(self, machine: str, hub: str, after: int | None, lease: Lease | None) -> int:
        """Give a machine, and its sessions with a run, to a hub."""
        self._check(lease)
        check_generation(machine, self._machines.get(machine), after)
        owner = Owner(hub=hub, fence=self._next())
        self._machines[machine] = owner
        for session, of in self._runs().items():
            if of == machine:
                self._owners[session] = owner
        return owner.fence

    def take_over(self, session: str, hub: str) -> int:
        """Give a session to a hub."""
        if session not in self._runs():
            raise NotFound("session", session)
        owner = self._owners[session] = Owner(hub=hub, fence=self._next())
        return owner.fence

    def machine_owner(self, machine: str) -> Owner | None:
        """The owner of a machine."""
        return self._owner_at(self._machines.get(machine))

    def machine_owners(self) -> dict[str, Owner]:
        """The owners of all machines."""
        found = ((machine, self._owner_at(owner)) for machine, owner in self._machines.items())
        return {machine: owner for machine, owner in found if owner is not None}

    def owner(self, session: str) -> Owner | None:
        """The owner of a session."""
        return self._owner_at(self._owners.get(session))

    def owners(self) -> dict[str, Owner]:
        """The owners of all sessions."""
        found = ((session, self._owner_at(owner)) for session, owner in self._owners.items())
        return {session: owner for session, owner in found if owner is not None}

    def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        """Take a lease."""
        had, _, until = self._leases.get(name, (holder, 0, 0.0))
        now = self._clock()
        if had != holder and until > now:
            return None
        self._leases[name] = (holder, self._next(), now + seconds)
        return Lease(name=name, fence=self._tick)

    def renew_lease(self, lease: Lease, seconds: float) -> bool:
        """Renew one."""
        holder, fence, _ = self._leases.get(lease.name, ("", None, 0.0))
        if fence != lease.fence:
            return False
        self._leases[lease.name] = (holder, lease.fence, self._clock() + seconds)
        return True

    def release_lease(self, lease: Lease) -> None:
        """Release one."""
        if self._leases.get(lease.name, ("", None, 0.0))[1] == lease.fence:
            del self._leases[lease.name]

    def shared_value(self, namespace: str, key: str) -> SharedValue | None:
        """A shared value."""
        return _value_of(self._shared.get((namespace, key)))

    def shared_values(self, namespace: str) -> dict[str, SharedValue]:
        """All of a namespace."""
        found = sorted(self._shared.items(), key=lambda item: item[0])
        values = {key: _value_of(change) for (of, key), change in found if of == namespace}
        return {key: value for key, value in values.items() if value is not None}

    def shared_changes(self, namespace: str, after: int) -> SharedChanges:
        """What was changed after a version."""
        whole = after < self._pruned.get(namespace, 0)
        found = [
            change
            for (of, _), change in self._shared.items()
            if of == namespace and (change.value is not None if whole else change.version > after)
        ]
        found.sort(key=lambda change: (change.version, change.key))
        return SharedChanges(changes=tuple(found), whole=whole)

    def shared_version(self, namespace: str) -> int:
        """The last version of a namespace."""
        return self._versions.get(namespace, 0)

    def share(
        self,
        namespace: str,
        values: Mapping[str, bytes | None],
        expected: Mapping[str, int],
        lease: Lease | None,
    ) -> int:
        """Store values."""
        self._check(lease)
        for key, wanted in expected.items():
            known = self.shared_value(namespace, key)
            if wanted != (0 if known is None else known.version):
                raise changed_value(namespace, key)
        version = self._versions[namespace] = self._next()
        for key, value in values.items():
            change = SharedChange(key=key, value=value, version=version)
            self._shared[namespace, key] = change
        return version

    def forget_removed(self, namespace: str, before: int) -> None:
        """Forget removals up to a version."""
        self._pruned[namespace] = max(before, self._pruned.get(namespace, 0))
        for name, change in list(self._shared.items()):
            if name[0] == namespace and change.value is None and change.version <= before:
                del self._shared[name]

    def _check(self, lease: Lease | None) -> None:
        if lease is not None:
            holder, fence, _ = self._leases.get(lease.name, ("", None, 0.0))
            check_fence(lease, fence, holder)

    def _next(self) -> int:
        self._tick += 1
        return self._tick

    def _owner_at(self, owner: Owner | None) -> Owner | None:
        if owner is None or (place := self._hubs.get(owner.hub)) is None:
            return owner
        return replace(owner, url=place.url)


def _value_of(change: SharedChange | None) -> SharedValue | None:
    if change is None or change.value is None:
        return None
    return SharedValue(value=change.value, version=change.version)
