"""Programs that run their agent by themselves and connect it to the hub (`quarterdeck-claude`).

An ASGI app with one socket for each program. It begins with the frame `program` and goes on as the
socket of a runner's run: lines are numbered in both directions, kept until they are journalled, and
never doubled. Owns which programs are connected, and when one that is away is given up. Who may
connect is `check`'s business, and what lines mean the session's.

A program owns its session by a key of its own, from which the session's id is derived. So each one
comes back to its own session, whatever was lost meanwhile, and to no other.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

import anyio
import msgspec
from msgspec import Raw

from quarterdeck.domain.addresses import is_loopback
from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import JournalError, UsageError
from quarterdeck.domain.ids import is_id
from quarterdeck.hub.ports import RunEnd, RunOwner
from quarterdeck.hub.run_sockets import Gone, NumberedPort, Wire, bearer, next_frame, not_here
from quarterdeck.hub.runners import BAD_FRAME, FORBIDDEN, REPLACED, TRY_AGAIN, address_of
from quarterdeck.protocol.roles import Role
from quarterdeck.protocol.runner_frames import (
    PROTOCOL,
    Ended,
    Gap,
    Lines,
    Program,
    ProgramAct,
    ProgramAnswer,
    RunnerHeader,
    Started,
    Stop,
    TranscriptQuery,
    Written,
    program_session,
)
from quarterdeck.protocol.sessions import LOCAL
from quarterdeck.runtime.asgi import Receive, Scope, Send

log = logging.getLogger(__name__)

RETURN_SECONDS = 600.0
"""For so long a program that is away is waited for. One that runs dials again every few seconds."""
MOST_NEW, NEW_SECONDS = 60, 60.0
"""So many sessions may begin with one token in such a time. Another program dials again until it
may."""
LOST = CodedText(code=TextCode.PROGRAM_LOST)
REFUSED = CodedText(code=TextCode.PROGRAM_REVOKED)
LONGEST_NAME = 100
LATEST = 2.0**35
"""The largest time that an id can have, in seconds since 1970."""


class Dialler(Protocol):
    """Whose token a program came with."""

    @property
    def name(self) -> str:
        """The name of the token."""

    @property
    def role(self) -> Role:
        """The role of the token."""


Adopt = Callable[[Program, str, str | None], Awaitable[bool]]
"""Begin or find the session of a program, by its name and the address that it is from. False: its
run is over."""


def name_of(dialler: Dialler, claimed: str) -> str:
    """Who acts, where a program does: `program NAME` with the name of its own token.

    A token of many programs says nothing about which one it is. What such a program calls itself
    comes after the token's name, so that it cannot call itself as another one is called.
    """
    if dialler.role is Role.PROGRAM and not _is_local(dialler):
        return f"program {dialler.name}"
    claimed = claimed[:LONGEST_NAME] if claimed.isprintable() else ""
    return f"{dialler.name}'s program {claimed or 'program'}"


def _is_local(dialler: Dialler) -> bool:
    """Whether this is the token of the programs of this machine's user."""
    return dialler.role is Role.PROGRAM and dialler.name == LOCAL


class _Port(NumberedPort):
    """A session's hold on a program's agent."""

    def __init__(self, programs: Programs, run: str, session: str) -> None:
        super().__init__(run, session)
        self.by = ""
        """Who answers for the program."""
        self.away_since = time.monotonic()
        self.stopping: Stop | None = None
        self.answers: dict[str, Raw] = {}
        """What the program has answered, by request, where that is not asked yet."""
        self._programs = programs

    def stop(self, *, force: bool = False) -> None:
        self.stopping = Stop(run=self.run, force=force)
        if self.wire is not None:
            self.wire.put(self.stopping)

    def forget(self) -> None:
        self.send()
        self._programs.drop(self)

    def read_transcript(self, wanted: TranscriptQuery) -> None:
        pass  # nothing is unheard: it keeps its lines until we have them


