"""CLIs that dial the hub themselves (`--sdk-url`, up to 2.1.120): another way to a run.

Owns the doors that they dial and the ports of their runs. At `/` a CLI is adopted as a new session;
at a session's own path it belongs to that one, as its first run or its next. Nobody numbers their
lines but us, so a gap is told as one: after a reconnect the CLI is asked again for what it still
wants to know.

A CLI that comes back to `/` is given its session only if it proves which one it is. The first thing
that it is told is a token of its session's own, which CLIs from 2.1.62 on use from then on, also
for what they post. 2.1.37 keeps the token of `/`; it names the last message that it said, and gets
the session whose CLI connected to `/` and said that message. A CLI that proves nothing gets a new
session.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import anyio
import msgspec
from anyio import to_thread
from anyio.abc import TaskGroup

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import JournalError, LinkClosed
from quarterdeck.domain.ids import is_id, new_id
from quarterdeck.domain.structs import Value
from quarterdeck.hub.cli_tokens import ROOT, CliTokens, is_token
from quarterdeck.hub.ports import RunEnd, RunOwner
from quarterdeck.hub.runners import address_of
from quarterdeck.links.base import Dropped, Resumed
from quarterdeck.links.websocket.accept import CliEndpoint, LinkAccess
from quarterdeck.links.websocket.held_socket import HeldSocket
from quarterdeck.links.websocket.link import FIRST_SECONDS, WebSocketLink
from quarterdeck.protocol.runner_frames import TranscriptQuery
from quarterdeck.runtime.asgi import Receive, Scope, Send, header, path_of
from quarterdeck.wire.line_reader import LineReader, OversizedLine
from quarterdeck.wire.outbound import UpdateEnvironment

log = logging.getLogger(__name__)

OWN_PATH = "/v1/ws/"
ROOT_EVENTS = "/events"
"""Where a CLI that connected to `/` posts what it says, if it is told to post."""
PROBE_SECONDS = 0.6
"""Who looks for a hub opens a connection and closes it within half a second. A CLI says nothing
before it is asked, either: it is taken for one when it has stayed for longer."""
RETRY_SECONDS = 0.5
"""Until a journal that could not be written is tried again."""

SENT_AWAY_SECONDS = 15.0
"""For so long a CLI that was sent away may come back: up to 2.1.37 no word of ours ends it."""

RETURN_SECONDS = 90.0
"""For so long the CLI of a run is waited for when the hub has been restarted. A CLI that lost its
hub dials at least every 38 s, and gives up after ten minutes."""
RESTARTED = CodedText(code=TextCode.HUB_RESTARTED)

TOKEN_VARIABLE = "CLAUDE_CODE_SESSION_ACCESS_TOKEN"  # noqa: S105 - a variable's name

Adopt = Callable[[str, bool, str | None, bool], Awaitable[None]]
"""A CLI is there for a session; whether it had a link before; the address that it is from; and
whether it connected to `/`."""

SaidAtRoot = Callable[[str, str, str], bool]
"""Whether the CLI of a session's run connected to `/` and said the message with this uuid."""


MOST_NEW, NEW_SECONDS = 30, 60.0
"""So many sessions may begin at `/` in such a time."""


class _Port:
    """A session's hold on a CLI that connected itself."""

    def __init__(self, run: str, session: str, said: int) -> None:
        self.run = run
        self.session = session
        self.said = said
        self.link = WebSocketLink()
        self.known = said > 0
        self.stopped = False
        self.root = False
        """Whether it connected to `/` with the token of `/`, since this hub began."""
        self.has_token = False
        """Whether it was seen to use its session's own token."""
        self.last: str | None = None
        """The uuid of the last message that it said."""
        self._lines: list[bytes] = []
        self._wake = anyio.Event()

    def write(self, number: int, line: bytes) -> None:  # noqa: ARG002 - a CLI knows no numbers
        if not self.known:
            self._lines.append(line + b"\n")
            self._wake.set()

    def acknowledge(self, upto: int) -> None:
        pass  # a CLI keeps what it wants to, and tells nobody

    def stop(self, *, force: bool = False) -> None:  # noqa: ARG002 - there is one way only
        self.stopped = True
        self.link.fail(_sent_away("The session was ended.", TextCode.SESSION_ENDED))

    def forget(self) -> None:
        self.stop()

    def unwritten(self) -> dict[int, bytes]:
        return {}  # it is sent again what it may not have when it dials again

    def read_transcript(self, wanted: TranscriptQuery) -> None:
        pass  # its machine has nobody who could read its files

    def give_token(self, token: str) -> None:
        """Tell the CLI its session's own token. It is a secret: it does not go by the journal."""
        report = UpdateEnvironment(variables={TOKEN_VARIABLE: token})
        self._lines.append(msgspec.json.encode(report) + b"\n")
        self._wake.set()

    async def pump(self) -> None:
        """Send what is to be written, until the link has ended."""
        try:
            while True:
                await self._wake.wait()
                self._wake = anyio.Event()
                lines, self._lines = self._lines, []
                await self.link.send(b"".join(lines))
        except LinkClosed:
            pass  # the reader hears of it too


