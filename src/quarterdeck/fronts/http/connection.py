"""One client of the stream: its frames, the frames for it, and when it is disconnected.

Three tasks that end together: receiving, events and live text. Every frame is sent under one
lock, and may wait for a while; a client that reads slowly delays these tasks and no others. A timer
detects what takes too long.
Above is the endpoint; below are the reader of its events and the buffer of its live text.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Protocol, assert_never

import anyio
import msgspec
from anyio.abc import TaskGroup

from quarterdeck.domain.errors import JournalError, NotFound, QuarterdeckError, UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http.access import Access
from quarterdeck.fronts.http.asgi import Message, Receive, Send
from quarterdeck.fronts.http.events import Events, Frames, batches
from quarterdeck.fronts.http.large_bodies import LARGE_BODY, SMALL_FRAME
from quarterdeck.fronts.http.live_text import LiveText
from quarterdeck.fronts.http.open_connections import REASON, REVOKED
from quarterdeck.fronts.http.people import is_same
from quarterdeck.fronts.http.problems import problem_of
from quarterdeck.fronts.http.reader import Reader
from quarterdeck.fronts.http.roles import Person
from quarterdeck.fronts.http.routes.handlers import decode_command, do
from quarterdeck.fronts.http.views import PendingViews, ViewCache
from quarterdeck.hub.api import HubApi
from quarterdeck.protocol.commands import AnyCommand
from quarterdeck.protocol.problems import problem
from quarterdeck.protocol.roles import Right
from quarterdeck.protocol.stream_frames import (
    PROTOCOL,
    Bad,
    Beat,
    ClientFrame,
    Done,
    Failed,
    Follow,
    Following,
    Frame,
    Hello,
    Limits,
    Order,
    Personal,
    Place,
    Unfollow,
)
from quarterdeck.protocol.views import Deltas
from quarterdeck.runtime.off_loop import off_loop

BAD_FRAME = 4400
TOO_SLOW = 4408
UNAVAILABLE = 4503
RESTARTING = 1012

_CLOSE_SECONDS = 2.0

_decoder: msgspec.json.Decoder[ClientFrame] = msgspec.json.Decoder(ClientFrame)
_large_decoder: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)


def _decode_frame(body: str | bytes, large: bool) -> ClientFrame:
    # A raw command is passed on without another check of its encoding.
    text = body if isinstance(body, str) else body.decode()
    return _large_decoder.decode(text) if large else _decoder.decode(text)


class Pace(Value):
    """The limits of a connection."""

    beat_seconds: float = 15.0
    """The server sends a heartbeat after this time without a frame."""
    silence_seconds: float = 60.0
    """A client that sends nothing for this time is disconnected."""
    send_seconds: float = 60.0
    """How long a frame may wait for a client that does not read; a quarter longer at the most."""
    sessions: int = 1000
    commands: int = 16
    """Commands of one client in progress at once."""
    frame_bytes: int = LARGE_BODY
    """Of a command. Its members besides the content of a prompt are bounded further."""
    small_frame_bytes: int = SMALL_FRAME
    """Of any other frame, and of every frame of a person who cannot steer."""


class Shared(Protocol):
    """What the connections of an endpoint share."""

    @property
    def hub(self) -> HubApi:
        """The hub."""

    @property
    def access(self) -> Access:
        """Authentication."""

    @property
    def pace(self) -> Pace:
        """The limits."""

    @property
    def frames(self) -> Frames:
        """Frames that several connections send."""

    @property
    def views(self) -> ViewCache:
        """Views that several connections send."""

    def live_sessions(self) -> set[str]:
        """The sessions of which there may be live text."""


class Connection:
    """One client, from its first frame to its last."""

    def __init__(self, shared: Shared, person: Person, receive: Receive, send: Send) -> None:
        self._shared = shared
        self._hub = shared.hub
        self._pace = shared.pace
        self._person = person
        self._receive = receive
        self._send = send
        self._reader = Reader(self._hub)
        self._live = LiveText(self._hub.so_far)
        self._wants_live = False
        self._views = PendingViews(shared.views)
        self._wants_views = False
        self._wants_pictures = True
        self._takes_packed = False
        self._wants_personal = False
        self._personal: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._waiting = anyio.CancelScope()
        self._at_rest = False
        self._scope = anyio.CancelScope()
        self._close: tuple[int, str] | None = None
        self._gone = False
        self._commands = 0
        self._received_at = self._sent_at = time.monotonic()
        self._writing_since: float | None = None
        self._beat: asyncio.Task[None] | None = None

    def receive(self, delta: Deltas) -> None:
        """Live text arrived; it is sent if its session is followed."""
        if self._wants_live and self._reader.wants(delta.session):
            self._live.receive(delta)

    def notify_personal(self, person: Person, version: int) -> None:
        """A person's preferences have changed. While one frame is on its way, no other is: the
        client reads all that is new.
        """
        if not self._wants_personal or not is_same(person, self._person):
            return
        if self._personal is None or self._personal.done():
            frame = Personal(version=version)
            self._personal = asyncio.get_running_loop().create_task(self._say(frame))

    async def run(self) -> None:
        """Serve the client until it disconnects, or is disconnected."""
        async with anyio.create_task_group() as group:
            self._scope = group.cancel_scope
            await self._say(self._hello())
            group.start_soon(self._send_events)
            group.start_soon(self._send_live)
            self._watch()
            try:
                await self._listen(group)
            finally:
                self._timer.cancel()
                for task in (self._beat, self._personal):
                    if task is not None:
                        task.cancel()
            group.cancel_scope.cancel()
        if self._close is not None and not self._gone:
            await self._say_goodbye(*self._close)

    def _end(self, code: int, reason: str) -> None:
        """Disconnect the client, with the first reason."""
        self._close = self._close or (code, reason)
        self._scope.cancel()

    # --- what the client says ------------------------------------------------------------------

    async def _listen(self, group: TaskGroup) -> None:
        while True:
            message = await self._receive()
            if message["type"] != "websocket.receive":
                self._gone = True
                return
            self._received_at = time.monotonic()
            if not self._shared.access.is_valid(self._person):
                # The file may have been changed by another process a moment ago.
                self._end(REVOKED, REASON)
                return
            try:
                frame = await self._decode(message)
            except UsageError as error:
                await self._say(Bad(problem=problem_of(error)))
                self._end(BAD_FRAME, "a frame could not be decoded")
                return
            match frame:
                case Order():
                    await self._take(frame, group)
                case Follow() | Unfollow():
                    try:
                        await self._change(frame)
                    except JournalError as error:  # the client comes back, and asks again
                        self._end(UNAVAILABLE, problem_of(error).title)
                        return
                    except QuarterdeckError as error:
                        await self._say(Failed(id=frame.id, problem=problem_of(error)))
                case Beat():
                    pass
                case _:
                    assert_never(frame)

    @property
    def _frame_bytes(self) -> int:
        """The largest frame of this client: only a prompt is ever large."""
        pace = self._pace
        large = self._person.may(Right.STEER)
        return pace.frame_bytes if large else min(pace.frame_bytes, pace.small_frame_bytes)

    async def _decode(self, message: Message) -> ClientFrame:
        text, data = message.get("text"), message.get("bytes")
        body: str | bytes = text if isinstance(text, str) else data or b""
        if len(body) > self._frame_bytes and not self._person.may(Right.STEER):
            raise UsageError(f"frame: more than {self._frame_bytes} bytes")
        large = len(body) > self._pace.small_frame_bytes
        try:
            frame = await off_loop(len(body), _decode_frame, body, large)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(f"frame: {error}") from error
        if len(body) > self._frame_bytes and not isinstance(frame, Order):
            raise UsageError(f"frame: more than {self._frame_bytes} bytes")
        return frame

    async def _change(self, frame: Follow | Unfollow) -> None:
        """Change the followed sessions. The answer precedes their events."""
        places: dict[str, Place] = {}
        here = isinstance(frame, Follow) and await self._is_here(frame)
        if isinstance(frame, Follow):
            if len(frame.sessions) + self._reader.sessions > self._pace.sessions:
                raise UsageError(f"sessions: more than {self._pace.sessions} by name")
            for session, after in frame.sessions.items():
                places[session] = await self._place(session, after, frame.epoch)
        async with self._turn:
            if isinstance(frame, Follow):
                found = {s: place.head or 0 for s, place in places.items() if place.status == "ok"}
                if here:
                    self._follow(frame, found)
            else:
                self._reader.unfollow(frame.sessions, everything=frame.all)
                self._views.forget(frame.sessions, everything=frame.all)
            answer = Following(id=frame.id, sessions=places, all=self._reader.everything)
            await self._write(msgspec.json.encode(answer).decode())
        if self._at_rest:
            self._waiting.cancel()

    def _follow(self, frame: Follow, heads: dict[str, int]) -> None:
        wanted = {session: frame.sessions[session] for session in heads}
        self._reader.follow(wanted, everything=frame.all, after=frame.after)
        self._wants_live, self._wants_views = frame.live, frame.views
        self._wants_pictures, self._takes_packed = frame.pictures, frame.packed
        self._wants_personal = frame.personal
        if frame.live:
            self._live.begin(heads.keys() | (self._shared.live_sessions() if frame.all else set()))
        if frame.views:
            self._views.begin(heads)

    async def _is_here(self, frame: Follow) -> bool:
        """Whether the position of a client is one of this journal.

        A client that was at another hub may be ahead of what this one was told.
        """
        if frame.after is None:
            return True
        return frame.epoch == self._hub.epoch and await self._hub.reaches(frame.after)

    async def _place(self, session: str, after: int, epoch: str | None) -> Place:
        try:
            view = await self._hub.session(session)
        except (NotFound, UsageError):
            return Place(status="gap", reason="unknown")
        if epoch != self._hub.epoch and (after > 0 or epoch is not None):
            return Place(status="gap", reason="epoch", head=view.head)
        if after > view.head:
            return Place(status="gap", reason="ahead", head=view.head)
        return Place(status="ok", head=view.head)

    async def _take(self, frame: Order, group: TaskGroup) -> None:
        if self._commands >= self._pace.commands:
            refusal = problem("too_many_commands", f"at most {self._pace.commands} at once")
            await self._say(Failed(id=frame.id, problem=refusal))
            return
        size = len(memoryview(frame.command))
        if size > self._frame_bytes:  # the connection goes on: it may be a prompt with many images
            most = f"a command has at most {self._frame_bytes} bytes"
            await self._say(Failed(id=frame.id, problem=problem("too_large", most)))
            return
        self._commands += 1
        try:
            # Before the next frame is read: a small prompt is not to overtake a large one.
            command = await off_loop(size, decode_command, frame.command)
        except QuarterdeckError as error:
            self._commands -= 1
            await self._say(Failed(id=frame.id, problem=problem_of(error)))
            return
        group.start_soon(self._do, frame.id, command)

    async def _do(self, id_: str, command: AnyCommand) -> None:
        answer: Done | Failed
        try:
            # A command that was received is executed, even if its client disconnects.
            with anyio.CancelScope(shield=True):
                outcome = await do(self._hub, self._person, command)
            answer = Done(id=id_, outcome=outcome)
        except Exception as error:  # noqa: BLE001  (the boundary: an error becomes an answer)
            answer = Failed(id=id_, problem=problem_of(error))
        finally:
            self._commands -= 1
        await self._say(answer)

    # --- what the client is sent ---------------------------------------------------------------

    async def _send_events(self) -> None:
        batch: Events | None = None
        try:
            while batch is None or batch:
                await self._write_events(batch or ())
                batch = await self._send_followed()
            self._end(RESTARTING, "the hub is stopping")
        except JournalError as error:
            if error.code == "closed":
                self._end(RESTARTING, "the hub is stopping")
            else:
                self._end(UNAVAILABLE, problem_of(error).title)

    async def _send_followed(self) -> Events | None:
        """Send events as they come, until something else is followed; none of them at the end.

        What came at that very moment is given back unsent, for nothing is sent in a scope that is
        cancelled. The scope serves for many waits: to make one takes as long as to send an event.
        """
        with anyio.CancelScope() as self._waiting:
            while batch := await self._next_events():
                if self._waiting.cancel_called:
                    return batch
                await self._write_events(batch)
            return []
        return None

    async def _next_events(self) -> Events:
        """The next events, none when the hub stops. Only this wait is ever cancelled."""
        self._at_rest = True
        try:
            return await self._reader.next()
        finally:
            self._at_rest = False

    async def _write_events(self, batch: Events) -> None:
        for part in batches(batch):
            made = await self._shared.frames.frame(part, pictures=self._wants_pictures)
            packed = await self._shared.frames.compress(made) if self._takes_packed else None
            async with self._turn:
                # Live text that came before these events is not to follow them.
                await self._write_live()
                await self._write(made.text if packed is None else packed)
        if self._wants_views:
            self._views.note(batch)
            while self._views.pending:
                if frame := await self._views.take():
                    async with self._turn:
                        await self._write(frame)

    async def _send_live(self) -> None:
        while True:
            await self._live.bell.wait()
            async with self._turn:
                await self._write_live()

    async def _write_live(self) -> None:
        if self._live.bell.is_set():
            for frame in self._live.take():
                await self._write(msgspec.json.encode(frame).decode())

    def _watch(self) -> None:
        """Look now and then whether the client is there and reads; and say that we are.

        A timer and no task, which would be a tenth of what a client weighs.
        """
        step = min(self._pace.beat_seconds, self._pace.send_seconds / 4)
        self._timer = asyncio.get_running_loop().call_later(step, self._look)

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._received_at > self._pace.silence_seconds:
            self._end(TOO_SLOW, "the client was silent for too long")
        since = self._writing_since
        if since is not None and now - since >= self._pace.send_seconds:
            self._end(TOO_SLOW, "the client does not read")
        if self._close is not None:
            return
        if now - self._sent_at >= self._pace.beat_seconds and not self._turn.locked():
            # No task group: in a timer AnyIO knows the event loop only if it has started it.
            self._beat = asyncio.get_running_loop().create_task(self._say(Beat()))
        self._watch()

    def _hello(self) -> Hello:
        pace = self._pace
        return Hello(
            protocol=PROTOCOL,
            epoch=self._hub.epoch,
            name=self._person.name,
            role=self._person.role,
            beat_seconds=pace.beat_seconds,
            limits=Limits(
                frame_bytes=self._frame_bytes,
                sessions=pace.sessions,
                commands=pace.commands,
                silence_seconds=pace.silence_seconds,
            ),
        )

    async def _say(self, frame: Frame) -> None:
        async with self._turn:
            await self._write(msgspec.json.encode(frame).decode())

    async def _write(self, frame: str | bytes) -> None:
        """Send a frame; the caller holds the lock.

        `_look` sees whether it takes too long: a timer for each frame, of which nearly none is ever
        needed, would take longer than to send it.
        """
        self._writing_since = time.monotonic()
        try:
            member = "text" if isinstance(frame, str) else "bytes"
            await self._send({"type": "websocket.send", member: frame})
            self._sent_at = time.monotonic()
        except (OSError, RuntimeError):
            # The server closed it by itself and has not said so yet.
            self._gone = True
            self._scope.cancel()
        finally:
            self._writing_since = None

    async def _say_goodbye(self, code: int, reason: str) -> None:
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            # It may be gone already, which is what was wanted.
            with contextlib.suppress(OSError, RuntimeError):
                await self._send({"type": "websocket.close", "code": code, "reason": reason})
