"""Byte pipes to a CLI: subprocess, WebSocket (accept and dial), memory, recording.

`agent`, the runner and the hub use links. A link knows bytes, processes and sockets, never a
message. `base` defines the interface.

The WebSocket links are imported when they are first used: a program that uses pipes does not load
their two libraries.
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
        LinkAccess,
        Redial,
        WebSocketLink,
        serve_endpoint,
    )

__all__ = [
    "CliEndpoint",
    "DialLink",
    "Dropped",
    "Link",
    "LinkAccess",
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
            "LinkAccess",
            "Redial",
            "WebSocketLink",
            "serve_endpoint",
        ),
    },
)
