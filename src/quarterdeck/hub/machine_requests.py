"""Requests to machines: something that a machine looks up or does outside of a run.

Owns which are under way, and that each ends: answered, refused, or failed with the connection or
the time. `worktrees` stands above it; below are the machines' sockets, which `runners` has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import anyio
import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import Conflict, LinkClosed, LinkRefused
from quarterdeck.domain.ids import new_id
from quarterdeck.domain.secrets import mask_tokens_in
from quarterdeck.protocol.machine_requests import (
    MACHINE_REQUESTS,
    SECONDS,
    AnyMachineRequest,
    AnyMachineResult,
    MachineRequestRefused,
)
from quarterdeck.protocol.runner_frames import Header, Hello, MachineRequest, Reply

_R = TypeVar("_R", bound=AnyMachineResult)
OtherHubs = Callable[[str, Raw], Awaitable[tuple[bool, bytes] | None]]


class SendRequest(Protocol):
    """How a machine is told something, if it is there."""

    def __call__(self, machine: str, header: Header, /, *lines: bytes) -> None:
        """Say it."""


class MachineRequests:
    """The requests that are under way."""

    def __init__(self, send: SendRequest, hello: Callable[[str], Hello | None]) -> None:
        """`hello` gives what a machine said of itself, if it is connected."""
        self._send = send
        self._hello = hello
        self.remote: OtherHubs | None = None
        """With several hubs: has a machine of another hub do it; None if no other has it."""
        self._open: dict[str, tuple[str, asyncio.Future[tuple[bool, bytes]]]] = {}

    async def run(
        self, machine: str, request: AnyMachineRequest, gives: type[_R], seconds: float = SECONDS
    ) -> _R:
        """Have it done. Raises `Conflict` with the machine's code, or `LinkError`."""
        refused, line = await self.ask(machine, Raw(msgspec.json.encode(request)), seconds)
        try:
            if not refused:
                return msgspec.json.decode(line, type=gives)
            why = msgspec.json.decode(line, type=MachineRequestRefused)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            text = f"the machine {machine!r} answered what is no answer: {error}"
            raise Conflict("bad_answer", text) from error
        raise Conflict(why.code, why.text)

    async def ask(
        self, machine: str, request: Raw, seconds: float = SECONDS, *, here: bool = False
    ) -> tuple[bool, bytes]:
        """Have it done, and give whether it was refused, and the answer; `here`: by this hub."""
        hello = self._hello(machine)
        if hello is None:
            found = None
            if self.remote is not None and not here:
                found = await self.remote(machine, request)
            if found is None:
                raise LinkRefused(f"the machine {machine!r} is not connected")
            return found
        if MACHINE_REQUESTS not in hello.can:
            text = f"the runner of {machine!r} ({hello.version}) is too old for this: update it"
            raise Conflict("old_runner", text)
        id_ = new_id()
        answer: asyncio.Future[tuple[bool, bytes]] = asyncio.get_running_loop().create_future()
        self._open[id_] = (machine, answer)
        try:
            self._send(machine, MachineRequest(request=id_), bytes(request))
            with anyio.fail_after(seconds):
                return await answer
        except TimeoutError:
            text = f"the machine {machine!r} did not answer within {seconds:g} s"
            raise Conflict("machine_silent", text) from None
        finally:
            del self._open[id_]

    def take_reply(self, machine: str, reply: Reply, lines: list[bytes]) -> None:
        """A machine has answered; an answer that nobody waits for (any more) is nothing."""
        asked, answer = self._open.get(reply.request, ("", None))
        if answer is not None and asked == machine and not answer.done():
            # Diffs are in it, and with them whatever is in files.
            answer.set_result((reply.refused, mask_tokens_in(b"\n".join(lines))))

    def forget_machine(self, machine: str) -> None:
        """The machine is gone: whether it did what it was asked to is not known."""
        for asked, answer in self._open.values():
            if asked == machine and not answer.done():
                text = f"the connection to {machine!r} was lost; it may have been done all the same"
                answer.set_exception(LinkClosed(text))
