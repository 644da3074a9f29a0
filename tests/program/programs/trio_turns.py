"""A client on trio: two turns, a callback and a hook, and a change of the mode between them."""

from __future__ import annotations

import sys
from typing import Any

from claude_agent_sdk import (
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
)

from program.programs.show import options, show
from quarterdeck.testing import ToolUse, play, reply

sys.path.append(sys.argv[1])

import trio  # type: ignore[import-not-found, unused-ignore]


async def may_use(name: str, given: dict[str, Any], _context: Any) -> Any:
    print("asked", name, given)
    await trio.sleep(0.01)
    if "forbidden" in str(given):
        return PermissionResultDeny(message="not this one")
    return PermissionResultAllow()


async def after(given: Any, _id: str | None, _context: Any) -> Any:
    print("after", given["tool_name"])
    return {}


async def main() -> None:
    hooks: Any = {"PostToolUse": [HookMatcher(hooks=[after])]}
    async with ClaudeSDKClient(options(can_use_tool=may_use, hooks=hooks)) as client:
        commands = [ToolUse("Bash", {"command": f"touch {each}"}) for each in ("a", "forbidden")]
        await client.query(play(*(reply(each) for each in commands), "done"))
        async for message in client.receive_response():
            show(message)
        await client.set_permission_mode("plan")
        await client.query(play("planned"))
        async for message in client.receive_response():
            show(message)


trio.run(main)
