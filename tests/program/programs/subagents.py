"""Subagents: one of the program and one of its folder, with their texts and hooks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    ClaudeSDKClient,
    HookMatcher,
    SystemMessage,
    UserMessage,
)

from program.programs.show import block, options, show
from quarterdeck.testing import Text, ToolUse, play, reply
from quarterdeck.testing.script import Said

PAINTER = "---\nname: painter\ndescription: Paints.\n---\nYou paint.\n"
hooks: list[str] = []
"""How they mix with messages depends on the time."""


def hook(event: str) -> HookMatcher:
    async def called(given: Any, _id: str | None, _context: Any) -> Any:
        hooks.append(" ".join([event, given.get("agent_type", "")]))
        return {}

    return HookMatcher(hooks=[called])


def task(agent: str, *steps: Said) -> ToolUse:
    given = {"description": "work", "prompt": play(*steps), "subagent_type": agent}
    return ToolUse("Agent", {**given, "run_in_background": False})


async def main() -> None:
    agents = Path(".claude/agents")
    agents.mkdir(parents=True)  # noqa: ASYNC240 - a small program
    (agents / "painter.md").write_text(PAINTER)
    events: Any = ("SubagentStart", "SubagentStop")
    wanted = options(
        agents={"worker": AgentDefinition(description="Works.", prompt="You work.")},
        setting_sources=["project"],
        hooks={event: [hook(event)] for event in events},
        allowed_tools=["Bash(echo:*)"],
        forward_subagent_text=True,
    )
    async with ClaudeSDKClient(wanted) as client:
        echo = reply(ToolUse("Bash", {"command": "echo below"}))
        steps = [task("worker", echo, reply(Text("worked"))), task("painter", "painted")]
        await client.query(play(*(reply(step) for step in steps), reply(Text("done"))))
        async for message in client.receive_response():
            if isinstance(message, SystemMessage):
                continue
            if isinstance(message, UserMessage | AssistantMessage):
                below = "below" if message.parent_tool_use_id else ""
                parts = [] if isinstance(message.content, str) else message.content
                print(type(message).__name__, below, [str(block(each))[:40] for each in parts])
            else:
                show(message)
    print("hooks", hooks)


asyncio.run(main())
