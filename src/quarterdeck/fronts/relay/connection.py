"""One frontend: the lines for it, and what becomes of its own.

Lines are sent under one lock: events in their order, pieces between them. A frontend that reads
slowly delays itself and nobody else. Above is the endpoint; below are the feed of its events, the
fold that makes lines of them, and the `FrontendCommands` that carries out what it asks for.
"""

from __future__ import annotations

import contextlib
import time
from typing import assert_never

import anyio
import anyio.lowlevel
import msgspec
from anyio.abc import TaskGroup

from quarterdeck.domain.errors import JournalError, NotFound
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.relay.asgi import Caller, Receive, Send
from quarterdeck.fronts.relay.commands import FrontendCommands
from quarterdeck.fronts.relay.errors import BadLine, reason_of
from quarterdeck.fronts.relay.feed import Feed, Wanted
from quarterdeck.fronts.relay.inbound import (
    AnswerLine,
    CancelLine,
    FrontendLine,
    KeepAliveLine,
    PromptLine,
    RequestLine,
    parse,
    split,
)
from quarterdeck.fronts.relay.outbound import SessionLines, connected_line, position_line
from quarterdeck.fronts.relay.pieces import Pieces
from quarterdeck.hub.api import HubApi
from quarterdeck.protocol.events import AskAnswered, RunEnded, Said, SaidBroken
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.protocol.views import Piece
from quarterdeck.runtime.off_loop import LARGE, large_turn, off_loop

TOO_SLOW = 4408
UNAVAILABLE = 4503
RESTARTING = 1012
_CLOSE_SECONDS = 2.0


class Pace(Value):
    """The limits of a connection."""

    send_seconds: float = 60.0
    """How long a line may wait for a frontend that does not read; a quarter longer at the most."""
    requests: int = 16
    """Control requests of one frontend in progress at once."""


