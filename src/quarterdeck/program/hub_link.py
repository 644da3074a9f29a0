"""The agent's connection to the hub: numbered lines out, numbered lines in, over any number of
sockets.

Owns what the hub does not have yet, and when to dial. `bridge` is above; the runner's spool and
sockets are below. It looks into no line.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import anyio
import anyio.lowlevel
import msgspec
from msgspec import Raw
from websockets.exceptions import InvalidStatus

from quarterdeck.domain.errors import LinkClosed, LinkError, LinkRefused
from quarterdeck.domain.exits import Exit
from quarterdeck.domain.structs import Value
from quarterdeck.program.acts import Act
from quarterdeck.protocol.runner_frames import (
    Ack,
    Ended,
    Gap,
    HubHeader,
    Lines,
    Program,
    ProgramAct,
    ProgramAnswer,
    Started,
    Stop,
    Write,
    Written,
)
from quarterdeck.runner.hublink import LOOPBACK, Hub, HubSocket, UnreadableStart, run_together
from quarterdeck.runner.segments import Kind
from quarterdeck.runner.spool import Spool

PATH = "/program"
_FORBIDDEN = frozenset({401, 403, 404})


class Timeouts(Value):
    """How long things are tried, in seconds."""

    start: float = 5.0
    """For the first connection to a hub that does not answer."""
    greeting: float = 15.0
    refused: float = 30.0
    """While a hub that had accepted the token refuses it: then it was revoked."""
    farewell: float = 10.0
    """At the end: for the hub to take the last lines."""


class HubLink:
    """One agent's connection. `serve` runs until the end is delivered, or raises `LinkRefused`.

    `find` gives the hub for each attempt: it may have another address when it is back. `take` gets
    each line for the CLI, once and in order. `stop` is called when the session is to end.
    """

    def __init__(
        self,
        find: Callable[[], Hub],
        hello: Program,
        spool: Spool,
        take: Callable[[bytes], None],
        stop: Callable[[bool], None],
        timeouts: Timeouts | None = None,
    ) -> None:
        self.ready = asyncio.Event()
        """Set when the hub has accepted the program for the first time."""
        self.delivered = asyncio.Event()
        """Set when the hub has everything, the end too."""
        self.room = asyncio.Event()
        """Cleared while the CLI has to wait, because nobody takes what it says."""
        self.room.set()
        self._find = find
        self._hello = hello
        self._spool = spool
        self._take = take
        self._stop = stop
        self._timeouts = timeouts or Timeouts()
        self._started: Started | None = None
        self._answers: dict[str, ProgramAnswer] = {}
        self._accepted = 0
        self._news = asyncio.Event()

    @property
    def farewell_seconds(self) -> float:
        """How long the hub is waited for at the end."""
        return self._timeouts.farewell

    # --- what the agent says ---------------------------------------------------------------------

    def start(self, started: Started) -> None:
        """The CLI runs, and can be greeted."""
        if self._started is None:
            self._started = started
            self._news.set()

    def say(self, lines: Sequence[bytes]) -> None:
        """Lines of the CLI."""
        self._spool.add(lines)
        if self._spool.full:
            self.room.clear()
        self._news.set()

    def act(self, act: Act) -> None:
        """The program has done something to its agent."""
        number = self._spool.last + 1
        self._spool.add_report(ProgramAct(number=number, **msgspec.structs.asdict(act)))
        self._news.set()

    def answer(self, request_id: str, response: Raw) -> None:
        """The program has answered a permission request."""
        self._answers[request_id] = ProgramAnswer(request_id=request_id, response=response)
        self._news.set()

    def keep_answers(self, is_open: Callable[[str], bool]) -> None:
        """Forget the answers to requests that are not open any more."""
        for request_id in [each for each in self._answers if not is_open(each)]:
            del self._answers[request_id]

    def end(self, exit_: Exit) -> None:
        """The CLI has ended."""
        number = self._spool.last + 1
        self._spool.end(Ended(number=number, **msgspec.structs.asdict(exit_)))
        self._news.set()

    # --- the sockets -----------------------------------------------------------------------------

    async def serve(self) -> None:
        """Connect, and again, until all is delivered. Raises `LinkRefused` if the hub does not
        want the program, or if there is none at the start.
        """
        attempt = 0
        began = time.monotonic()
        refused_since: float | None = None
        while not self.delivered.is_set():
            socket: HubSocket | None = None
            redial = LOOPBACK
            try:
                hub = self._find()
                redial = hub.redial
                socket = await hub.dial(PATH)
                upto = await self._handshake(socket)
                attempt, refused_since = 0, None
                await self._exchange(socket, upto)
            except LinkRefused as refused:
                now = time.monotonic()
                if not self.ready.is_set():
                    if _is_final(refused) or now - began > self._timeouts.start:
                        raise
                elif _is_final(refused):
                    refused_since = refused_since or now
                    if now - refused_since > self._timeouts.refused:
                        raise
            except LinkError:
                pass  # the next attempt tells whether the hub is there
            finally:
                if socket is not None:
                    await socket.close()
            if not self.delivered.is_set():
                await anyio.sleep(redial.pause(attempt))
                attempt += 1

    async def _handshake(self, socket: HubSocket) -> int:
        """Say who we are; returns the number that the hub has acknowledged."""
        await socket.send(self._hello)
        try:
            with anyio.fail_after(self._timeouts.greeting):
                header, _ = await socket.receive()
        except TimeoutError:
            raise LinkError("the hub did not acknowledge in time") from None
        if isinstance(header, Stop):
            self._stop(header.force)
            if not self.ready.is_set():
                raise LinkRefused("the hub does not take this program")
            header, _ = await socket.receive()
        if not isinstance(header, Ack):
            raise LinkError(f"the hub began with {type(header).__name__}, not with `have`")
        self._acknowledge(header.upto)
        self.ready.set()
        return header.upto

    async def _exchange(self, socket: HubSocket, upto: int) -> None:
        async def receive() -> None:
            while True:
                self._receive(*await socket.receive())

        async def finish() -> None:
            await self.delivered.wait()
            raise LinkClosed("everything is delivered")

        async def send() -> None:
            await self._send(socket, upto)

        await run_together(send, receive, finish)

    async def _send(self, socket: HubSocket, sent: int) -> None:
        told_start = False
        reported = -1
        answered: set[str] = set()
        while True:
            self._news.clear()
            if self._started is not None and not told_start:
                await socket.send(self._started)
                told_start = True
            if reported != self._accepted:
                reported = self._accepted
                await socket.send(Written(upto=reported))
            sent = max(sent, self._spool.acknowledged)
            batch = self._spool.batch(sent)
            if batch:
                first = batch[0].number
                if first > sent + 1:
                    await socket.send(Gap(first=first))
                sent = batch[-1].number
                if batch[0].kind is Kind.END:
                    await socket.send(msgspec.json.decode(batch[0].data, type=Ended))
                elif batch[0].kind is Kind.REPORT:
                    await socket.send(msgspec.json.decode(batch[0].data, type=ProgramAct))
                else:
                    await socket.send(Lines(first=first), [each.data for each in batch])
                await anyio.lowlevel.checkpoint()
                continue
            # After the lines: the hub has the question before it has the answer.
            for answer in [a for a in self._answers.values() if a.request_id not in answered]:
                answered.add(answer.request_id)
                await socket.send(answer)
            await self._news.wait()

    def _receive(self, header: HubHeader | UnreadableStart, lines: list[bytes]) -> None:
        match header:
            case Ack(upto=upto):
                self._acknowledge(upto)
            case Write(number=number):
                if number > self._accepted + 1 or len(lines) != 1:
                    raise LinkError(f"write {number} came after {self._accepted}")
                if number == self._accepted + 1:
                    self._accepted = number
                    self._take(lines[0])
                    self._news.set()
            case Stop(force=force):
                self._stop(force)
            case _:
                raise LinkError(f"the hub sent {type(header).__name__} to a program")

    def _acknowledge(self, upto: int) -> None:
        if upto > self._spool.last:
            raise LinkError(f"the hub acknowledged {upto}, but the last is {self._spool.last}")
        self._spool.acknowledge(upto)
        if not self._spool.full:
            self.room.set()
        ended = self._spool.ended
        if ended is not None and self._spool.acknowledged >= ended.number:
            self.delivered.set()


def _is_final(refused: LinkRefused) -> bool:
    """Whether the hub itself has refused, and is not just away."""
    cause = refused.__cause__
    return isinstance(cause, InvalidStatus) and cause.response.status_code in _FORBIDDEN
