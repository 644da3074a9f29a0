"""Queries: a text, a stream of prompts, pieces of text, prompts given back, a command, stderr."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from claude_agent_sdk import query

from program.programs.show import options, show
from quarterdeck.testing import Text, Thinking, ToolUse, play, reply


async def prompts() -> AsyncIterator[dict[str, Any]]:
    for text in ("one", "two"):
        body = {"role": "user", "content": play(reply(Text(text)))}
        yield {"type": "user", "message": body, "parent_tool_use_id": None, "session_id": "s"}


async def main() -> None:
    first = ""
    async for message in query(
        prompt=play(reply(Thinking("hm"), Text("plain")), reply(Text("unused"))),
        options=options(include_partial_messages=True, stderr=lambda line: print("stderr", line)),
    ):
        show(message)
        first = getattr(message, "session_id", first)
    print("--- prompts one after the other, given back, in the same conversation")
    given_back = options(extra_args={"replay-user-messages": None}, resume=first)
    async for message in query(prompt=prompts(), options=given_back):
        show(message)
    print("--- a command of the CLI, and a fork")
    async for message in query(prompt="/cost", options=options(resume=first, fork_session=True)):
        print(type(message).__name__, getattr(message, "num_turns", ""))
    print("--- a tool that needs no permission, an allowed one, and a limit")
    steps = (
        reply(ToolUse("Glob", {"pattern": "*.none"})),
        reply(ToolUse("Bash", {"command": "touch by-rule"})),
        reply(ToolUse("Bash", {"command": "echo never"})),
    )
    limited = options(allowed_tools=["Bash(touch by-rule)"], max_turns=2)
    try:
        async for message in query(prompt=play(*steps), options=limited):
            show(message)
    except Exception as error:  # noqa: BLE001 - the same one is expected of both
        print("error", type(error).__name__, error)


asyncio.run(main())
