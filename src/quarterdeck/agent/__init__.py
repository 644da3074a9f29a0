"""The library: drive one agent directly.

Two parts are loaded only by those who use them, because what they stand on takes long to import:
tools of one's own (`quarterdeck.agent.mcp`) and CLIs that dial (`quarterdeck.agent.listen`).
"""

from __future__ import annotations

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
