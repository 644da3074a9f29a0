"""Quarterdeck: a controller for Claude Code.

The names below are what most programs need. They are loaded when first used, so that importing
`quarterdeck` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from quarterdeck.agent import (
        Agent,
        Allow,
        AnyAsk,
        Ask,
        CliSandbox,
        Decision,
        Deny,
        Hook,
        InstalledPlugin,
        LocalPlugin,
        Options,
        PlanAsk,
        Query,
        QuestionsAsk,
        Reply,
        SandboxFiles,
        SandboxNetwork,
        SessionStore,
        ToolAsk,
        ask,
    )
    from quarterdeck.agent.hooks import (
        add_context,
        allow_call,
        ask_about_call,
        block,
        deny_call,
        end_turn,
    )
    from quarterdeck.agent.listen import Listener, listen
    from quarterdeck.agent.mcp import ToolContext, ToolServer, tool
    from quarterdeck.agent.service import Decide
    from quarterdeck.client.once import HubReply, hub_ask
    from quarterdeck.domain.errors import (
        LaunchError,
        LinkClosed,
        QuarterdeckError,
        RequestError,
        RequestRefused,
        RequestTimeout,
        TurnFailed,
        UnsupportedError,
        UsageError,
    )
    from quarterdeck.wire.base import Unknown
    from quarterdeck.wire.content import TextBlock, ToolResultBlock, ToolUseBlock
    from quarterdeck.wire.hook_outputs import SyncOutput
    from quarterdeck.wire.hooks import HookEvent
    from quarterdeck.wire.info import AgentDefinition, McpHttpServer, McpSseServer, McpStdioServer
    from quarterdeck.wire.messages import Assistant, FromCli, Result, StreamEvent, User
    from quarterdeck.wire.outbound import Prompt, document_block, image_block, text_block
    from quarterdeck.wire.permissions import (
        AddRules,
        Destination,
        PermissionBehavior,
        PermissionMode,
    )
    from quarterdeck.wire.states import State
    from quarterdeck.wire.turns import Turn
    from quarterdeck.wire.values import PermissionRule
    from quarterdeck.wire.versions import Version

__all__ = [
    "AddRules",
    "Agent",
    "AgentDefinition",
    "Allow",
    "AnyAsk",
    "Ask",
    "Assistant",
    "CliSandbox",
    "Decide",
    "Decision",
    "Deny",
    "Destination",
    "FromCli",
    "Hook",
    "HookEvent",
    "HubReply",
    "InstalledPlugin",
    "LaunchError",
    "LinkClosed",
    "Listener",
    "LocalPlugin",
    "McpHttpServer",
    "McpSseServer",
    "McpStdioServer",
    "Options",
    "PermissionBehavior",
    "PermissionMode",
    "PermissionRule",
    "PlanAsk",
    "Prompt",
    "QuarterdeckError",
    "Query",
    "QuestionsAsk",
    "Reply",
    "RequestError",
    "RequestRefused",
    "RequestTimeout",
    "Result",
    "SandboxFiles",
    "SandboxNetwork",
    "SessionStore",
    "State",
    "StreamEvent",
    "SyncOutput",
    "TextBlock",
    "ToolAsk",
    "ToolContext",
    "ToolResultBlock",
    "ToolServer",
    "ToolUseBlock",
    "Turn",
    "TurnFailed",
    "Unknown",
    "UnsupportedError",
    "UsageError",
    "User",
    "Version",
    "__version__",
    "add_context",
    "allow_call",
    "ask",
    "ask_about_call",
    "block",
    "deny_call",
    "document_block",
    "end_turn",
    "hub_ask",
    "image_block",
    "listen",
    "text_block",
    "tool",
]

# Where a name lives that is not in `quarterdeck.agent`.
_HOMES = {
    "AddRules": "quarterdeck.wire.permissions",
    "AgentDefinition": "quarterdeck.wire.info",
    "Assistant": "quarterdeck.wire.messages",
    "Decide": "quarterdeck.agent.service",
    "Destination": "quarterdeck.wire.permissions",
    "FromCli": "quarterdeck.wire.messages",
    "HookEvent": "quarterdeck.wire.hooks",
    "HubReply": "quarterdeck.client.once",
    "LaunchError": "quarterdeck.domain.errors",
    "LinkClosed": "quarterdeck.domain.errors",
    "Listener": "quarterdeck.agent.listen",
    "McpHttpServer": "quarterdeck.wire.info",
    "McpSseServer": "quarterdeck.wire.info",
    "McpStdioServer": "quarterdeck.wire.info",
    "PermissionBehavior": "quarterdeck.wire.permissions",
    "PermissionMode": "quarterdeck.wire.permissions",
    "PermissionRule": "quarterdeck.wire.values",
    "Prompt": "quarterdeck.wire.outbound",
    "QuarterdeckError": "quarterdeck.domain.errors",
    "RequestError": "quarterdeck.domain.errors",
    "RequestRefused": "quarterdeck.domain.errors",
    "RequestTimeout": "quarterdeck.domain.errors",
    "Result": "quarterdeck.wire.messages",
    "State": "quarterdeck.wire.states",
    "StreamEvent": "quarterdeck.wire.messages",
    "SyncOutput": "quarterdeck.wire.hook_outputs",
    "TextBlock": "quarterdeck.wire.content",
    "ToolContext": "quarterdeck.agent.mcp",
    "ToolResultBlock": "quarterdeck.wire.content",
    "ToolServer": "quarterdeck.agent.mcp",
    "ToolUseBlock": "quarterdeck.wire.content",
    "Turn": "quarterdeck.wire.turns",
    "TurnFailed": "quarterdeck.domain.errors",
    "Unknown": "quarterdeck.wire.base",
    "UnsupportedError": "quarterdeck.domain.errors",
    "UsageError": "quarterdeck.domain.errors",
    "User": "quarterdeck.wire.messages",
    "Version": "quarterdeck.wire.versions",
    "add_context": "quarterdeck.agent.hooks",
    "allow_call": "quarterdeck.agent.hooks",
    "ask_about_call": "quarterdeck.agent.hooks",
    "block": "quarterdeck.agent.hooks",
    "deny_call": "quarterdeck.agent.hooks",
    "document_block": "quarterdeck.wire.outbound",
    "end_turn": "quarterdeck.agent.hooks",
    "hub_ask": "quarterdeck.client.once",
    "image_block": "quarterdeck.wire.outbound",
    "listen": "quarterdeck.agent.listen",
    "text_block": "quarterdeck.wire.outbound",
    "tool": "quarterdeck.agent.mcp",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES.get(name, "quarterdeck.agent")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
