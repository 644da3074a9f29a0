"""Claude Code's NDJSON protocol, with no I/O.

The names that most programs need are here; the rest are in the modules: `messages`, `system`,
`content`, `stream` and `result` for what a CLI says, `commands` for what can be asked of it,
`requests` and `answers` for what it asks, `hooks` and `permissions` for what their names say.
The names are loaded when they are first used: a runner cuts lines with `framing` and reads none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quarterdeck.wire.base import Malformed, Message, OpenEnum, Unknown, UnknownPart
    from quarterdeck.wire.codec import encode, from_cli, to_cli
    from quarterdeck.wire.framing import LineReader
    from quarterdeck.wire.messages import Assistant, FromCli, Result, StreamEvent, User
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

_HOMES = {
    "Assistant": "messages",
    "FromCli": "messages",
    "Init": "system",
    "LineReader": "framing",
    "Malformed": "base",
    "Message": "base",
    "OpenEnum": "base",
    "Peer": "peer",
    "Prompt": "outbound",
    "Result": "messages",
    "State": "states",
    "StreamEvent": "messages",
    "Unknown": "base",
    "UnknownPart": "base",
    "User": "messages",
    "Version": "versions",
    "encode": "codec",
    "from_cli": "codec",
    "to_cli": "codec",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
