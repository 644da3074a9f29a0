"""For tests of programs that drive Claude Code: a scripted model, a fake CLI, the real ones.

- `ScriptedModel` serves the Messages API on loopback with scripted replies; `play`, `reply` and the
  steps (`Text`, `ToolUse`, `ApiError`, …) define them.
- `fake_cli_command` starts a program that plays a script of the steps in `fake`, faults included.
- `installed_clis` and `isolated_env` start the real CLIs offline.
- `quarterdeck.testing.telegram` serves the Bot API of Telegram on loopback, with simulated people.

Names are imported when they are first used: the fake CLI runs from this package and must start
fast, without the libraries of the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quarterdeck.later import load_later

if TYPE_CHECKING:
    from quarterdeck.testing import fake as fake
    from quarterdeck.testing.clis import RealCli, installed_clis, isolated_env
    from quarterdeck.testing.fake import fake_cli_command
    from quarterdeck.testing.model import ScriptedModel
    from quarterdeck.testing.request import ModelRequest, Purpose
    from quarterdeck.testing.script import (
        ApiError,
        CutConnection,
        Gate,
        MidStreamError,
        Pause,
        Reply,
        ResponseHeaders,
        Stop,
        Text,
        Thinking,
        ToolUse,
        play,
        reply,
    )

__all__ = [
    "ApiError",
    "CutConnection",
    "Gate",
    "MidStreamError",
    "ModelRequest",
    "Pause",
    "Purpose",
    "RealCli",
    "Reply",
    "ResponseHeaders",
    "ScriptedModel",
    "Stop",
    "Text",
    "Thinking",
    "ToolUse",
    "fake",
    "fake_cli_command",
    "installed_clis",
    "isolated_env",
    "play",
    "reply",
]

__getattr__ = load_later(
    __name__,
    {
        "clis": ("RealCli", "installed_clis", "isolated_env"),
        "fake": ("fake_cli_command",),
        "model": ("ScriptedModel",),
        "request": ("ModelRequest", "Purpose"),
        "script": (
            "ApiError",
            "CutConnection",
            "Gate",
            "MidStreamError",
            "Pause",
            "Reply",
            "ResponseHeaders",
            "Stop",
            "Text",
            "Thinking",
            "ToolUse",
            "play",
            "reply",
        ),
    },
)
