"""A stream of prompts, one after the other, which the CLI gives back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from claude_agent_sdk import query

from program.programs.show import options, show
from quarterdeck.testing import Text, play, reply


async def prompts() -> AsyncIterator[dict[str, Any]]:
    for text in ("one", "two"):
        body = {"role": "user", "content": play(reply(Text(text)))}
        yield {"type": "user", "message": body, "parent_tool_use_id": None, "session_id": "s"}


async def main() -> None:
    given_back = options(extra_args={"replay-user-messages": None})
    async for message in query(prompt=prompts(), options=given_back):
        show(message)


asyncio.run(main())