class _DismissedCli(Value):
    """A CLI that was sent away, and may come back until then all the same."""

    session: str
    last: str | None
    until: float


class _Message(Value):
    uuid: str | None = None


class InboundClis:
    """All CLIs that dial. `owner` gives a session; `adopt` begins one, or its next run."""

    def __init__(
        self,
        tokens: CliTokens,
        owner: Callable[[str], RunOwner | None],
        adopt: Adopt,
        said_at_root: SaidAtRoot,
    ) -> None:
        self.tokens = tokens
        self._said_at_root = said_at_root
        self._owner = owner
        self._adopt = adopt
        self._ports: dict[str, _Port] = {}
        self._begun: deque[float] = deque(maxlen=MOST_NEW)
        """When the last sessions were begun at `/`."""
        self._held = 0
        """Connections at `/` for which a session will begin if they stay."""
        self._sent_away: list[_DismissedCli] = []
        self._endpoint = CliEndpoint(self._door)
        self.remote: Callable[[str], Awaitable[str | None]] | None = None
        """With several hubs: the session of another hub whose CLI said this message at `/`."""
        self._tasks: TaskGroup | None = None

    def change_secret(self, secret: bytes) -> None:
        """Take another secret: all tokens are void, and CLIs that are connected are sent away."""
        if secret == self.tokens.secret:
            return
        self.tokens.secret = secret
        for port in list(self._ports.values()):
            text = "The tokens of dialling CLIs were revoked."
            port.link.fail(_sent_away(text, TextCode.CLI_TOKENS_REVOKED))

    def cut(self, session: str) -> None:
        """The token of a session was revoked: the CLI that came with it is sent away at once.

        That of `/` is still used by CLIs that took no token of their own.
        """
        for port in list(self._ports.values()):
            by_root = session == ROOT and port.root and not port.has_token
            if port.session == session or by_root:
                port.stopped = True
                text = "The token of this CLI was revoked."
                port.link.fail(_sent_away(text, TextCode.CLI_TOKEN_REVOKED))

    def run_in(self, tasks: TaskGroup) -> None:
        """Where to run what reads and writes the links."""
        self._tasks = tasks
        for port in self._ports.values():
            self._serve(port)

    def attach(self, run: str, session: str, *, said: int) -> _Port:
        """A run of a CLI that connected, or will connect again: its port."""
        port = self._ports[session] = _Port(run, session, said)
        if self._tasks is not None:
            self._serve(port)
        return port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection or POST of a CLI."""
        if scope["type"] == "websocket":
            if self._may_be_probe(scope) and self._has_room():
                held = HeldSocket(receive, send)
                self._held += 1
                try:
                    if not await held.stays(PROBE_SECONDS):
                        return
                finally:
                    self._held -= 1
                receive, send = held.receive, held.send
            scope = await self._place(scope)
        elif path_of(scope) == ROOT_EVENTS:
            scope = self._place_posted(scope)
        await self._endpoint(scope, receive, send)

    def _place_posted(self, scope: Scope) -> Scope:
        """The events of a CLI that connected to `/` and sends them by POST.

        One that has not taken its own token yet says not which it is. There may be one such CLI at
        a time. Others are told that nobody knows them.
        """
        session = self._token_session(scope)
        if session is not None:
            if (port := self._ports.get(session)) is not None:
                port.has_token = True
        elif self._bears(scope, "/"):
            there = [
                port.session
                for port in self._ports.values()
                if port.root and port.link.connected and not port.has_token
            ]
            session = there[0] if len(there) == 1 else None
        return scope if session is None else self._at(scope, _events_of(session), session)

    def _may_be_probe(self, scope: Scope) -> bool:
        """Whether a session would begin for one who may only look whether the hub is there."""
        return (
            path_of(scope) == "/"
            and not _has_been_here(scope)
            and header(scope, b"origin") is None
            and self._token_session(scope) is None
            and self._bears(scope, "/")
        )

    async def _place(self, scope: Scope) -> Scope:
        """Give a CLI at `/` a session's own path; make the session if there is none."""
        path = path_of(scope)
        back = _has_been_here(scope)
        at_root = path == "/"
        if at_root and (named := self._token_session(scope)) is not None:
            # It was here before, also if it posts what it says and so names no last message.
            session, at_root, back = named, False, True
            if self._is_sent_away(scope, session):
                return scope
        elif at_root:
            if not self._bears(scope, "/"):
                return scope
            found = self._back(scope)
            if found is None and back and self.remote is not None:
                found = await self.remote(header(scope, b"x-last-request-id") or "")
            if found is None and back and self._away():
                return scope
            if found is None and not self._may_begin():
                return scope
            session = found or new_id()
        elif path.startswith(OWN_PATH) and is_id(path.removeprefix(OWN_PATH)):
            session = path.removeprefix(OWN_PATH)
            if not self._bears(scope, session):
                return scope
            if self._is_sent_away(scope, session):
                return {**scope, "path": OWN_PATH, "raw_path": OWN_PATH.encode()}  # nobody's
        else:
            return scope
        await to_thread.run_sync(self.tokens.note_used, ROOT if at_root else session)
        if session not in self._ports:
            await self._adopt(session, back, address_of(scope), at_root)
        if (port := self._ports.get(session)) is not None:
            if at_root:
                port.root = True
                await to_thread.run_sync(self.tokens.note_used, session)
                port.give_token(self.tokens.root_token(session))
            elif path == "/":
                port.has_token = True
        return self._at(scope, OWN_PATH + session, session)

    def _may_begin(self) -> bool:
        """Whether one more session may begin at `/` now: a token must not make countless ones."""
        if not self._has_room():
            return False
        self._begun.append(time.monotonic())
        return True

    def _has_room(self) -> bool:
        since = time.monotonic() - NEW_SECONDS
        return sum(at > since for at in self._begun) + self._held < MOST_NEW

    def _at(self, scope: Scope, path: str, session: str) -> Scope:
        """The same, at a session's own path, and with its own token."""
        token = f"Bearer {self.tokens.token(session)}".encode()
        headers = [(n, v) for n, v in _headers(scope) if n != b"authorization"]
        return {
            **scope,
            "path": path,
            "raw_path": path.encode(),
            "headers": [*headers, (b"authorization", token)],
        }

    def _back(self, scope: Scope) -> str | None:
        """The session whose CLI connected to `/` before and comes back with the token of `/`.

        It names the last message that it wanted to send. If nobody heard that message, or if it
        names none, nothing says whose CLI it is.
        """
        last = header(scope, b"x-last-request-id")
        if not last:
            return None
        said = (
            port.session
            for port in self._ports.values()
            if not port.link.over
            and not port.has_token
            and self._said_at_root(port.session, port.run, last)
        )
        return next(said, None)

    def _token_session(self, scope: Scope) -> str | None:
        """The session that the token of a CLI at `/` names; None if it names none, or is wrong."""
        kind, _, token = (header(scope, b"authorization") or "").partition(" ")
        session, dot, _ = token.partition(".")
        if kind.lower() != "bearer" or not dot or not is_id(session):
            return None
        wanted = self.tokens.root_token(session)
        return session if is_token(token, wanted) else None

    def _away(self) -> list[_DismissedCli]:
        """Those that were sent away and may come back; at `/` nobody can tell which one it is."""
        now = time.monotonic()
        self._sent_away = [away for away in self._sent_away if away.until > now]
        return self._sent_away

    def _is_sent_away(self, scope: Scope, session: str) -> bool:
        """Whether a CLI that was sent away comes back where the session's next one is already.

        It says what it said last. Were it let in, it would be given what is meant for the other.
        """
        last = header(scope, b"x-last-request-id")
        away = [one.last for one in self._away() if one.session == session]
        if last is None or not away:
            return False
        port = self._ports.get(session)
        return last in away or (port is not None and port.link.connected)

    def _bears(self, scope: Scope, session: str) -> bool:
        kind, _, token = (header(scope, b"authorization") or "").partition(" ")
        wanted = self.tokens.token(session)
        return kind.lower() == "bearer" and is_token(token, wanted)

    def _door(self, path: str) -> LinkAccess | None:
        session = path.removeprefix(OWN_PATH)
        port = self._ports.get(session)
        return LinkAccess(port.link, self.tokens.token(session)) if port else None

    def _serve(self, port: _Port) -> None:
        assert self._tasks is not None
        self._tasks.start_soon(port.pump)
        self._tasks.start_soon(self._read, port)

    async def _read(self, port: _Port) -> None:
        reader = LineReader()
        known, port.known = port.known, False
        try:
            await self._first_connection(port, known=known)
            owner = self._owner(port.session)
            if owner is None:
                return
            if known:
                await _deliver(partial(owner.run_resumed, port.run, port.link.last_request_id))
            else:
                await _deliver(partial(owner.run_started, port.run, None, None, None))
            while True:
                received = await port.link.receive()
                if isinstance(received, Resumed):
                    reader = LineReader()
                await self._pass_on(port, owner, reader, received)
        except LinkClosed as closed:
            # First the CLI is sent away: what is told next may start another for its conversation.
            await port.link.close()
            owner = self._owner(port.session)
            if owner is not None:
                ending = RunEnd(reason=closed.reason, clean=closed.clean, coded=closed.coded)
                await _deliver(partial(owner.run_ended, port.run, ending))
        finally:
            if port.stopped:
                until = time.monotonic() + SENT_AWAY_SECONDS
                self._sent_away.append(
                    _DismissedCli(session=port.session, last=port.last, until=until)
                )
            if self._ports.get(port.session) is port:
                del self._ports[port.session]

    async def _first_connection(self, port: _Port, *, known: bool) -> None:
        """Wait until the CLI is there. Raises `LinkClosed` when it does not come, or is stopped."""
        owner = self._owner(port.session)
        if known and owner is not None and not port.link.connected:
            await _deliver(partial(owner.run_lost, port.run, RESTARTED))
        seconds = RETURN_SECONDS if known else FIRST_SECONDS
        with anyio.move_on_after(seconds) as waiting:
            await port.link.wait_connected()
        if waiting.cancelled_caught:
            text = f"The CLI did not reconnect within {seconds:g} s."
            coded = CodedText(code=TextCode.CLI_NOT_BACK, seconds=seconds)
            port.link.fail(LinkClosed(text, coded=coded))
            await port.link.wait_connected()

    async def _pass_on(
        self, port: _Port, owner: RunOwner, reader: LineReader, received: bytes | Dropped | Resumed
    ) -> None:
        match received:
            case Dropped(close_code=code):
                lost = CodedText(code=TextCode.CONNECTION_LOST, close_code=code)
                await _deliver(partial(owner.run_lost, port.run, lost))
            case Resumed(last_request_id=last):
                await _deliver(partial(owner.run_resumed, port.run, last))
            case bytes() as data:
                lines = [_line(line) for line in reader.feed(data)]
                if lines:
                    port.last = _last_uuid(lines) or port.last
                    first, port.said = port.said + 1, port.said + len(lines)
                    await _deliver(partial(owner.run_said, port.run, first, lines))


