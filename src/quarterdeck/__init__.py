"""Quarterdeck: a control deck for Claude Code.

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
        Decision,
        Deny,
        Hook,
        Options,
        PlanAsk,
        Query,
        QuestionsAsk,
        Reply,
        ToolAsk,
        ask,
    )
    from quarterdeck.agent.listen import Listener, listen
    from quarterdeck.agent.mcp import ToolContext, ToolServer, tool
    from quarterdeck.domain.errors import QuarterdeckError
    from quarterdeck.wire.messages import Assistant, Result, StreamEvent, User
    from quarterdeck.wire.outbound import Prompt
    from quarterdeck.wire.permissions import PermissionMode

__all__ = [
    "Agent",
    "Allow",
    "AnyAsk",
    "Ask",
    "Assistant",
    "Decision",
    "Deny",
    "Hook",
    "Listener",
    "Options",
    "PermissionMode",
    "PlanAsk",
    "Prompt",
    "QuarterdeckError",
    "Query",
    "QuestionsAsk",
    "Reply",
    "Result",
    "StreamEvent",
    "ToolAsk",
    "ToolContext",
    "ToolServer",
    "User",
    "__version__",
    "ask",
    "listen",
    "tool",
]

_HOMES = {
    "Assistant": "quarterdeck.wire.messages",
    "Listener": "quarterdeck.agent.listen",
    "PermissionMode": "quarterdeck.wire.permissions",
    "Prompt": "quarterdeck.wire.outbound",
    "QuarterdeckError": "quarterdeck.domain.errors",
    "Result": "quarterdeck.wire.messages",
    "StreamEvent": "quarterdeck.wire.messages",
    "ToolContext": "quarterdeck.agent.mcp",
    "ToolServer": "quarterdeck.agent.mcp",
    "User": "quarterdeck.wire.messages",
    "listen": "quarterdeck.agent.listen",
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
