"""The runner owns the CLI processes of a machine, so that the hub can stop while agents work.

The commands that start it are above; `links`, `wire`'s framing and `domain` are below. It numbers
lines and passes them through, and never parses one. `Runner` is the whole; `spawn_runner` starts
one as a process of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quarterdeck.later import load_later

if TYPE_CHECKING:
    from quarterdeck.runner.home import RunnerState, live_runner
    from quarterdeck.runner.limits import Bounds, Limits, Times
    from quarterdeck.runner.runner import Runner
    from quarterdeck.runner.spawn import spawn_runner

__all__ = [
    "Bounds",
    "Limits",
    "Runner",
    "RunnerState",
    "Times",
    "live_runner",
    "spawn_runner",
]

__getattr__ = load_later(
    __name__,
    {
        "home": ("RunnerState", "live_runner"),
        "limits": ("Bounds", "Limits", "Times"),
        "runner": ("Runner",),
        "spawn": ("spawn_runner",),
    },
)
