"""Calls to other hubs on the same journal: the `Peers` of a fleet, over HTTP.

Owns what a failed call means. A call that did not arrive has done nothing, and the fleet routes its
command again. One whose answer was lost may have been done: it is repeated only if the command can
be repeated, and else the person is told.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import Conflict
from quarterdeck.fronts.peers.endpoint import (
    AGENTS,
    COMMANDS,
    MACHINES,
    MOST_BYTES,
    REQUESTS,
    WRONG_HUB,
)
from quarterdeck.fronts.peers.messages import (
    Again,
    AgentAnswer,
    AgentCall,
    CarriedError,
    MachineAnswer,
    SealedCommand,
    SealedRequest,
    to_error,
)
from quarterdeck.fronts.peers.seal import HEADER, Sealer, is_same
from quarterdeck.hub.api import Asker, HubPlace, Owner, PeerOffline
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.protocol.machine_requests import SECONDS as MACHINE_SECONDS
from quarterdeck.protocol.views import MachineView
from quarterdeck.runtime.client_tls import client_context

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 45.0
MACHINES_SECONDS = 2.0
_REPEATABLE = (
    cmd.CreateSession,
    cmd.SendPrompt,
    cmd.StopSession,
    cmd.RenameSession,
    cmd.ArchiveSession,
)
"""Commands that do nothing the second time: they name what they make, or say how it is to be."""

_T = TypeVar("_T")


class PeerClient:
    """The other hubs."""

    def __init__(self, sealer: Sealer, ca_file: Path | None = None) -> None:
        self._sealer = sealer
        self._ca_file = ca_file
        self._made: httpx2.AsyncClient | None = None

    @property
    def client(self) -> httpx2.AsyncClient:
        """The connections, made when they are first needed."""
        import httpx2  # 0.2 s to load, which a hub alone does not need

        if self._made is None:
            timeout = httpx2.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
            # No proxy of the environment, and no redirect: a seal is for one hub.
            self._made = httpx2.AsyncClient(
                verify=client_context(self._ca_file), timeout=timeout, trust_env=False
            )
        return self._made

    async def close(self) -> None:
        """Close the connections."""
        if self._made is not None:
            await self._made.aclose()

    async def submit(self, owner: Owner, command: AnyCommand, asker: Asker) -> Outcome:
        """Have a command done by its owner."""
        body = SealedCommand(command=Raw(msgspec.json.encode(command)), asker=asker)
        seconds = ANSWER_SECONDS
        if isinstance(command, cmd.Control):
            seconds = max(seconds, command.timeout + CONNECT_SECONDS)
        repeatable = isinstance(command, _REPEATABLE)
        return await self._call(
            owner.url, owner.hub, COMMANDS, body, Outcome, seconds, repeatable=repeatable
        )

    async def run(
        self, owner: Owner, machine: str, request: Raw, asker: Asker
    ) -> tuple[bool, bytes]:
        """Have a machine of another hub do something."""
        body = SealedRequest(machine=machine, request=request, asker=asker)
        found = await self._call(
            owner.url, owner.hub, REQUESTS, body, MachineAnswer, MACHINE_SECONDS
        )
        return found.refused, found.answer

    async def machines(self, place: HubPlace) -> list[MachineView]:
        """The machines of another hub."""
        return await self._call(
            place.url,
            place.hub,
            MACHINES,
            None,
            list[MachineView],
            MACHINES_SECONDS,
            repeatable=True,
        )

    async def answer_agent(self, owner: Owner, call: AgentCall, seconds: float) -> AgentAnswer:
        """Have the agent of a run answered by its owner."""
        return await self._call(owner.url, owner.hub, AGENTS, call, AgentAnswer, seconds)

    async def _call(
        self,
        url: str,
        hub: str,
        path: str,
        body: object | None,
        gives: type[_T],
        seconds: float,
        *,
        repeatable: bool = False,
    ) -> _T:
        import httpx2

        if not url:
            raise PeerOffline(f"hub {hub} has announced no address")
        method = "GET" if body is None else "POST"
        data = b"" if body is None else msgspec.json.encode(body)
        if len(data) > MOST_BYTES:
            raise Conflict("too_large", "the command is too large to be passed to another hub")
        seal = self._sealer.seal(hub, method, path, data)
        headers = {HEADER: seal}
        if data:
            headers["content-type"] = "application/json"
        timeout = httpx2.Timeout(seconds, connect=CONNECT_SECONDS)
        try:
            answer = await self.client.request(
                method, url.rstrip("/") + path, content=data, headers=headers, timeout=timeout
            )
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            raise PeerOffline(f"the hub at {url} cannot be reached: {error}") from error
        except (httpx2.TransportError, httpx2.InvalidURL) as error:
            raise _lost_error(url, f"{type(error).__name__}: {error}", repeatable) from error
        status, content = answer.status_code, answer.content
        expected = self._sealer.seal_answer(seal, status, content)
        if not is_same(answer.headers.get(HEADER, ""), expected):
            reason = f"HTTP {status} without the seal of the hub: perhaps another program is there"
            raise _lost_error(url, reason, repeatable)
        return _read(url, status, content, gives)


def _lost_error(url: str, reason: str, repeatable: bool) -> Conflict:
    """The error of a request that may have been done, and has no answer that counts."""
    if repeatable:
        return PeerOffline(f"the hub at {url} gave no answer ({reason})")
    text = (
        f"the hub at {url} gave no answer while it did this ({reason}): look at the session before"
        " you try again"
    )
    return Conflict("outcome_unknown", text)


def _read(url: str, status: int, content: bytes, gives: type[_T]) -> _T:
    try:
        if status == 200:
            return msgspec.json.decode(content, type=gives)
        found = msgspec.json.decode(content, type=CarriedError)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        text = f"the hub at {url} answered with HTTP {status} and what is no answer: {error}"
        raise Conflict("other_hub_failed", text) from error
    if status in {403, WRONG_HUB}:  # it was refused before anything was done
        raise PeerOffline(f"the hub at {url} does not take this: {found.text}")
    failed = to_error(found)
    raise PeerOffline(found.text) if isinstance(failed, Again) else failed
