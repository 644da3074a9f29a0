"""A request of an agent that came to a hub which does not have its session: its owner answers.

Owns the way there and back, whole and once. The agent's own token goes along, and the owner checks
it again. A request that was passed on is not passed on again: a session that has just moved is
refused, and the agent asks again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from quarterdeck.fronts.peers.client import CONNECT_SECONDS, PeerClient
from quarterdeck.fronts.peers.endpoint import Receive, Scope, Send, read_body
from quarterdeck.hub.api import Owner

log = logging.getLogger(__name__)

FORWARDED = "quarterdeck-forwarded"
SECONDS = 150.0
"""A tool may wait for two minutes."""
MOST_BYTES = 4 * 1024 * 1024
_PASSED = (b"authorization", b"content-type", b"accept")
_PASSED_PREFIX = b"mcp-"
_BACK = ("content-type", "mcp-session-id", "www-authenticate", "allow")


class Forward:
    """Passes requests on."""

    def __init__(self, client: PeerClient, find: Callable[[str], Awaitable[Owner | None]]) -> None:
        """`find` gives the other hub that has the session of a token's agent."""
        self._client = client
        self._find = find

    async def __call__(self, token: str, scope: Scope, receive: Receive, send: Send) -> bool:
        """Have the owner answer the agent with this token; False if no other hub has it."""
        owner = await self._find(token)
        if owner is not None:
            await self._pass_on(owner, scope, receive, send)
        return owner is not None

    async def _pass_on(self, owner: Owner, scope: Scope, receive: Receive, send: Send) -> None:
        import httpx2

        rows: list[tuple[bytes, bytes]] = scope["headers"]
        if any(name.lower() == FORWARDED.encode() for name, _ in rows) or not owner.url:
            await _respond(send, 503, b'{"code":"owner_away"}', {"retry-after": "1"})
            return
        try:
            body = await read_body(receive, MOST_BYTES)
        except ValueError:
            await _respond(send, 413, b'{"code":"too_large"}', {})
            return
        headers = [
            (name, value)
            for name, value in rows
            if name.lower() in _PASSED or name.lower().startswith(_PASSED_PREFIX)
        ]
        try:
            answer = await self._client.client.request(
                str(scope["method"]),
                owner.url.rstrip("/") + str(scope["path"]),
                content=body,
                headers=[*headers, (FORWARDED.encode(), b"1")],
                timeout=httpx2.Timeout(SECONDS, connect=CONNECT_SECONDS),
            )
        except (httpx2.TransportError, httpx2.InvalidURL) as error:
            log.info("the hub at %s does not answer an agent: %s", owner.url, error)
            await _respond(send, 503, b'{"code":"owner_away"}', {"retry-after": "1"})
            return
        back = {name: answer.headers[name] for name in _BACK if name in answer.headers}
        await _respond(send, answer.status_code, answer.content, back)


async def _respond(send: Send, status: int, body: bytes, headers: dict[str, str]) -> None:
    given = {"content-type": "application/json", **headers, "content-length": str(len(body))}
    rows = [(name.encode(), value.encode("latin-1")) for name, value in given.items()]
    await send({"type": "http.response.start", "status": status, "headers": rows})
    await send({"type": "http.response.body", "body": body})
