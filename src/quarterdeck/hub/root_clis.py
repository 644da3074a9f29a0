"""CLIs that connected to `/` at another hub, took no token of their own, and come back to this one.

Owns the search for their session in the journal. Such a CLI names the last message that it wanted
to send, and nothing else. Among the sessions of CLIs that connected to `/` and have a run
elsewhere, the one is looked for whose last lines have this message.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import msgspec

from quarterdeck.domain.structs import DECODE_ERRORS, Value
from quarterdeck.journal.base import Journal
from quarterdeck.protocol.events import RunStarting, Said
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import INBOUND

LAST_EVENTS = 200
"""Events of a run in which the message is looked for."""
MOST_SESSIONS = 200
"""Sessions that are looked at for one CLI, the newest first."""


class _Message(Value):
    uuid: str | None = None


async def session_with(
    journal: Journal, uuid: str, is_here: Callable[[SessionView], bool]
) -> str | None:
    """The session of a CLI at `/` that said this message, and is not of this hub."""
    looked = 0
    async for view in _running_views(journal):
        if view.machine != INBOUND or is_here(view):
            continue
        looked += 1
        if looked > MOST_SESSIONS:
            return None
        began = await journal.read(view.session, after=max(0, view.run_began - 1), limit=1)
        start = began[0].event if began else None
        if not isinstance(start, RunStarting) or not start.at_root:
            continue
        after = max(view.run_began - 1, view.head - LAST_EVENTS)
        for stored in await journal.read(view.session, after=after, limit=LAST_EVENTS):
            event = stored.event
            if isinstance(event, Said) and event.run == view.run and _uuid(event) == uuid:
                return view.session
    return None


async def _running_views(journal: Journal) -> AsyncIterator[SessionView]:
    after: str | None = None
    while page := await journal.summaries(after=after, limit=500, archived=None):
        after = page[-1].session
        for view in page:
            if view.run is not None:
                yield view


def _uuid(said: Said) -> str | None:
    try:
        return msgspec.json.decode(said.line, type=_Message).uuid
    except DECODE_ERRORS:
        return None
