"""How the programs print messages: without ids, times and costs, which differ in each run."""

from __future__ import annotations

import os
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)


def options(**more: Any) -> ClaudeAgentOptions:
    """Options with the CLI under test, if one is named."""
    return ClaudeAgentOptions(cli_path=os.environ.get("CLI_UNDER_TEST") or None, **more)


def show(message: object) -> None:
    """Print one message."""
    match message:
        case SystemMessage(subtype="init", data=data):
            print(
                "init", data["permissionMode"], data["model"], sorted(data["mcp_servers"], key=str)
            )
        case SystemMessage(subtype=subtype, data=data):
            print("system", subtype, sorted(data))
        case AssistantMessage(content=content, error=error):
            print("assistant", [block(each) for each in content], error)
        case UserMessage(content=str(text)):
            print("user", text)
        case UserMessage(content=content):
            print("user", [block(each) for each in content])
        case StreamEvent(event=event):
            print("piece", event["type"])
        case ResultMessage():
            print("result", message.subtype, message.is_error, message.num_turns, message.result)
            if message.structured_output is not None:
                print("structured", message.structured_output)
            if message.permission_denials:
                print("denied", [each["tool_name"] for each in message.permission_denials])
        case _:
            print("other", type(message).__name__)


def block(part: object) -> object:
    """One block of a message."""
    match part:
        case TextBlock(text=text):
            return text
        case ToolUseBlock(name=name, input=given):
            return (name, given)
        case ToolResultBlock(content=content, is_error=error):
            return (content, error)
        case _:
            return type(part).__name__
