"""The sessions that are in the hub's memory.

Owns when a session leaves memory: as soon as nothing needs it there, since the journal has all of
it. A command makes it again from the journal. Of a session whose process is idle, the state of the
run leaves memory after a while; what stays is its view and its hold on the process. There is never
more than one object for a session: a session that was released stays findable for as long as any
task holds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakValueDictionary

from quarterdeck.hub.session import Session


class LoadedSessions:
    """The sessions in memory, by their ids."""

    def __init__(self) -> None:
        self._kept: dict[str, Session] = {}
        self._alive: WeakValueDictionary[str, Session] = WeakValueDictionary()

    def __len__(self) -> int:
        """How many sessions are kept in memory."""
        return len(self._kept)

    def __iter__(self) -> Iterator[Session]:
        """The sessions that are kept; the set may change meanwhile."""
        return iter(list(self._kept.values()))

    def __contains__(self, id_: str) -> bool:
        return id_ in self._alive

    def __getitem__(self, id_: str) -> Session:
        return self._alive[id_]

    def get(self, id_: str) -> Session | None:
        """A session that is in memory, for whatever reason."""
        return self._alive.get(id_)

    def keep(self, session: Session) -> Session:
        """Keep a session in memory. If there is one with its id, that one is kept and returned.

        One that another hub has taken for good is not kept again.
        """
        known = self._alive.get(session.id)
        if known is not None and not known.disowned:
            session = known
        self._alive[session.id] = session
        self._kept[session.id] = session
        return session

    def forget(self, id_: str) -> None:
        """A session was deleted, or was never journalled."""
        self._kept.pop(id_, None)
        self._alive.pop(id_, None)

    def release(self, session: Session) -> None:
        """Let a session go if nothing needs it in memory, or the state of its run."""
        session.rest()
        if not session.needed:
            self._kept.pop(session.id, None)
