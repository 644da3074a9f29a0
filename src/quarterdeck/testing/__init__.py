"""For tests of programs that drive Claude Code: a scripted model, a fake CLI, the real ones.

- `ScriptedModel` serves the Messages API on loopback and says what the test wants; `play`,
  `reply` and the steps (`Text`, `ToolUse`, `ApiError`, …) are what it is told.
- `fake_cli_command` starts a program that plays a script of the steps in `fake`, faults included.
- `installed_clis` and `isolated_env` start the real CLIs, wholly offline.

The names are loaded when they are first used: the fake CLI runs from this package and must start
fast, without the libraries that the others need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

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

_HOMES = {
    "RealCli": "clis",
    "installed_clis": "clis",
    "isolated_env": "clis",
    "fake_cli_command": "fake",
    "ScriptedModel": "model",
    "ModelRequest": "request",
    "Purpose": "request",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "fake":
        return import_module(f"{__name__}.fake")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'script')}"), name)