async def _deliver(send: Callable[[], Awaitable[None]]) -> None:
    """Tell a session what its CLI did; again, while that cannot be journalled: only we have it."""
    while True:
        try:
            return await send()
        except JournalError as error:
            log.error("what a CLI did is not journalled yet: %s", error)
        await anyio.sleep(RETRY_SECONDS)


def _sent_away(text: str, code: TextCode) -> LinkClosed:
    return LinkClosed(text, close_code=4001, coded=CodedText(code=code))


def _last_uuid(lines: list[bytes]) -> str | None:
    """The uuid of the last of these messages that has one."""
    for line in reversed(lines):
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            if uuid := msgspec.json.decode(line, type=_Message).uuid:
                return uuid
    return None


def _has_been_here(scope: Scope) -> bool:
    """Whether a CLI had a link before: it names the last message that it wanted to send."""
    return header(scope, b"x-last-request-id") is not None


def _events_of(session: str) -> str:
    """Where the CLI of a session posts what it says."""
    return f"/v1/session/{session}/events"


def _line(line: bytes | OversizedLine) -> bytes:
    return line if isinstance(line, bytes) else line.head


def _headers(scope: Scope) -> list[tuple[bytes, bytes]]:
    found = scope.get("headers", [])
    assert isinstance(found, list | tuple)
    return [(bytes(name), bytes(value)) for name, value in found]
