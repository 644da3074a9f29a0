"""Claude Code's NDJSON protocol, with no I/O.

This package exports the names that most programs need. The modules have the rest: `messages`,
`system`, `content`, `stream` and `result` for the CLI's messages, `commands` for our requests,
`requests` and `answers` for the CLI's requests, `hooks` and `permissions`. Names are imported when
they are first used: a runner only needs `line_reader`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quarterdeck.later import load_later

if TYPE_CHECKING:
    from quarterdeck.wire.base import (
        Malformed,
        Message,
        OpenEnum,
        Unknown,
        UnknownPart,
    )
    from quarterdeck.wire.codec import encode, from_cli, to_cli
    from quarterdeck.wire.line_reader import LineReader
    from quarterdeck.wire.messages import (
        Assistant,
        FromCli,
        Result,
        StreamEvent,
        User,
    )
    from quarterdeck.wire.outbound import Prompt
    from quarterdeck.wire.peer import Peer
    from quarterdeck.wire.states import State
    from quarterdeck.wire.system import Init
    from quarterdeck.wire.versions import Version

__all__ = [
    "Assistant",
    "FromCli",
    "Init",
    "LineReader",
    "Malformed",
    "Message",
    "OpenEnum",
    "Peer",
    "Prompt",
    "Result",
    "State",
    "StreamEvent",
    "Unknown",
    "UnknownPart",
    "User",
    "Version",
    "encode",
    "from_cli",
    "to_cli",
]

__getattr__ = load_later(
    __name__,
    {
        "base": ("Malformed", "Message", "OpenEnum", "Unknown", "UnknownPart"),
        "codec": ("encode", "from_cli", "to_cli"),
        "line_reader": ("LineReader",),
        "messages": ("Assistant", "FromCli", "Result", "StreamEvent", "User"),
        "outbound": ("Prompt",),
        "peer": ("Peer",),
        "states": ("State",),
        "system": ("Init",),
        "versions": ("Version",),
    },
)
