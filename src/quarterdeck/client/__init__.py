"""A client of the hub: sessions, prompts, questions and events, from any Python program.

`HubClient` is the hub at one address; `SessionClient` is one of its sessions, with the interface of
`Agent` where the same thing is meant. The types are those of `quarterdeck.protocol`. It knows
nothing of the server's code, and no terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quarterdeck.later import load_later

if TYPE_CHECKING:
    from quarterdeck.client.calls import Call, HubAddress, HubRefused
    from quarterdeck.client.feed import Feed, Listener
    from quarterdeck.client.hub import HubClient
    from quarterdeck.client.session import HubTurn, SessionClient
    from quarterdeck.client.stream import HubStream, open_stream

__all__ = [
    "Call",
    "Feed",
    "HubAddress",
    "HubClient",
    "HubRefused",
    "HubStream",
    "HubTurn",
    "Listener",
    "SessionClient",
    "open_stream",
]

__getattr__ = load_later(
    __name__,
    {
        "calls": ("Call", "HubAddress", "HubRefused"),
        "feed": ("Feed", "Listener"),
        "hub": ("HubClient",),
        "session": ("HubTurn", "SessionClient"),
        "stream": ("HubStream", "open_stream"),
    },
)
