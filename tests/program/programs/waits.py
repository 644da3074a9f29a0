"""Does one thing that needs permission, and says so: its name is its argument."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from claude_agent_sdk import (
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    UserMessage,
)

from program.programs.show import options, show
from quarterdeck.testing import Text, ToolUse, play, reply

NAME, *STEPS = sys.argv[1:]
"""After the name, the commands; `answers` before them: it has a callback. `stays`: it has a second
turn after a line on its input."""


async def may_use(name: str, given: dict[str, Any], _context: Any) -> Any:
    print("asked", name, flush=True)
    if "deny" in str(given):
        return PermissionResultDeny(message="the program says no")
    return PermissionResultAllow()


async def main() -> None:
    callback, stays = STEPS[:1] == ["answers"], STEPS[:1] == ["stays"]
    commands = STEPS[1:] if callback or stays else STEPS
    steps = [reply(ToolUse("Bash", {"command": each})) for each in commands]
    async with ClaudeSDKClient(options(can_use_tool=may_use if callback else None)) as client:
        await client.query(play(*steps, reply(Text(f"done by {NAME}"))))
        async for message in client.receive_response():
            if isinstance(message, UserMessage | ResultMessage):
                show(message)
        if stays:
            print("stays", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
            await client.query(play(reply(Text("the second turn"))))
            async for message in client.receive_response():
                show(message)


asyncio.run(main())
