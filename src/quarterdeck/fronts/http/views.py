"""Folded sessions for the clients of the stream: which are due, and their JSON.

The hub folds a session; a client gets the result and folds nothing. Only session ids and numbers
wait here for a client that reads slowly: the view is read when it is sent, so it is the newest one.
Above is the connection; below is the hub. It does not know how a session is folded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

import msgspec

from quarterdeck.domain.errors import NotFound
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http.events import FRAME_BYTES, Events
from quarterdeck.fronts.http.shapes import session_shape
from quarterdeck.hub.api import HubApi
from quarterdeck.protocol.session_view import only_counts
from quarterdeck.protocol.stored_events import RawEvents


class EncodedView(Value):
    """A session's shape as JSON, and the number of the last event in it."""

    head: int
    json: bytes


class ViewCache:
    """The newest views that were sent, encoded once for all clients that follow a session."""

    KEPT = 256

    def __init__(self, hub: HubApi) -> None:
        self._hub = hub
        self._made: dict[str, EncodedView] = {}
        self._reading = asyncio.Lock()

    async def with_event(self, session: str, seq: int) -> EncodedView | None:
        """A view that has the event `seq` in it; None if the session was deleted."""
        async with self._reading:  # of many clients that need the same view, one reads it
            made = self._made.get(session)
            if made is not None and made.head >= seq:
                return made
            self._made.pop(session, None)
            view = self._hub.view(session)
            if view is None or view.head < seq:
                try:
                    view = await self._hub.session(session)
                except NotFound:
                    return None
            made = EncodedView(head=view.head, json=msgspec.json.encode(session_shape(view)))
            while len(self._made) >= self.KEPT:
                self._made.pop(next(iter(self._made)))
            self._made[session] = made
            return made


class PendingViews:
    """The sessions of one client whose view is due, each with an event that must be in it."""

    def __init__(self, cache: ViewCache) -> None:
        self._cache = cache
        self._due: dict[str, int] = {}
        self._sent: dict[str, int] = {}
        """The `head` of the last view that was sent of each session."""

    @property
    def pending(self) -> bool:
        """Whether there is a view to be sent."""
        return bool(self._due)

    def begin(self, heads: Mapping[str, int]) -> None:
        """These sessions are followed from now on; their last events are these."""
        self._due |= heads

    def note(self, events: Events) -> None:
        """These events were sent."""
        if isinstance(events, RawEvents):
            self._note(events.session, events.last)
            return
        for stored in events:
            if not only_counts(stored.event):
                self._note(stored.session, stored.seq)

    def forget(self, sessions: Collection[str], *, everything: bool = False) -> None:
        """These sessions are followed no more; or none is."""
        for session in {*self._sent, *self._due} if everything else sessions:
            self._due.pop(session, None)
            self._sent.pop(session, None)

    async def take(self) -> str | None:
        """A frame with views that are due, as many as fit; None if all of them were deleted."""
        views: list[bytes] = []
        size = 0
        while self._due and size < FRAME_BYTES:
            session, seq = next(iter(self._due.items()))
            view = await self._cache.with_event(session, seq)
            if self._due.get(session) != seq:
                continue  # unfollowed, or followed again, while the view was read
            del self._due[session]
            if view is None:
                self._sent.pop(session, None)
                continue
            self._sent[session] = view.head
            views.append(view.json)
            size += len(view.json)
        return f'{{"t":"views","sessions":[{b",".join(views).decode()}]}}' if views else None

    def _note(self, session: str, seq: int) -> None:
        # A view is often ahead of the events: it was read after more of them were stored.
        if seq > self._sent.get(session, 0):
            self._due[session] = seq
