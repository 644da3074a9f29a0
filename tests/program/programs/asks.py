"""A client with callbacks, hooks, a server of its own, questions, and changes of mode and model."""

from __future__ import annotations

import asyncio
from typing import Any

from claude_agent_sdk import (
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionUpdate,
    create_sdk_mcp_server,
    tool,
)

from program.programs.show import options, show
from quarterdeck.testing import Text, Thinking, ToolUse, play, reply


async def may_use(name: str, given: dict[str, Any], context: Any) -> Any:
    print("asked", name, given, [each.type for each in context.suggestions])
    command = str(given.get("command", ""))
    if "forbidden" in command:
        return PermissionResultDeny(message="not this one")
    if "broken" in command:
        raise RuntimeError("the callback broke")
    if "other" in command:
        return PermissionResultAllow(updated_input={"command": "echo replaced"})
    if "always" in command:
        accept = PermissionUpdate(type="setMode", mode="acceptEdits", destination="session")
        return PermissionResultAllow(updated_permissions=[accept])
    if name == "AskUserQuestion":
        return PermissionResultAllow(updated_input={**given, "answers": {"Which?": "Left"}})
    return PermissionResultAllow()


async def before(given: Any, _id: str | None, _context: Any) -> Any:
    print("before", given["tool_name"], given["permission_mode"])
    if "hooked" in str(given["tool_input"]):
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": "the hook says no",
            }
        }
    return {}


async def after(given: Any, _id: str | None, _context: Any) -> Any:
    print("after", given["tool_name"])
    return {}


async def prompted(given: Any, _id: str | None, _context: Any) -> Any:
    print("prompted", len(given["prompt"]) > 0)
    return {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "x"}}


@tool("add", "Adds two numbers.", {"a": int, "b": int})
async def add(given: dict[str, Any]) -> dict[str, Any]:
    print("add", given)
    return {"content": [{"type": "text", "text": str(given["a"] + given["b"])}]}


QUESTION = {
    "question": "Which?",
    "header": "Way",
    "options": [{"label": "Left", "description": ""}, {"label": "Right", "description": ""}],
    "multiSelect": False,
}


async def main() -> None:
    hooks: Any = {
        "PreToolUse": [HookMatcher(matcher="Bash", hooks=[before])],
        "PostToolUse": [HookMatcher(hooks=[after])],
        "UserPromptSubmit": [HookMatcher(hooks=[prompted])],
    }
    servers = {"calc": create_sdk_mcp_server("calc", tools=[add])}
    wanted = options(
        can_use_tool=may_use,
        hooks=hooks,
        mcp_servers=servers,
        system_prompt="Be brief.",
    )
    async with ClaudeSDKClient(wanted) as client:
        info = await client.get_server_info()
        print("info", sorted(info or {}))
        steps = [
            ToolUse("Bash", {"command": "touch allowed"}),
            ToolUse("Bash", {"command": "touch forbidden"}),
            ToolUse("Bash", {"command": "touch other"}),
            ToolUse("Bash", {"command": "touch hooked"}),
            ToolUse("Bash", {"command": "touch broken"}),
            ToolUse("mcp__calc__add", {"a": 2, "b": 3}),
            ToolUse("AskUserQuestion", {"questions": [QUESTION]}),
            ToolUse("Bash", {"command": "touch always"}),
        ]
        await client.query(play(*(reply(step) for step in steps), reply(Text("done"))))
        async for message in client.receive_response():
            show(message)
        await client.set_permission_mode("plan")
        await client.set_model("claude-haiku-4-5")
        await client.query(play(reply(Thinking("hm"), Text("second"))))
        async for message in client.receive_response():
            show(message)
        status = await client.get_mcp_status()
        print("servers", [(each["name"], each["status"]) for each in status["mcpServers"]])


asyncio.run(main())
