"""A client with a plugin, skills, commands, settings of its project, an MCP server, many hooks."""

from __future__ import annotations

import asyncio
import json
import sys
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

EVENTS = (
    "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest",
    "Stop",
)  # fmt: skip
SERVER = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    tool = {"name": "far", "description": "Far.", "inputSchema": {"type": "object"}}
    given = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "far", "version": "1"},
        },
        "tools/list": {"tools": [tool]},
        "tools/call": {"content": [{"type": "text", "text": "from far"}]},
    }.get(asked["method"], {})
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": given}), flush=True)
"""
FILES = {
    ".claude/settings.json": json.dumps(
        {
            "env": {"FROM_PROJECT": "the project", "CLAUDE_CODE_SIMPLE": "1"},
            "permissions": {"deny": ["Bash(touch denied)"]},
        }
    ),
    ".claude/settings.local.json": json.dumps({"env": {"FROM_PROJECT": "not read"}}),
    ".claude/commands/greet.md": "---\ndescription: Greets.\n---\n" + play("hello, $ARGUMENTS"),
    ".claude/agents/painter.md": "---\nname: painter\ndescription: Paints.\n---\nYou paint.\n",
    ".claude/skills/dance/SKILL.md": "---\nname: dance\ndescription: Dances.\n---\nDance.\n",
    "own/.claude-plugin/plugin.json": json.dumps({"name": "own", "version": "1.0.0"}),
    "own/commands/shout.md": "---\ndescription: Shouts.\n---\n" + play("HEY"),
    "own/agents/singer.md": "---\nname: singer\ndescription: Sings.\n---\nYou sing.\n",
}
"""What the program finds in its folder."""
EXTENSIONS = {"greet", "painter", "dance", "own:shout", "own:singer", "worker", "own"}


hooks: list[str] = []
"""The hooks of one turn: how they mix with messages depends on the time."""


def hook(event: str) -> Any:
    async def called(given: Any, _id: str | None, _context: Any) -> Any:
        hooks.append(" ".join([event, given.get("tool_name", ""), given.get("agent_type", "")]))
        return {}

    return HookMatcher(hooks=[called])


def short(part: object) -> str:
    """The beginning of a block, wherever the program runs."""
    return str(block(part)).replace(str(Path.cwd()), ".")[:60]


def show_extensions(message: SystemMessage) -> None:
    data = message.data
    for name in ("slash_commands", "agents", "skills"):
        print(name, sorted(EXTENSIONS.intersection(data.get(name) or ())))
    print("plugins", [each["name"] for each in data.get("plugins") or ()])


async def turn(client: ClaudeSDKClient, prompt: str) -> None:
    """One turn, and the hooks that it called."""
    await client.query(prompt)
    reports = set()
    async for message in client.receive_response():
        if isinstance(message, SystemMessage) and message.subtype == "init":
            show_extensions(message)
        elif isinstance(message, SystemMessage):
            reports.add(message.subtype)
        elif isinstance(message, UserMessage | AssistantMessage):
            parts = message.content
            if not isinstance(parts, str):
                print(type(message).__name__, [short(each) for each in parts])
        else:
            show(message)
    print("hooks", hooks, "reports", sorted(reports - {"task_progress"}))
    hooks.clear()


async def main() -> None:
    here = Path.cwd()
    for name, content in FILES.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(content)
    worker = AgentDefinition(description="Works.", prompt="You work.", tools=["Bash"])
    wanted = options(
        setting_sources=["project"],
        plugins=[{"type": "local", "path": str(here / "own")}],
        skills="all",
        agents={"worker": worker},
        hooks={event: [hook(event)] for event in EVENTS},
        mcp_servers={"far": {"command": sys.executable, "args": ["-c", SERVER]}},
        allowed_tools=["mcp__far__far", "Bash(printenv:*)"],
        system_prompt={"type": "preset", "preset": "claude_code", "append": "Be brief."},
        settings=json.dumps({"env": {"FROM_PROGRAM": "the program"}}),
        permission_mode="acceptEdits",
    )
    async with ClaudeSDKClient(wanted) as client:
        await turn(
            client,
            play(
                reply(ToolUse("Bash", {"command": "printenv FROM_PROJECT FROM_PROGRAM"})),
                reply(ToolUse("Bash", {"command": "touch denied"})),
                reply(ToolUse("Read", {"file_path": str(here / "none")})),
                reply(ToolUse("mcp__far__far", {})),
                reply(Text("done")),
            ),
        )
        for prompt in ("/greet you", "/own:shout"):
            await turn(client, prompt)
        await client.toggle_mcp_server("far", enabled=False)
        status = await client.get_mcp_status()
        print("servers", [(each["name"], each["status"]) for each in status["mcpServers"]])
        print("context", sorted(await client.get_context_usage()))


asyncio.run(main())
