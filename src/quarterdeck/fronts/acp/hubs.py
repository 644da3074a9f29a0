"""The hub that an editor's requests go to, and its errors as errors of JSON-RPC.

The address is looked up again for each request: a hub that was restarted may have another one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import anyio

from quarterdeck.client import HubAddress, HubClient, HubRefused
from quarterdeck.domain.errors import LinkError, NotFound, QuarterdeckError, UsageError
from quarterdeck.fronts.acp import rpc
from quarterdeck.fronts.acp.rpc import RpcError
from quarterdeck.protocol.shapes import Me

Where = Callable[[], Awaitable[HubAddress]]


class Hubs:
    """The client of the hub that is there now; an async context manager."""

    def __init__(self, where: Where) -> None:
        self.where = where
        self._client: HubClient | None = None
        self._me: Me | None = None
        self._stack = AsyncExitStack()
        self._opening = anyio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def client(self) -> HubClient:
        """The client. Raises `LinkRefused` where no hub is."""
        address = await self.where()
        async with self._opening:
            if self._client is None or self._client.where != address:
                await self._stack.aclose()
                self._me = None
                self._client = await self._stack.enter_async_context(
                    HubClient(
                        address.address,
                        address.token,
                        insecure=address.insecure,
                        ca_file=address.ca_file,
                    )
                )
            return self._client

    async def me(self) -> Me:
        """The person that the token belongs to."""
        client = await self.client()
        if self._me is None:
            self._me = await client.whoami()
        return self._me


def rpc_error(error: QuarterdeckError) -> RpcError:
    """An error for the editor, which shows its message to the person."""
    match error:
        case HubRefused(problem=problem):
            code = {
                400: rpc.INVALID_PARAMS,
                401: rpc.AUTH_REQUIRED,
                404: rpc.NOT_FOUND,
            }.get(problem.status, rpc.INTERNAL_ERROR)
            return RpcError(code, str(error), {"code": problem.code})
        case NotFound():
            return RpcError(rpc.NOT_FOUND, str(error))
        case UsageError():
            return RpcError(rpc.INVALID_PARAMS, str(error))
        case LinkError():
            return RpcError(rpc.INTERNAL_ERROR, str(error), {"code": "hub_away"})
        case _:
            return RpcError(rpc.INTERNAL_ERROR, str(error))
