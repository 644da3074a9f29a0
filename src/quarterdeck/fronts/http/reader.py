"""The sessions that one client of the stream follows, and its cursors.

It holds numbers and no events: the hub's followers read the journal at the client's speed, so
a client that stops reading costs nothing here. Above is the connection; below is the hub.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from quarterdeck.fronts.http.events import Events
from quarterdeck.hub.api import Follower, HubApi
from quarterdeck.protocol.stored_events import RawEvents, Stored


class Reader:
    """Sessions, each after its number; or all from now on, some of them after their number first.

    One task calls `next`. The followed sessions may change while it waits; the caller then
    cancels it, since it may wait for a session that is no longer followed.
    """

    def __init__(self, hub: HubApi) -> None:
        self._hub = hub
        self._cursors: dict[str, int] = {}
        self._everything = False
        self._follower: Follower | None = None
        self._behind: set[str] = set()
        """While all are followed: sessions whose history comes first."""
        self._history: Follower | None = None
        """Reads it."""

    @property
    def everything(self) -> bool:
        """Whether all sessions are followed."""
        return self._everything

    @property
    def sessions(self) -> int:
        """How many are followed by name."""
        return len(self._cursors)

    def wants(self, session: str) -> bool:
        """Whether a session is followed."""
        return self._everything or session in self._cursors

    def follow(
        self, cursors: Mapping[str, int], *, everything: bool = False, after: int | None = None
    ) -> None:
        """Follow these too, each after its number, also if they were followed from another.

        With `everything` all others too, from now on or after a position.
        Raises `UsageError` for a number that the journal has not come to; nothing changes then.
        """
        together = self._cursors | dict(cursors)
        if everything or self._everything:
            if not self._everything:
                # First the bell, then the history: what happens in between comes twice, and is
                # told apart by its number.
                self._follower = self._hub.follow(after=after)
                self._behind = set(together)
            else:
                self._behind |= cursors.keys()
            self._everything = True
        else:
            self._follower = self._hub.follow(together) if together else None
        self._cursors = together
        self._read_history()

    def unfollow(self, sessions: Collection[str], *, everything: bool = False) -> None:
        """Follow these no more; or none at all. While all are followed, these are too."""
        kept = {session: seq for session, seq in self._cursors.items() if session not in sessions}
        self._behind &= kept.keys()
        self._cursors = {} if everything else kept
        if everything:
            self._everything, self._follower, self._behind = False, None, set()
        elif not self._everything:
            self._follower = self._hub.follow(kept) if kept else None
        self._read_history()

    async def next(self) -> Events:
        """The next events; none when the hub stops. A cancelled wait loses nothing."""
        while True:
            follower = self._source()
            if follower is None:
                await asyncio.Event().wait()  # until the wait is cancelled, to follow something
                continue
            batch: Events = await follower.next_text()
            if follower not in (self._history, self._follower):
                continue  # another took its place, and begins where we are
            if not batch:
                return []
            if isinstance(batch, RawEvents):
                self._cursors[batch.session] = batch.last
                return batch
            if follower is not self._history:
                batch = [stored for stored in batch if self._is_new(stored)]
            for stored in batch:
                if stored.session in self._cursors:
                    self._cursors[stored.session] = stored.seq
            if batch:
                return batch

    def _read_history(self) -> None:
        """Read it from where we are."""
        cursors = {session: self._cursors[session] for session in self._behind}
        self._history = self._hub.follow(cursors) if cursors else None

    def _source(self) -> Follower | None:
        """Who has the next events. None: nothing is followed."""
        if self._history is not None and not self._history.behind:
            self._history, self._behind = None, set()
        return self._history or self._follower

    def _is_new(self, stored: Stored) -> bool:
        # What is behind reads the journal up to its end, and this is in it.
        return stored.session not in self._behind and stored.seq > self._cursors.get(
            stored.session, 0
        )
