"""A server of tools in the program: one that answers, one that fails, one that is not allowed."""

from __future__ import annotations

import asyncio
from typing import Any

from claude_agent_sdk import ClaudeSDKClient, create_sdk_mcp_server, tool

from program.programs.show import options, show
from quarterdeck.testing import Text, ToolUse, play, reply


@tool("add", "Adds two numbers.", {"a": int, "b": int})
async def add(given: dict[str, Any]) -> dict[str, Any]:
    print("add", given)
    return {"content": [{"type": "text", "text": str(given["a"] + given["b"])}]}


@tool("divide", "Divides two numbers.", {"a": int, "b": int})
async def divide(given: dict[str, Any]) -> dict[str, Any]:
    print("divide", given)
    return {"content": [{"type": "text", "text": str(given["a"] / given["b"])}]}


async def main() -> None:
    server = create_sdk_mcp_server("calc", tools=[add, divide])
    allowed = ["mcp__calc__add", "mcp__calc__divide"]
    wanted = options(mcp_servers={"calc": server}, allowed_tools=allowed)
    async with ClaudeSDKClient(wanted) as client:
        steps = [
            ToolUse("mcp__calc__add", {"a": 2, "b": 3}),
            ToolUse("mcp__calc__divide", {"a": 1, "b": 0}),
            ToolUse("mcp__calc__add", {"a": "two", "b": 3}),
        ]
        await client.query(play(*(reply(step) for step in steps), reply(Text("done"))))
        async for message in client.receive_response():
            show(message)
        status = await client.get_mcp_status()
        print("servers", [(each["name"], each["status"]) for each in status["mcpServers"]])


asyncio.run(main())
