"""Limits: a tool that needs no permission, an allowed one, a number of turns, and a budget."""

from __future__ import annotations

import asyncio
from typing import Any

from claude_agent_sdk import query

from program.programs.show import options, show
from quarterdeck.testing import Text, ToolUse, play, reply


async def tell(prompt: str, **wanted: Any) -> None:
    try:
        async for message in query(prompt=prompt, options=options(**wanted)):
            show(message)
    except Exception as error:  # noqa: BLE001 - the same one is expected of both
        print("error", type(error).__name__, error)


async def main() -> None:
    glob = reply(ToolUse("Glob", {"pattern": "*.none"}))
    touch = reply(ToolUse("Bash", {"command": "touch by-rule"}))
    never = reply(ToolUse("Bash", {"command": "echo never"}))
    rules = ["Bash(touch by-rule)"]
    await tell(play(glob, touch, never), allowed_tools=rules, max_turns=2)
    print("--- a budget that one answer uses up")
    await tell(play(glob, reply(Text("never"))), max_budget_usd=0.000001)


asyncio.run(main())
