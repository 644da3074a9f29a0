"""The library: drive one agent directly.

The names are loaded when they are first used: a runner reads transcripts with `transcripts`, and
need not wait for all else. Two parts are loaded by nothing but their own names, because what they
stand on takes longest: tools of one's own (`quarterdeck.agent.mcp`) and CLIs that dial
(`quarterdeck.agent.listen`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quarterdeck.later import load_later

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

__getattr__ = load_later(
    __name__,
    {
        "agent": ("Agent",),
        "asks": (
            "Allow",
            "AnyAsk",
            "Ask",
            "Decision",
            "Deny",
            "PlanAsk",
            "QuestionsAsk",
            "ToolAsk",
        ),
        "hooks": ("Hook",),
        "once": ("Reply", "ask"),
        "options": ("Options",),
        "query": ("Query",),
    },
)
