"""The audit entries that no CLI causes: calls at `/mcp`, and what people change. Below `hub`.

An entry is in the journal of the session that it is about. One that is about no session, or about
one that there is not, is in a session of its own, which is archived from the start and has no
agent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from quarterdeck.domain.errors import NotFound
from quarterdeck.domain.ids import new_id
from quarterdeck.hub.decisions.inputs import Note, RecordCall
from quarterdeck.hub.session import Session
from quarterdeck.hub.shell import record
from quarterdeck.protocol.events import Decided, SessionCreated
from quarterdeck.protocol.sessions import PROGRAM, SessionSpec

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

    async def add_note(self, note: Note) -> None:
        """Keep a note that is about no session."""
        await self._keep(note)

    async def add(self, entry: Decided, session: str | None = None) -> None:
        """Keep the entry of a call, in the journal of a session if there is one."""
        call = RecordCall(entry=entry)
        if session is not None:
            try:
                await record(await self._find(session), call)
            except NotFound:
                pass
            else:
                return
        await self._keep(call)

    async def _keep(self, entry: Note | RecordCall) -> None:
        try:
            await self._add_to_record(entry)
        except NotFound:  # a person has deleted it, and an id is never used again
            self._forget(self._record)
            self._record = f"{self._first}-{new_id()}"
            await self._add_to_record(entry)

    async def _add_to_record(self, entry: Note | RecordCall) -> None:
        try:
            session = await self._find(self._record)
        except NotFound:
            session = self._make(self._record)
        spec = SessionSpec(directory="/", name=self._name, machine=PROGRAM, restart="never")
        created = SessionCreated(spec=spec, by=BY)
        await record(session, replace(entry, created=created))
