"""What the outbox tells: what became of a message, and how many calls there were. Plain values."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from quarterdeck.domain.structs import Value

log = logging.getLogger(__name__)

_News = TypeVar("_News")


class Sent(Value):
    """A message that has been sent."""

    key: str
    chat: int
    thread: int | None
    message_id: int


class Failed(Value):
    """A message (or a draft) that Telegram refuses for good."""

    key: str
    chat: int
    code: int
    description: str


class Counts(Struct):
    """Calls since the start."""

    sent: int = 0
    edited: int = 0
    deleted: int = 0
    drafts: int = 0
    failed: int = 0
    """Refused for good."""
    retried: int = 0
    """Refused for now, or without an answer."""


def notify(listener: Callable[[_News], None] | None, news: _News) -> None:
    """Tell a listener, whose errors are its own."""
    if listener is None:
        return
    try:
        listener(news)
    except Exception:  # what Telegram has done is recorded, whatever a listener does
        log.exception("a listener of the outbox failed")
