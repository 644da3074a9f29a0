"""Hooks of four events: they deny, add context, replace an input, and do not let it stop."""

from __future__ import annotations

import asyncio
from typing import Any

from claude_agent_sdk import ClaudeSDKClient, HookMatcher

from program.programs.show import options, show
from quarterdeck.testing import Text, ToolUse, play, reply

stops = 0


async def before(given: Any, _id: str | None, _context: Any) -> Any:
    print("before", given["tool_name"], given["permission_mode"])
    decided: dict[str, Any] = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
    if "hooked" in str(given["tool_input"]):
        decided |= {
            "permissionDecision": "deny",
            "permissionDecisionReason": "the hook says no",
        }
    elif "other" in str(given["tool_input"]):
        decided["updatedInput"] = {"command": "echo replaced"}
    return {"hookSpecificOutput": decided}


async def after(given: Any, _id: str | None, _context: Any) -> Any:
    print("after", given["tool_name"])
    return {}


async def prompted(given: Any, _id: str | None, _context: Any) -> Any:
    print("prompted", len(given["prompt"]) > 0)
    return {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "x"}}


async def stopped(_given: Any, _id: str | None, _context: Any) -> Any:
    global stops  # noqa: PLW0603 - a small program
    stops += 1
    print("stop", stops)
    return {"decision": "block", "reason": "once more"} if stops == 1 else {}


async def main() -> None:
    hooks: Any = {
        "PreToolUse": [HookMatcher(matcher="Bash", hooks=[before])],
        "PostToolUse": [HookMatcher(hooks=[after])],
        "UserPromptSubmit": [HookMatcher(hooks=[prompted])],
        "Stop": [HookMatcher(hooks=[stopped])],
    }
    async with ClaudeSDKClient(options(hooks=hooks)) as client:
        commands = ("touch made", "touch hooked", "touch other")
        steps = [reply(ToolUse("Bash", {"command": each})) for each in commands]
        await client.query(play(*steps, reply(Text("done")), reply(Text("really done"))))
        async for message in client.receive_response():
            show(message)


asyncio.run(main())
