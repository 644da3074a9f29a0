"""A client of the hub: sessions, prompts, questions and events, from any Python program.

`Hub` is for programs: it finds the hub, waits for one that is away, and its `HubSession` has the
interface of `Agent` where the same thing is meant. `HubClient` and `SessionClient` are below them:
one request at a time, at one address. `BlockingClient` is the same for code without an event loop.
The types are those of `quarterdeck.protocol`. It knows nothing of the server's code, and no
terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quarterdeck.later import load_later

if TYPE_CHECKING:
    from quarterdeck.client.asks import DecideAsk, HubAsk
    from quarterdeck.client.blocking_client import BlockingClient
    from quarterdeck.client.calls import (
        AnswerLost,
        Call,
        HubAddress,
        HubConflict,
        HubForbidden,
        HubInvalid,
        HubNotFound,
        HubOffline,
        HubRefused,
    )
    from quarterdeck.client.feed import Feed, Listener
    from quarterdeck.client.hub import HubClient
    from quarterdeck.client.hub_session import HubSession
    from quarterdeck.client.once import HubReply, hub_ask
    from quarterdeck.client.public import Hub
    from quarterdeck.client.query import HubQuery, HubTurn
    from quarterdeck.client.session import SessionClient
    from quarterdeck.client.stream import HubStream, open_stream

__all__ = [
    "AnswerLost",
    "BlockingClient",
    "Call",
    "DecideAsk",
    "Feed",
    "Hub",
    "HubAddress",
    "HubAsk",
    "HubClient",
    "HubConflict",
    "HubForbidden",
    "HubInvalid",
    "HubNotFound",
    "HubOffline",
    "HubQuery",
    "HubRefused",
    "HubReply",
    "HubSession",
    "HubStream",
    "HubTurn",
    "Listener",
    "SessionClient",
    "hub_ask",
    "open_stream",
]

__getattr__ = load_later(
    __name__,
    {
        "asks": ("DecideAsk", "HubAsk"),
        "blocking_client": ("BlockingClient",),
        "calls": (
            "AnswerLost",
            "Call",
            "HubAddress",
            "HubOffline",
            "HubConflict",
            "HubForbidden",
            "HubInvalid",
            "HubNotFound",
            "HubRefused",
        ),
        "feed": ("Feed", "Listener"),
        "hub": ("HubClient",),
        "hub_session": ("HubSession",),
        "once": ("HubReply", "hub_ask"),
        "public": ("Hub",),
        "query": ("HubQuery", "HubTurn"),
        "session": ("SessionClient",),
        "stream": ("HubStream", "open_stream"),
    },
)
