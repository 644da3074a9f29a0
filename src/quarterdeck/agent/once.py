"""One prompt, one answer, no async: for scripts and the interactive interpreter."""

from __future__ import annotations

import asyncio

import anyio
from msgspec import Struct

from quarterdeck.agent.agent import Agent
from quarterdeck.agent.options import Options
from quarterdeck.agent.query import Query
from quarterdeck.agent.service import Decide
from quarterdeck.domain.errors import UsageError
from quarterdeck.wire.messages import Result
from quarterdeck.wire.outbound import Prompt


class Reply(Struct, frozen=True):
    """The result of one prompt. `session_id` resumes the conversation: `Options(resume=…)`."""

    text: str
    result: Result
    cost_usd: float
    session_id: str


def ask(
    prompt: str | Prompt, options: Options | None = None, *, decide: Decide | None = None
) -> Reply:
    """Start an agent, send it one prompt, wait for its turn to end, and return the reply.

    Raises `TurnFailed` if the turn failed. `decide` answers permission requests; without it they
    are denied. Blocks; in async code use `Agent`.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return anyio.run(_ask, prompt, options, decide)
    raise UsageError("ask() blocks and an event loop is running here; use `async with Agent(…)`")


async def _ask(prompt: str | Prompt, options: Options | None, decide: Decide | None) -> Reply:
    async with Agent(options, decide=decide) as agent:
        turn = await agent.query(prompt).finish()
        result = Query.check(turn)
        return Reply(result.result or "", result, turn.cost_usd, result.session_id)
