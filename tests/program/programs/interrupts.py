"""A client that interrupts a command which runs, and goes on."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from claude_agent_sdk import AssistantMessage, ClaudeSDKClient, ResultMessage

from program.programs.show import options, show
from quarterdeck.testing import Text, ToolUse, play, reply


async def main() -> None:
    bypass = options(permission_mode="bypassPermissions", tools=["Bash", "Read"])
    async with ClaudeSDKClient(bypass) as client:
        started = Path(f"started-{os.getpid()}")
        command = f"touch {started}; sleep 60"
        await client.query(play(reply(ToolUse("Bash", {"command": command}))))
        async for message in client.receive_messages():
            if isinstance(message, AssistantMessage):
                break
        while not started.exists():  # noqa: ASYNC110, ASYNC240 - the CLI does not say when it runs
            await asyncio.sleep(0.02)
        await client.interrupt()
        async for message in client.receive_response():
            if isinstance(message, ResultMessage):
                print("interrupted", message.subtype)
        await client.query(play(reply(Text("goes on"))))
        async for message in client.receive_response():
            show(message)


asyncio.run(main())
