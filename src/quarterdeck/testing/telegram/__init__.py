"""A Bot API server on loopback, for tests of Telegram bots.

`BotApiServer` is strict where Telegram is. `sim` moves its people. See
`docs/how-to/test-your-program.md`.
"""

from __future__ import annotations

from quarterdeck.testing.telegram.flood import NO_LIMITS, FloodLimits
from quarterdeck.testing.telegram.objects import Button, Call, Chat, Draft, Message, Update, User
from quarterdeck.testing.telegram.server import TOKEN, BotApiServer, FaultKind
from quarterdeck.testing.telegram.sim import Sim

__all__ = [
    "NO_LIMITS",
    "TOKEN",
    "BotApiServer",
    "Button",
    "Call",
    "Chat",
    "Draft",
    "FaultKind",
    "FloodLimits",
    "Message",
    "Sim",
    "Update",
    "User",
]
