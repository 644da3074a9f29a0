"""The audit entries that no CLI causes: calls at `/mcp`, and what people change. Below `hub`.

An entry is in the journal of the session that it is about. One that is about no session, or about
one that there is not, is in a session of its own, which is archived from the start and has no
agent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from quarterdeck.domain.errors import NotFound
from quarterdeck.domain.ids import new_id
from quarterdeck.hub.session import Session
from quarterdeck.protocol.events import Decided, Event, Noted, SessionArchived, SessionCreated
from quarterdeck.protocol.machines import PROGRAM
from quarterdeck.protocol.sessions import SessionSpec

RECORD = "calls-at-mcp"
NAME = "Calls at /mcp"
CHANGES = "changes-of-the-hub"
CHANGES_NAME = "Changes by people"
BY = "quarterdeck"


class CallRecord:
    """Writes the entries.

    `find` gives a session, `make` one that is to be created, and `forget` drops one that was not.
    """

    def __init__(
        self,
        find: Callable[[str], Awaitable[Session]],
        make: Callable[[str], Session],
        forget: Callable[[str], None],
        *,
        record: str = RECORD,
        name: str = NAME,
    ) -> None:
        self._find = find
        self._make = make
        self._forget = forget
        self._first = self._record = record
        self._name = name

    async def add(self, entry: Decided | Noted, session: str | None = None) -> None:
        """Keep an entry, in the journal of a session if there is one."""
        if session is not None:
            try:
                await (await self._find(session)).record(entry)
            except NotFound:
                pass
            else:
                return
        try:
            await self._add_to_record(entry)
        except NotFound:  # a person has deleted it, and an id is never used again
            self._forget(self._record)
            self._record = f"{self._first}-{new_id()}"
            await self._add_to_record(entry)

    async def _add_to_record(self, entry: Decided | Noted) -> None:
        try:
            record = await self._find(self._record)
        except NotFound:
            record = self._make(self._record)
        async with record.in_order():
            events: list[Event] = [entry]
            if not record.known:
                spec = SessionSpec(directory="/", name=self._name, machine=PROGRAM, restart="never")
                created = SessionCreated(spec=spec, by=BY)
                events = [created, SessionArchived(archived=True, by=BY), entry]
            await record.append(events)
