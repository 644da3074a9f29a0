"""Byte pipes to a CLI: subprocess, WebSocket (accept and dial), memory, recording.

Above the links stand `agent` and, later, the runner and the hub; below them only `domain`. A link
knows bytes, processes and sockets, and never a message. `base` says what all of them can do.

The names of the WebSocket links are loaded when they are first used: a program that talks to its
CLI over pipes need not wait for two libraries that it does not use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quarterdeck.later import load_later

if TYPE_CHECKING:
    from quarterdeck.links.base import Dropped, Link, Resumed
    from quarterdeck.links.memory import MemoryLink, MemoryPeer, memory_pair
    from quarterdeck.links.recorder import Record, RecordingLink
    from quarterdeck.links.replay import ReplayLink, read_records
    from quarterdeck.links.subprocess import StopSteps, SubprocessLink
    from quarterdeck.links.websocket import (
        CliEndpoint,
        DialLink,
        Door,
        Redial,
        WebSocketLink,
        serve_endpoint,
    )

__all__ = [
    "CliEndpoint",
    "DialLink",
    "Door",
    "Dropped",
    "Link",
    "MemoryLink",
    "MemoryPeer",
    "Record",
    "RecordingLink",
    "Redial",
    "ReplayLink",
    "Resumed",
    "StopSteps",
    "SubprocessLink",
    "WebSocketLink",
    "memory_pair",
    "read_records",
    "serve_endpoint",
]

__getattr__ = load_later(
    __name__,
    {
        "base": ("Dropped", "Link", "Resumed"),
        "memory": ("MemoryLink", "MemoryPeer", "memory_pair"),
        "recorder": ("Record", "RecordingLink"),
        "replay": ("ReplayLink", "read_records"),
        "subprocess": ("StopSteps", "SubprocessLink"),
        "websocket": (
            "CliEndpoint",
            "DialLink",
            "Door",
            "Redial",
            "WebSocketLink",
            "serve_endpoint",
        ),
    },
)