class Programs:
    """All programs. `owner` gives a session; `check` tells whose token this is."""

    def __init__(
        self,
        owner: Callable[[str], RunOwner | None],
        check: Callable[[str], Dialler | None],
        adopt: Adopt,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.return_seconds = RETURN_SECONDS
        self.most_new = MOST_NEW
        self._owner = owner
        self._check = check
        self._adopt = adopt
        self._clock = clock
        self._ports: dict[str, _Port] = {}
        """By session: a program that names the run of another gets nothing of it."""
        self._begun: dict[str, deque[float]] = {}
        """When sessions began, by the name of the token."""

    # --- for the sessions ------------------------------------------------------------------------

    def attach(self, run: str, session: str, *, said: int) -> _Port:
        """The run of a program that is there, or will connect again."""
        port = self._ports[session] = _Port(self, run, session)
        port.upto = said
        port.lost = said > 0
        port.away_since = self._clock()
        return port

    def drop(self, port: _Port) -> None:
        """Nothing of this run is needed any more."""
        if self._ports.get(port.session) is port:
            del self._ports[port.session]
            if port.wire is not None:
                port.wire.close(1000)

    async def tick(self) -> None:
        """What time brings: give up programs that stay away, and give answers that waited."""
        for port in list(self._ports.values()):
            owner = self._owner(port.session)
            if owner is None:
                continue
            for request_id, response in list(port.answers.items()):
                await self._answer(port, owner, request_id, response)
            if port.wire is None and self._clock() - port.away_since > self.return_seconds:
                away = CodedText(code=TextCode.PROGRAM_NOT_BACK, seconds=self.return_seconds)
                await owner.run_ended(port.run, RunEnd(reason="", coded=away))

    # --- the ASGI app ----------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one socket of a program."""
        if scope["type"] != "websocket":
            await not_here(send)
            return
        await receive()  # websocket.connect
        token = bearer(scope)
        dialler = self._check(token)
        if dialler is None:
            await send({"type": "websocket.close", "code": FORBIDDEN})
            return
        await send({"type": "websocket.accept"})
        wire = Wire()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wire.pump, send)
            try:
                await self._serve(dialler, token, address_of(scope), wire, receive)
            except Gone:
                pass
            except (msgspec.DecodeError, UnicodeDecodeError, UsageError) as error:
                log.warning("a program sent an invalid frame: %s", error)
                await wire.end(BAD_FRAME)
            except JournalError as error:
                log.error("what a program said is not journalled, and not acknowledged: %s", error)
                await wire.end(TRY_AGAIN)
            tasks.cancel_scope.cancel()

    async def _serve(
        self, dialler: Dialler, token: str, address: str | None, wire: Wire, receive: Receive
    ) -> None:
        hello, _ = await next_frame(receive)
        if not isinstance(hello, Program) or hello.protocol != PROTOCOL:
            raise msgspec.DecodeError("the first frame of a program is `program`, of protocol 1")
        if not is_id(hello.run) or not 0 <= hello.began < LATEST:
            raise msgspec.DecodeError("a program has an id and a time")
        if hello.session != program_session(hello.began, hello.key):
            raise msgspec.DecodeError("a program's key does not fit its session")
        by = name_of(dialler, hello.name)
        if address is not None and is_loopback(address) and not _is_local(dialler):
            # With another token it may be behind a tunnel or a proxy that tells nothing. Only
            # programs of this machine's user can read the one of this machine.
            address = None
        if hello.session not in self._ports and not self._may_begin(dialler.name):
            log.warning("%s: it has begun %d sessions within a minute", by, self.most_new)
            await wire.end(TRY_AGAIN)
            return
        known = await self._adopt(hello, by, address)
        port, owner = self._ports.get(hello.session), self._owner(hello.session)
        if not known or port is None or owner is None:
            wire.put(Stop(run=hello.run, force=True))
            await wire.end(1000)
            return
        if port.wire is not None:
            port.wire.close(REPLACED)
        port.by = by
        port.connect(wire)
        try:
            if port.stopping is not None:
                wire.put(port.stopping)
            if port.lost:
                await owner.run_found(port.run)
                port.lost = False
            while True:
                header, lines = await next_frame(receive)
                await self._take(port, owner, header, lines)
        finally:
            await self._note_exit(port, wire, owner, refused=self._check(token) is None)

    def _may_begin(self, token: str) -> bool:
        """Whether one more session may begin now: a token must not make countless ones."""
        now = self._clock()
        begun = self._begun.setdefault(token, deque())
        while begun and now - begun[0] >= NEW_SECONDS:
            begun.popleft()
        if len(begun) >= self.most_new:
            return False
        begun.append(now)
        return True

    async def _note_exit(self, port: _Port, wire: Wire, owner: RunOwner, *, refused: bool) -> None:
        if port.wire is not wire:
            return
        port.wire = None
        port.away_since = self._clock()
        if self._ports.get(port.session) is not port:
            return
        port.lost = True
        with anyio.CancelScope(shield=True):
            try:
                if refused:
                    await owner.run_ended(port.run, RunEnd(reason="", coded=REFUSED))
                else:
                    await owner.run_lost(port.run, LOST)
            except JournalError as error:
                log.error("run %s: it is not journalled that it is away: %s", port.run, error)

    async def _take(
        self, port: _Port, owner: RunOwner, header: RunnerHeader, lines: list[bytes]
    ) -> None:
        match header:
            case Started(pid=pid, version=version, directory=directory):
                await owner.run_started(port.run, pid, version, directory, None)
            case Lines(first=first):
                await owner.run_said(port.run, first, lines)
            case Written(upto=upto):
                port.note_written(upto)
            case ProgramAnswer(request_id=request_id, response=response):
                await self._answer(port, owner, request_id, response)
            case ProgramAct():
                await owner.run_acted(port.run, header, port.by)
            case Gap():
                pass  # only deltas were given up, and nobody would have kept them
            case Ended():
                await owner.run_ended(port.run, RunEnd(**msgspec.structs.asdict(header)))
            case _:
                raise msgspec.DecodeError(f"{type(header).__name__} on a program's socket")

    async def _answer(self, port: _Port, owner: RunOwner, request_id: str, response: Raw) -> None:
        settled = await owner.run_answered(port.run, request_id, response, port.by)
        if settled:
            port.answers.pop(request_id, None)
        else:
            port.answers[request_id] = response
