"""Who sees and takes back the tokens of dialling CLIs: one by one, for people.

Owns what follows when a token is taken back: the CLI that came with it is sent away at once, and
the session's audit log says who did it. The tokens are in `cli_tokens`, the CLIs in `inbound_clis`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from anyio import to_thread

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import JournalError, NotFound
from quarterdeck.domain.structs import Value
from quarterdeck.hub.cli_tokens import ROOT, token_id
from quarterdeck.hub.decisions.inputs import Note
from quarterdeck.hub.inbound_clis import InboundClis
from quarterdeck.hub.session import Session
from quarterdeck.hub.shell import record
from quarterdeck.protocol.audit import ACCESS
from quarterdeck.protocol.session_view import SessionView

log = logging.getLogger(__name__)

NEW_SESSIONS = "CLIs that begin a session"


class CliTokenView(Value):
    """A token that a CLI uses."""

    id: str
    name: str
    """The session's name."""
    session: str
    """The session; `/`: the token for new ones."""
    since: float


class CliAccess:
    """The tokens of dialling CLIs. `view` and `find` give a session; they raise `NotFound`.

    `record` keeps a note that is about no session.
    """

    def __init__(
        self,
        clis: InboundClis,
        view: Callable[[str], Awaitable[SessionView]],
        find: Callable[[str], Awaitable[Session]],
        record: Callable[[Note], Awaitable[None]],
    ) -> None:
        self._clis = clis
        self._view = view
        self._find = find
        self._record = record

    async def tokens(self) -> list[CliTokenView]:
        """The tokens that were used, oldest first; those of deleted sessions are left out."""
        found: list[CliTokenView] = []
        for session, since in sorted(
            self._clis.tokens.used_tokens().items(), key=lambda each: each[1]
        ):
            name = NEW_SESSIONS
            if session != ROOT:
                try:
                    name = (await self._view(session)).name or session
                except NotFound:
                    continue
            found.append(
                CliTokenView(id=token_id(session), name=name, session=session, since=since)
            )
        return found

    async def revoke(self, session: str, by: str) -> None:
        """Take a token back. Raises `NotFound` for a session that there is not."""
        if session != ROOT:
            await self._view(session)
        await to_thread.run_sync(self._clis.tokens.revoke, session)
        await self._revoke(session, by)

    async def reload(self) -> None:
        """Take over what a command has taken back."""
        for session in await to_thread.run_sync(self._clis.tokens.reload):
            try:
                await self._revoke(session, "")
            except JournalError as error:  # it is revoked all the same
                log.error("session %s: not in its audit log: %s", session, error)

    async def note(self, session: str, coded: CodedText, *, by: str = "", about: str = "") -> None:
        """Write into a session's audit log that access to it was given, used or taken back.

        Without a session: what a person has changed for the whole hub. Raises `NotFound`.
        """
        entry = Note(level=ACCESS, coded=coded, by=by, about=about)
        if session:
            await record(await self._find(session), entry)
        else:
            await self._record(entry)

    async def _revoke(self, session: str, by: str) -> None:
        """`by` is empty for a command on the hub's machine."""
        self._clis.cut(session)
        if session == ROOT:
            coded = CodedText(code=TextCode.CLI_STARTS_REVOKED, name=by)
            await self._record(Note(level=ACCESS, coded=coded, by=by, about="token"))
        else:
            with suppress(NotFound):  # deleted meanwhile
                coded = CodedText(code=TextCode.CLI_ACCESS_REVOKED, name=by)
                await record(await self._find(session), Note(level=ACCESS, coded=coded))