class Connection:
    """One frontend, from its first line to its last."""

    def __init__(
        self,
        hub: HubApi,
        caller: Caller,
        wanted: Wanted,
        receive: Receive,
        send: Send,
        pace: Pace | None = None,
    ) -> None:
        self._hub = hub
        self._wanted = wanted
        self._receive = receive
        self._send = send
        self._pace = pace or Pace()
        self._feed = Feed(hub, wanted)
        self._open_sessions: dict[str, SessionLines] = {}
        self._pieces = Pieces()
        self._commands = FrontendCommands(hub, caller, self._open_sessions, wanted.sessions)
        self._turn = anyio.Lock()
        self._scope = anyio.CancelScope()
        self._close: tuple[int, str] | None = None
        self._gone = False
        self._writing_since: float | None = None
        self._calls: dict[str, bool] = {}
        """Control requests in progress, and whether their answer is still wanted."""

    async def begin(self) -> None:
        """Look at what is there. Raises `NotFound` and `UsageError` for what cannot be followed."""
        await self._feed.begin()
        for view in self._feed.running:
            self._commands.know(view)

    def receive_piece(self, piece: Piece) -> None:
        """A CLI said a line that is not journalled."""
        if self._wanted.pieces and self._wants(piece.session):
            self._pieces.add(piece)

    def _wants(self, session: str) -> bool:
        return not self._wanted.sessions or session in self._wanted.sessions

    async def run(self) -> None:
        """Serve the frontend until it disconnects, or is disconnected."""
        async with anyio.create_task_group() as group:
            self._scope = group.cancel_scope
            group.start_soon(self._send_events)
            group.start_soon(self._send_pieces)
            group.start_soon(self._watch)
            await self._listen(group)
            group.cancel_scope.cancel()
        if self._close is not None and not self._gone:
            await self._say_goodbye(*self._close)

    def _end(self, code: int, reason: str) -> None:
        """Disconnect the frontend, with the first reason."""
        self._close = self._close or (code, reason)
        self._scope.cancel()

    # --- what the frontend says ----------------------------------------------------------------

    async def _listen(self, group: TaskGroup) -> None:
        while True:
            message = await self._receive()
            if message["type"] != "websocket.receive":
                self._gone = True
                return
            text, data = message.get("text"), message.get("bytes")
            try:
                given = text if isinstance(text, str) else data or b""
                lines = await off_loop(len(given), split, given)
            except BadLine as error:
                await self._refuse(error, "the message")
                continue
            for number, line in enumerate(lines, 1):
                where = f"line {number} of {len(lines)}"
                try:
                    asked = await off_loop(len(line), parse, line)
                except BadLine as error:
                    await self._refuse(error, where)
                    continue
                await self._take(asked, where, group)
                if len(given) > LARGE:  # of many lines, each small
                    await anyio.lowlevel.checkpoint()

    async def _take(self, asked: FrontendLine, where: str, group: TaskGroup) -> None:
        """Carry out a line. Prompts and answers in their order; requests beside them."""
        match asked:
            case PromptLine() | AnswerLine():
                try:
                    # What was received is carried out, even if the frontend disconnects.
                    with anyio.CancelScope(shield=True):
                        if isinstance(asked, PromptLine):
                            await self._commands.prompt(asked)
                        else:
                            await self._commands.answer(asked)
                except Exception as error:  # noqa: BLE001  (the boundary: an error becomes a line)
                    await self._refuse(error, where)
            case RequestLine():
                await self._call(asked, group)
            case CancelLine(request_id=request_id):
                if request_id in self._calls:
                    self._calls[request_id] = False
            case KeepAliveLine():
                pass
            case _:
                assert_never(asked)

    async def _call(self, called: RequestLine, group: TaskGroup) -> None:
        if called.request_id in self._calls:
            await self._say(_failure_line(called, "a request with this id is in progress"))
        elif len(self._calls) >= self._pace.requests:
            await self._say(
                _failure_line(called, f"at most {self._pace.requests} requests at once")
            )
        else:
            self._calls[called.request_id] = True
            group.start_soon(self._carry_out, called)

    async def _carry_out(self, called: RequestLine) -> None:
        """Do what a request asks for, and answer it, unless its sender gave up."""
        try:
            # What was received is carried out, even if the frontend disconnects.
            with anyio.CancelScope(shield=True):
                body = await self._commands.call(called)
            answer = {"subtype": "success", "request_id": called.request_id, "response": body}
            line = msgspec.json.encode({"type": "control_response", "response": answer})
        except Exception as error:  # noqa: BLE001  (the boundary: an error becomes a line)
            line = _failure_line(called, reason_of(error)[1])
        if self._calls.pop(called.request_id):
            await self._say(line)

    async def _refuse(self, error: Exception, where: str) -> None:
        """Tell the frontend why nothing came of its line."""
        code, text = reason_of(error)
        place = f"{where}, {error.where}" if isinstance(error, BadLine) and error.where else where
        detail = {"code": code, "message": text, "where": place}
        await self._say(msgspec.json.encode({"type": "error", "error": detail}))

    # --- what the frontend is sent -------------------------------------------------------------

    async def _send_events(self) -> None:
        try:
            async with self._turn:
                for view in self._feed.connected:
                    await self._write(connected_line(view))
            async with contextlib.aclosing(self._feed.batches()) as batches:
                async for batch in batches:
                    await self._write_batch(batch)
            self._end(RESTARTING, "the hub is stopping")
        except JournalError as error:
            stopping = error.code == "closed"
            self._end(
                RESTARTING if stopping else UNAVAILABLE,
                "the hub is stopping" if stopping else "the journal cannot be read",
            )

    async def _write_batch(self, batch: list[Stored]) -> None:
        for stored in batch:
            session_lines = self._open_sessions.get(stored.session) or await self._begin_session(
                stored
            )
            event = stored.event
            here = isinstance(event, AskAnswered) and self._commands.has_answered(event.ask)
            async with self._turn:
                if isinstance(event, Said | SaidBroken):
                    await self._write_pieces(session_lines, before=event.number)
                for line in session_lines.lines_of(stored, self._feed.joined, answered_here=here):
                    await self._write(line)
                if isinstance(event, RunEnded):
                    self._pieces.forget(stored.session, event.run)
            late = stored.position <= self._feed.joined.position
            self._commands.note(session_lines, event, late=late)
        async with self._turn:
            for session in {stored.session for stored in batch}:
                await self._write_pieces(self._open_sessions[session])
            if self._wanted.positions:
                last = {stored.session: stored for stored in batch}
                for stored in last.values():
                    await self._write(position_line(stored, self._hub.epoch))

    async def _begin_session(self, stored: Stored) -> SessionLines:
        """The lines of a session, from this event on."""
        session_lines = SessionLines(stored.session)
        if stored.seq > 1:
            asks = [
                ask
                for ask in self._feed.asks
                if ask.session == stored.session and ask.seq < stored.seq
            ]
            with contextlib.suppress(NotFound):  # deleted meanwhile
                before = await self._feed.before(stored.session, stored.seq - 1)
                session_lines.resume(before, asks, await self._hub.session(stored.session))
        self._open_sessions[stored.session] = session_lines
        return session_lines

    async def _send_pieces(self) -> None:
        while True:
            await self._pieces.bell.wait()
            async with self._turn:
                for session in self._pieces.sessions():
                    if (session_lines := self._open_sessions.get(session)) is not None:
                        await self._write_pieces(session_lines)

    async def _write_pieces(self, session_lines: SessionLines, before: int | None = None) -> None:
        for piece in self._pieces.take(
            session_lines.session, session_lines.run, session_lines.said, before
        ):
            await self._write(session_lines.piece(piece.line))

    async def _watch(self) -> None:
        """Disconnect a frontend that does not read."""
        while True:
            await anyio.sleep(self._pace.send_seconds / 4)
            since = self._writing_since
            if since is not None and time.monotonic() - since >= self._pace.send_seconds:
                self._end(TOO_SLOW, "the frontend does not read")

    async def _say(self, line: bytes) -> None:
        async with self._turn:
            await self._write(line)

    async def _write(self, line: bytes) -> None:
        """Send a line as one message; the caller holds the lock."""
        self._writing_since = time.monotonic()
        try:
            await large_turn(len(line))
            await self._send({"type": "websocket.send", "text": line.decode() + "\n"})
        except (OSError, RuntimeError):
            # The server closed it by itself and has not said so yet.
            self._gone = True
            self._scope.cancel()
        finally:
            self._writing_since = None

    async def _say_goodbye(self, code: int, reason: str) -> None:
        with (
            anyio.move_on_after(_CLOSE_SECONDS, shield=True),
            contextlib.suppress(OSError, RuntimeError),
        ):
            await self._send({"type": "websocket.close", "code": code, "reason": reason})


def _failure_line(called: RequestLine, error: str) -> bytes:
    answer = {"subtype": "error", "request_id": called.request_id, "error": error}
    return msgspec.json.encode({"type": "control_response", "response": answer})
