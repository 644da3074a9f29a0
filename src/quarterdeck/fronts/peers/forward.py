"""A request of an agent that came to a hub which does not have its session: its owner answers.

Owns the way there and back, whole and once. The agent's token stays here: the request names the run
whose token it is, and is sealed as all that hubs tell each other. A request that was passed on is
not passed on again: a session that has just moved is refused, and the agent asks again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from quarterdeck.domain.errors import QuarterdeckError
from quarterdeck.fronts.peers.client import PeerClient
from quarterdeck.fronts.peers.endpoint import FORWARDED, Receive, Scope, Send, read_body
from quarterdeck.fronts.peers.messages import AgentCall
from quarterdeck.hub.api import RemoteAgent

log = logging.getLogger(__name__)

SECONDS = 150.0
"""A tool may wait for two minutes."""
MOST_BYTES = 4 * 1024 * 1024
_PASSED = (b"content-type", b"accept")
_PASSED_PREFIX = b"mcp-"
_BACK = ("content-type", "mcp-session-id", "www-authenticate", "allow")


class Forward:
    """Passes requests on."""

    def __init__(
        self, client: PeerClient, find: Callable[[str], Awaitable[RemoteAgent | None]]
    ) -> None:
        """`find` gives the other hub that has the session of a token's agent."""
        self._client = client
        self._find = find

    async def __call__(self, token: str, scope: Scope, receive: Receive, send: Send) -> bool:
        """Have the owner answer the agent with this token; False if no other hub has it."""
        found = await self._find(token)
        if found is not None:
            await self._pass_on(found, scope, receive, send)
        return found is not None

    async def _pass_on(
        self, found: RemoteAgent, scope: Scope, receive: Receive, send: Send
    ) -> None:
        owner = found.owner
        rows: list[tuple[bytes, bytes]] = scope["headers"]
        if any(name.lower() == FORWARDED.encode() for name, _ in rows):
            await _respond(send, 503, b'{"code":"owner_away"}', {"retry-after": "1"})
            return
        try:
            body = await read_body(receive, MOST_BYTES)
        except ValueError:
            await _respond(send, 413, b'{"code":"too_large"}', {})
            return
        headers = tuple(
            (name.decode("latin-1").lower(), value.decode("latin-1"))
            for name, value in rows
            if name.lower() in _PASSED or name.lower().startswith(_PASSED_PREFIX)
        )
        call = AgentCall(
            session=found.session,
            run=found.run,
            method=str(scope["method"]),
            headers=headers,
            body=body,
        )
        try:
            answer = await self._client.answer_agent(owner, call, SECONDS)
        except QuarterdeckError as error:
            log.info("the hub at %s does not answer an agent: %s", owner.url, error)
            await _respond(send, 503, b'{"code":"owner_away"}', {"retry-after": "1"})
            return
        back = {name: value for name, value in answer.headers if name in _BACK}
        await _respond(send, answer.status, answer.body, back)


async def _respond(send: Send, status: int, body: bytes, headers: dict[str, str]) -> None:
    given = {"content-type": "application/json", **headers, "content-length": str(len(body))}
    rows = [(name.encode(), value.encode("latin-1")) for name, value in given.items()]
    await send({"type": "http.response.start", "status": status, "headers": rows})
    await send({"type": "http.response.body", "body": body})
