"""What a frontend is told of a session: lines, made from the session's events. Pure.

Lines of the CLI are passed on as the journal has them; only a `session_id` is added to those that
have none, so that several agents on one connection can be told apart. What is between the hub and
the CLI alone (hooks, answers to the hub's requests) is left out. A permission request is told when
it is put to people, and withdrawn when another person has answered it; so a frontend never sees a
request that a rule has decided.

One `Lines` belongs to one connection: what is folded here depends on where it began to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Raw, Struct

from quarterdeck.domain.structs import DECODE_ERRORS, Value
from quarterdeck.protocol.coded_texts import end_text
from quarterdeck.protocol.events import (
    AskAnswered,
    AskOpened,
    AskWithdrawn,
    CliSession,
    Event,
    Recalled,
    RunEnded,
    RunStarted,
    RunStarting,
    Said,
    SaidBroken,
    Sent,
    SessionCreated,
    SessionDeleted,
)
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import INBOUND
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.protocol.views import AskView
from quarterdeck.wire.rawjson import replace_lone_surrogates

CONNECTED = "claude code connected"
IS_CONNECTED = "claude code is connected"
DISCONNECTED = "claude code disconnected"
CHANGED = "claude code session changed"
FORKED = "claude code session forked"
BROKEN = "claude code sent a broken line"

_PRIVATE = frozenset(
    {
        "control_request",
        "control_response",
        "control_cancel_request",
        "keep_alive",
        "transcript_mirror",
    }
)
"""Types of lines that are between the hub and its CLI. Requests to people come with `AskOpened`."""
_OURS = frozenset({"status", "error", "position"})
"""Types of lines that the relay itself sends. A CLI that sends one would speak for the relay."""
_ECHOES_KEPT = 200


class _Header(Struct):
    type: str
    session_id: str | None = None
    uuid: str | None = None


_header = msgspec.json.Decoder(_Header)


class Joined(Value):
    """What held when a frontend came: it was not there for anything up to `position`."""

    position: int = 0
    runs: frozenset[str] = frozenset()
    """The runs that were going on."""
    asks: frozenset[str] = frozenset()
    """The questions that were open. Those that were settled before are not told any more."""


class SessionLines:
    """What was told of one session."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.cli_session: str | None = None
        self.run: str | None = None
        self.said = 0
        """The number of the last line of the run that was told, or left out."""
        self.running = False
        self.open: dict[str, AskOpened] = {}
        """The questions that were told and are open."""
        self.inbound = False
        self.parent: str | None = None
        self._reported_connected = False
        self._echoes: dict[str, None] = {}

    def resume(
        self, events: Iterable[Stored], open_asks: Iterable[AskView], view: SessionView
    ) -> None:
        """Begin in the middle: take what came before, and what was told of it then."""
        self._reported_connected = True
        nobody = Joined()
        for stored in events:
            for _ in self.lines_of(stored, nobody):
                pass
        self.run = self.run or view.run
        self.running = self.run is not None and self.run == view.run
        if self.running:
            self.inbound = view.machine == INBOUND
        # What is open was told, and must be withdrawn when it is settled.
        self.open |= {ask.opened.ask: ask.opened for ask in open_asks}

    def lines_of(
        self, stored: Stored, joined: Joined, *, answered_here: bool = False
    ) -> Iterator[bytes]:
        """The lines for an event. An answer that the frontend gave itself is not told to it."""
        event = stored.event
        late = stored.position <= joined.position
        match event:
            case Said():
                yield from self._said_lines(event.line)
                self._count(event.run, event.number)
            case SaidBroken():
                yield from self._broken_lines(event.text, event.error)
                self._count(event.run, event.number)
            case Recalled(line=line):
                yield from self._said_lines(line)
            case Sent(line=line) if self.inbound:
                yield from self._echo(bytes(line))
            case AskOpened() if not late or event.ask in joined.asks:
                self.open[event.ask] = event
                yield self._object(
                    type="control_request", request_id=event.request_id, request=event.request
                )
            case AskAnswered(ask=ask, by=by) if (opened := self.open.pop(ask, None)) is not None:
                if not answered_here:
                    yield self._withdraw(opened, answered_by=by)
            case AskWithdrawn(ask=ask) if (opened := self.open.pop(ask, None)) is not None:
                yield self._withdraw(opened)
            case _:
                yield from self._of_run(event, joined, late=late)

    def _of_run(self, event: Event, joined: Joined, *, late: bool) -> Iterator[bytes]:
        """The lines for what happens to the session and its process."""
        match event:
            case SessionCreated(parent=parent):
                self.parent = parent
            case RunStarting(run=run, machine=machine):
                self.run, self.said, self.running = run, 0, True
                self.inbound = machine == INBOUND
                self._reported_connected = False
            case RunStarted(run=run) if not self._reported_connected:
                self._reported_connected = True
                there = late and run in joined.runs
                yield self._status(IS_CONNECTED if there else CONNECTED)
            case RunEnded():
                for opened in self.open.values():
                    yield self._withdraw(opened)
                self.open.clear()
                self.running = False
                if self._reported_connected:
                    self._reported_connected = False
                    yield self._status(DISCONNECTED, reason=end_text(event))
            case SessionDeleted():
                if self._reported_connected:
                    self._reported_connected = False
                    yield self._status(DISCONNECTED)
                self.running = False
            case CliSession(cli_session=cli_session) if self.cli_session is None:
                yield from self._in_session(cli_session)  # else its lines tell, in time
            case _:
                pass

    def piece(self, line: bytes) -> bytes:
        """A line that is not journalled."""
        return self._with_session_id(line.decode("utf-8", "replace").encode())

    # --- lines of the CLI ----------------------------------------------------------------------

    def _said_lines(self, line: Raw) -> Iterator[bytes]:
        data = bytes(line)
        try:
            header = _header.decode(data)
        except DECODE_ERRORS:
            yield self._with_session_id(data)  # a message without a type, or with odd ids
            return
        if header.type in _PRIVATE:
            return
        if header.type in _OURS:
            error = f"a line of the type {header.type}, which is the relay's own"
            yield self._status(BROKEN, error=error, line=data.decode())
            return
        if header.session_id:
            yield from self._in_session(header.session_id)
        if header.uuid is not None and header.uuid in self._echoes:
            return
        yield data if header.session_id else self._with_session_id(data)

    def _broken_lines(self, text: str, error: str) -> Iterator[bytes]:
        """A line that is not valid JSON to us, as it is, after the status that says whose it is.

        Other decoders may accept it, with half a surrogate pair in it. Then it must not speak for
        the hub or the relay, either.
        """
        try:
            kind = _header.decode(replace_lone_surrogates(text.encode())).type
        except DECODE_ERRORS:
            kind = ""
        if kind in _PRIVATE or kind in _OURS:
            yield self._status(BROKEN, error=error, line=text)
            return
        yield self._status(BROKEN, error=error)
        yield text.replace("\n", " ").replace("\r", " ").encode()

    def _in_session(self, cli_session: str) -> Iterator[bytes]:
        """The conversation that follows; another one than before is marked."""
        before, self.cli_session = self.cli_session, cli_session
        if before is None and self.parent is not None:
            yield self._status(FORKED, forked_from=self.parent)
        elif before is not None and before != cli_session:
            yield self._status(CHANGED, previous_session_id=before)

    def _echo(self, line: bytes) -> Iterator[bytes]:
        """A prompt for a CLI that may not repeat prompts: others must see it too."""
        try:
            header = _header.decode(line)
        except DECODE_ERRORS:
            return
        if header.type != "user" or header.uuid is None:
            return
        self._echoes[header.uuid] = None
        while len(self._echoes) > _ECHOES_KEPT:
            del self._echoes[next(iter(self._echoes))]
        found = msgspec.json.decode(line, type=dict[str, Raw])
        found["isReplay"] = Raw(b"true")
        found["session_id"] = Raw(msgspec.json.encode(self.name))
        yield msgspec.json.encode(found)

    def _count(self, run: str, number: int) -> None:
        self.run = self.run or run
        if run == self.run:
            self.said = max(self.said, number)

    # --- lines of ours -------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The session as frontends know it: the CLI's id, or ours while that is unknown."""
        return self.cli_session or self.session

    def _with_session_id(self, line: bytes) -> bytes:
        """The line with a `session_id`, at its end: of two members with a name the last counts."""
        body = line.strip()
        if _has_session(body) or not (body.startswith(b"{") and body.endswith(b"}")):
            return line
        rest = body[:-1].rstrip()
        comma = b"" if rest == b"{" else b","
        return b'%b%b"session_id":%b}' % (rest, comma, msgspec.json.encode(self.name))

    def _object(self, **members: object) -> bytes:
        return msgspec.json.encode({**members, "session_id": self.name})

    def _status(self, text: str, **more: str) -> bytes:
        made: dict[str, str] = {"type": "status", "text": text, **more, "session": self.session}
        if self.cli_session is not None:
            made["session_id"] = self.cli_session
        return msgspec.json.encode(made)

    def _withdraw(self, opened: AskOpened, **more: str) -> bytes:
        return self._object(type="control_cancel_request", request_id=opened.request_id, **more)


def connected_line(view: SessionView) -> bytes:
    """The status for a frontend that comes while a CLI is there, and reads on from later."""
    made = {"type": "status", "text": IS_CONNECTED, "session": view.session}
    if view.cli_session is not None:
        made["session_id"] = view.cli_session
    return msgspec.json.encode(made)


def _has_session(line: bytes) -> bool:
    try:
        return bool(_header.decode(line).session_id)
    except DECODE_ERRORS:
        return False


def position_line(stored: Stored, epoch: str) -> bytes:
    """How far a frontend has read: `after` in its session, `position` in the journal `epoch`."""
    return msgspec.json.encode(
        {
            "type": "position",
            "session": stored.session,
            "after": stored.seq,
            "position": stored.position,
            "epoch": epoch,
        }
    )
