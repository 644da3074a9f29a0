"""The library: drive one agent directly."""

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
from quarterdeck.agent.listen import Listener, listen
from quarterdeck.agent.mcp import ToolServer, tool
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
    "Listener",
    "Options",
    "PlanAsk",
    "Query",
    "QuestionsAsk",
    "Reply",
    "ToolAsk",
    "ToolServer",
    "ask",
    "listen",
    "tool",
]
