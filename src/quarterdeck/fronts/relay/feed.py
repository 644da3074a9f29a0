"""Which events a frontend gets: of some sessions, or of all that have a CLI, old ones first.

It keeps numbers and no events: followers of the hub read the journal at the frontend's speed, so a
frontend that stops reading costs nothing here. Above is the connection; below is the hub.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from urllib.parse import parse_qs

from quarterdeck.domain.errors import NotFound, UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.relay.outbound import Joined
from quarterdeck.hub.api import HubApi
from quarterdeck.protocol.events import RunStarting
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.protocol.views import AskView

MOST_SESSIONS = 100
PAGE = 500
CONTEXT = 200
"""So many events before the place where a frontend reads on are looked at, to know the run and the
conversation there."""
_LARGEST = 2**63 - 1
_KNOWN = frozenset({"session", "after", "epoch", "positions", "pieces"})


class Wanted(Value):
    """What a frontend asks for in its address."""

    sessions: tuple[str, ...] = ()
    """Empty: all that have a CLI, and those that get one."""
    after: int | None = None
    """With one session the number of an event in it, otherwise a position in the journal."""
    epoch: str | None = None
    """The journal that `after` is of."""
    positions: bool = False
    pieces: bool = True


def wanted_in(query: bytes) -> Wanted:
    """Read the query of an address. Raises `UsageError`."""
    try:
        found: Mapping[str, list[str]] = parse_qs(
            query.decode("ascii"), keep_blank_values=True, max_num_fields=2 * MOST_SESSIONS
        )
    except (ValueError, UnicodeDecodeError) as error:
        raise UsageError(f"query: {error}") from error
    if unknown := sorted(found.keys() - _KNOWN):
        raise UsageError(f"{unknown[0][:40]}: unknown; known are {', '.join(sorted(_KNOWN))}")
    sessions = tuple(dict.fromkeys(found.get("session", ())))
    if len(sessions) > MOST_SESSIONS:
        raise UsageError(f"session: at most {MOST_SESSIONS}")
    after = found.get("after")
    if after is not None and len(sessions) > 1:
        raise UsageError("after: with one session, or with none")
    return Wanted(
        sessions=sessions,
        after=None if after is None else _number("after", after),
        epoch=found.get("epoch", [None])[0],
        positions=_flag("positions", found.get("positions", ["0"])),
        pieces=_flag("pieces", found.get("pieces", ["1"])),
    )


def _number(name: str, given: list[str]) -> int:
    if len(given) != 1 or not given[0].isascii() or not given[0].isdigit() or len(given[0]) > 19:
        raise UsageError(f"{name}: must be 0 or more")
    number = int(given[0])
    if number > _LARGEST:
        raise UsageError(f"{name}: must be 0 or more")
    return number


def _flag(name: str, given: list[str]) -> bool:
    if len(given) != 1 or given[0] not in {"0", "1"}:
        raise UsageError(f"{name}: must be 0 or 1")
    return given[0] == "1"


class Feed:
    """The events for one frontend. Call `begin` first, then iterate over `batches` once."""

    def __init__(self, hub: HubApi, wanted: Wanted) -> None:
        self._hub = hub
        self._wanted = wanted
        self.joined = Joined()
        self.connected: list[SessionView] = []
        """Sessions with a CLI of which the start is not among the events that follow."""
        self.running: list[SessionView] = []
        """Sessions with a CLI, the newest first."""
        self.asks: list[AskView] = []
        """The open questions."""
        self._shown: set[str] = set()

    async def begin(self) -> None:
        """Look at what is there. Raises `NotFound` and `UsageError` for what cannot be followed."""
        wanted, hub = self._wanted, self._hub
        if wanted.epoch is not None and wanted.epoch != hub.epoch:
            raise UsageError("epoch: this is another journal; read from the start, without after")
        position = hub.position
        views = [await hub.session(session) for session in wanted.sessions]
        if not views:
            views = [view async for view in self._all_running()]
        self.running = [view for view in views if view.run is not None]
        self.asks = await hub.asks()
        self.joined = Joined(
            position=position,
            runs=frozenset(view.run for view in self.running if view.run is not None),
            asks=frozenset(ask.opened.ask for ask in self.asks),
        )
        if wanted.after is not None:
            if wanted.after > (views[0].head if wanted.sessions else position):
                raise UsageError("after: there is no such event yet")
            for view in self.running:
                if await self._began(view) <= wanted.after:
                    self.connected.append(view)

    async def _began(self, view: SessionView) -> int:
        """When the run of a session began, counted as `after` is."""
        if self._wanted.sessions:
            return view.run_began
        first = await self._hub.events(view.session, after=max(0, view.run_began - 1), limit=1)
        return first[0].position if first else 0

    async def _all_running(self) -> AsyncIterator[SessionView]:
        after: str | None = None
        while page := await self._hub.sessions(after=after, limit=PAGE):
            after = page[-1].session
            for view in page:
                if view.run is not None:
                    yield view

    async def before(self, session: str, seq: int) -> list[Stored]:
        """Some events of a session up to this number, to know where it is there."""
        found: list[Stored] = []
        at = max(0, seq - CONTEXT)
        while at < seq:
            page = await self._hub.events(session, after=at, limit=seq - at)
            if not page:
                break
            found += page
            at = page[-1].seq
        return found

    async def batches(self) -> AsyncGenerator[list[Stored], None]:
        """The events, in the order of each session. It ends when the hub stops."""
        wanted = self._wanted
        if wanted.sessions:
            after = wanted.after or 0
            follower = self._hub.follow(dict.fromkeys(wanted.sessions, after))
            async for batch in follower:
                yield batch
            return
        start = self.joined.position if wanted.after is None else wanted.after
        follower = self._hub.follow(after=start)
        if wanted.after is None:
            for view in reversed(self.running):
                async for batch in self._history(view.session, start):
                    yield batch
        async for batch in follower:
            shown: list[Stored] = []
            for stored in batch:
                if self._is_hidden(stored):
                    continue
                if stored.session not in self._shown and wanted.after is None:
                    if shown:
                        yield shown
                    shown = []
                    async for past in self._history(stored.session, stored.position - 1):
                        yield past
                shown.append(stored)
            if shown:
                yield shown

    def _is_hidden(self, stored: Stored) -> bool:
        """Whether a session is not shown: it has no CLI, and did not get one yet."""
        if self._wanted.after is not None or stored.session in self._shown:
            return False
        return not isinstance(stored.event, RunStarting)

    async def _history(self, session: str, until: int) -> AsyncIterator[list[Stored]]:
        """The events of a session up to a position."""
        self._shown.add(session)
        after = 0
        while True:
            try:
                page = await self._hub.events(session, after=after, limit=PAGE)
            except NotFound:
                return  # deleted meanwhile
            past = [stored for stored in page if stored.position <= until]
            if past:
                after = past[-1].seq
                yield past
            if len(past) < len(page) or not page:
                return
