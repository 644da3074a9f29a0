"""The `system` messages, by subtype."""

from __future__ import annotations

from quarterdeck.wire.base import Message

SYSTEM: dict[str, type[Message]] = {}
