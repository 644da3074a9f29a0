"""The hub as each person sees it: one client for each token, opened when it is first used.

Everything that a Telegram user does is done with the token of the person whom they are paired with,
so that the hub knows who it was and what they may do. The bot's own token only reads.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec

from quarterdeck.client import HubClient
from quarterdeck.client.calls import HubAddress, HubRefused, send
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.telegram.state import Paired

MOST_CLIENTS = 50


class _NewPairing(Value):
    code: str
    label: str


class _ReadCode(Value):
    code: str


class _Done(Value):
    """An answer of which nothing is read."""


class _MadePairing(Value):
    token: str
    name: str
    role: str


class People:
    """Clients of one hub. Use it with `async with opened(…)`."""

    def __init__(self, where: HubAddress, stack: AsyncExitStack) -> None:
        self.where = where
        self._stack = stack
        self._clients: dict[str, tuple[HubClient, AsyncExitStack]] = {}

    async def bot(self) -> HubClient:
        """The hub as the bot itself sees it."""
        return await self.client(self.where.token)

    async def client(self, token: str) -> HubClient:
        """The hub as the holder of a token sees it."""
        found = self._clients.pop(token, None)
        if found is None:
            client = HubClient(
                self.where.address,
                token,
                insecure=self.where.insecure,
                ca_file=self.where.ca_file,
            )
            own = AsyncExitStack()
            await own.enter_async_context(client)
            self._stack.push_async_callback(own.aclose)
            found = (client, own)
        self._clients[token] = found  # the one that was used last is the last
        while len(self._clients) > MOST_CLIENTS:
            _, (_, oldest) = next(iter(self._clients.items()))
            del self._clients[next(iter(self._clients))]
            await oldest.aclose()
        return found[0]

    async def pair(self, user: int, code: str) -> Paired:
        """Exchange a code for a token of the person who made it. Raises `HubRefused`."""
        body = _NewPairing(code=code, label=f"telegram:{user}")
        hub = await self.bot()
        made = await hub.call(send("POST", "/api/pairing", _MadePairing, body))
        return Paired(user=user, person=made.name, role=made.role, token=made.token)

    async def cancel_code(self, code: str) -> None:
        """Let a code work no more that others may have read."""
        hub = await self.bot()
        await hub.call(send("POST", "/api/pairing/cancel", _Done, _ReadCode(code=code)))

    async def end(self, token: str) -> None:
        """End the access of a token; one that has ended already is no error."""
        hub = await self.client(token)
        try:
            await hub.call(send("DELETE", "/api/token", _Done))
        except HubRefused as error:
            if not is_revoked(error):
                raise


@asynccontextmanager
async def open_people(where: HubAddress) -> AsyncIterator[People]:
    """The people of a hub, while the block runs."""
    async with AsyncExitStack() as stack:
        yield People(where, stack)


def is_revoked(error: Exception) -> bool:
    """Whether the hub says that a token is not valid any more."""
    problem = getattr(error, "problem", None)
    return isinstance(problem, msgspec.Struct) and getattr(problem, "status", 0) == 401
