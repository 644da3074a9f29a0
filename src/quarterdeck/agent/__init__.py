"""The library: drive one agent directly.

The names are loaded when they are first used: a runner reads transcripts with `agent.sessions`, and
need not wait for all else. Two parts are loaded by nothing but their own names, because what they
stand on takes longest: tools of one's own (`quarterdeck.agent.mcp`) and CLIs that dial
(`quarterdeck.agent.listen`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quarterdeck.agent.agent import Agent
    from quarterdeck.agent.asks import (
        Allow,
        AnyAsk,
        Ask,
        Decision,
        Deny,
        PlanAsk,
        QuestionsAsk,
        ToolAsk,
    )
    from quarterdeck.agent.hooks import Hook
    from quarterdeck.agent.once import Reply, ask
    from quarterdeck.agent.options import Options
    from quarterdeck.agent.query import Query

__all__ = [
    "Agent",
    "Allow",
    "AnyAsk",
    "Ask",
    "Decision",
    "Deny",
    "Hook",
    "Options",
    "PlanAsk",
    "Query",
    "QuestionsAsk",
    "Reply",
    "ToolAsk",
    "ask",
]

_HOMES = {
    "Agent": "agent",
    "Allow": "asks",
    "AnyAsk": "asks",
    "Ask": "asks",
    "Decision": "asks",
    "Deny": "asks",
    "Hook": "hooks",
    "Options": "options",
    "PlanAsk": "asks",
    "Query": "query",
    "QuestionsAsk": "asks",
    "Reply": "once",
    "ToolAsk": "asks",
    "ask": "once",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
