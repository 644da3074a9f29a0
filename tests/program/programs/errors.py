"""Errors: a flag that there is not, a conversation that there is not, an error of the API."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from claude_agent_sdk import query

from program.programs.show import options, show
from quarterdeck.testing import ApiError, play, reply


async def tell(prompt: str, **wanted: Any) -> None:
    try:
        async for message in query(prompt=prompt, options=options(**wanted)):
            show(message)
    except Exception as error:  # noqa: BLE001 - the same one is expected of both
        print("error", type(error).__name__, getattr(error, "exit_code", None))


async def main() -> None:
    await tell("x", extra_args={"no-such-flag": None})
    print("--- no such conversation")
    await tell("x", resume=str(uuid.UUID(int=7)))
    print("--- the API refuses")
    await tell(play(reply(ApiError(400, "not like this"))))


asyncio.run(main())
