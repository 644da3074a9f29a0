"""The library: drive one agent directly.

Names are imported when they are first used. Two parts are not re-exported here, because their
dependencies take longest to import: tools as Python functions (`quarterdeck.agent.mcp`) and CLIs
that dial (`quarterdeck.agent.listen`).
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
    from quarterdeck.agent.session_store import SessionStore
    from quarterdeck.agent.typed_settings import (
        CliSandbox,
        InstalledPlugin,
        LocalPlugin,
        SandboxFiles,
        SandboxNetwork,
    )

__all__ = [
    "Agent",
    "Allow",
    "AnyAsk",
    "Ask",
    "CliSandbox",
    "Decision",
    "Deny",
    "Hook",
    "InstalledPlugin",
    "LocalPlugin",
    "Options",
    "PlanAsk",
    "Query",
    "QuestionsAsk",
    "Reply",
    "SandboxFiles",
    "SandboxNetwork",
    "SessionStore",
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
        "session_store": ("SessionStore",),
        "typed_settings": (
            "CliSandbox",
            "InstalledPlugin",
            "LocalPlugin",
            "SandboxFiles",
            "SandboxNetwork",
        ),
    },
)
