"""A client that interrupts, is interrupted by its own errors, and gets an object back."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    ClaudeSDKClient,
    ResultMessage,
    query,
)

from program.programs.show import options, show
from quarterdeck.testing import Text, ToolUse, play, reply

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


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
    print("--- an object")
    structured: dict[str, Any] = {"type": "json_schema", "schema": SCHEMA}
    worker = AgentDefinition(description="Works.", prompt="You work.", tools=["Read"])
    wanted = options(output_format=structured, agents={"worker": worker}, max_budget_usd=5.0)
    steps = (reply(ToolUse("StructuredOutput", {"n": 7})), reply(Text("ok")))
    async for message in query(prompt=play(*steps), options=wanted):
        show(message)
    print("--- a flag that there is not")
    try:
        async for message in query(prompt="x", options=options(extra_args={"no-such-flag": None})):
            show(message)
    except Exception as error:  # noqa: BLE001 - the same one is expected of both
        print("error", type(error).__name__, getattr(error, "exit_code", None))


asyncio.run(main())
