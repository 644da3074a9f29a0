"""The messages that we send to a CLI."""

from __future__ import annotations

from quarterdeck.wire.base import Message


class KeepAlive(Message, tag="keep_alive"):
    """Says nothing; consumed without an answer."""


TO_CLI = KeepAlive
