"""One prompt to a new session of the hub, one answer, no async: for scripts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from quarterdeck.client.public import Hub, Startable
from quarterdeck.client.query import HubTurn
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.events import TurnEnded
from quarterdeck.protocol.sessions import SessionSpec

if TYPE_CHECKING:
    from quarterdeck.client.asks import DecideAsk
    from quarterdeck.client.calls import Content


class HubReply(Value):
    """The result of one prompt. `session` is the session of the hub, which stays there."""

    text: str
    session: str
    cost_usd: float
    ended: TurnEnded


def hub_ask(
    prompt: Content,
    options: SessionSpec | Startable | None = None,
    *,
    decide: DecideAsk | None = None,
    address: str | None = None,
    token_file: str | Path | None = None,
    keep: bool = False,
) -> HubReply:
    """Start a session of the hub with one prompt, wait for its turn to end, return the reply.

    The hub is found as `Hub` finds it. Without `decide` questions wait for a person, who answers
    anywhere. Afterwards the agent is stopped, unless `keep` is set; the session stays. Raises
    `TurnFailed` if the turn failed. Blocks; in async code use `Hub`.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return anyio.run(_ask, prompt, options, decide, address, token_file, keep)
    raise UsageError("hub_ask() blocks and an event loop is running here; use `async with Hub(…)`")


async def _ask(
    prompt: Content,
    options: SessionSpec | Startable | None,
    decide: DecideAsk | None,
    address: str | None,
    token_file: str | Path | None,
    keep: bool,
) -> HubReply:
    async with (
        Hub(address, token_file=token_file) as hub,
        await hub.start(options, prompt, decide=decide) as session,
    ):
        assert session.first is not None
        try:
            ended = HubTurn.check(await session.first.finish())
        finally:
            if not keep:
                with anyio.CancelScope(shield=True):
                    await session.stop()
        return HubReply(text=ended.text, session=session.id, cost_usd=ended.cost_usd, ended=ended)
