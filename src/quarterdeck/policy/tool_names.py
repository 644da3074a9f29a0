"""The names of Claude Code's tools, to find misspelt ones in rules.

A list for warnings only: nothing is decided by it, because a newer CLI may have more tools.
"""

from __future__ import annotations

from difflib import get_close_matches
from fnmatch import fnmatchcase

from quarterdeck.domain.structs import name_set
from quarterdeck.policy.calls import ARGUMENT

MCP = "mcp__"
"""The beginning of the names of MCP tools."""

KNOWN_TOOLS = name_set(
    "AskUserQuestion BashOutput Brief Config CronCreate CronDelete CronList EnterPlanMode "
    "EnterWorktree ExitPlanMode ExitWorktree KillShell ListAgents ListMcpResourcesTool LSP Monitor "
    "PowerShell PushNotification ReadMcpResourceTool RemoteTrigger REPL ScheduleWakeup SendMessage "
    "SendUserFile SendUserMessage Sleep SlashCommand StructuredOutput TaskCreate TaskGet TaskList "
    "TaskOutput TaskStop TaskUpdate TeamCreate TeamDelete TodoRead TodoWrite ToolSearch "
    "WaitForMcpServers WebBrowser Workflow"
) | frozenset(ARGUMENT)
"""The tools of the supported versions, 2.1.37 to 2.1.325, and of some older ones."""


def tool_problem(pattern: str) -> str | None:
    """Why a pattern for the names of tools matches none, as far as is known; None if it may."""
    if pattern.startswith(MCP):
        server, _, tool = pattern.removeprefix(MCP).partition("__")
        if tool or "*" in server or not server:
            return None
        return f'no tool has this name: for all tools of the server, write server = "{server}"'
    if any(fnmatchcase(name, pattern) for name in KNOWN_TOOLS):
        return None
    if pattern.endswith("*") and MCP.startswith(pattern[:-1]):
        return None
    close = get_close_matches(pattern, KNOWN_TOOLS, n=1, cutoff=0.7) or [
        name for name in sorted(KNOWN_TOOLS) if name.lower() == pattern.lower()
    ]
    hint = f": did you mean {close[0]!r}?" if close else "; names of MCP tools begin with mcp__"
    return f"Claude Code has no tool {pattern!r}{hint}"
