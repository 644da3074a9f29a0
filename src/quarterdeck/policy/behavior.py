"""What becomes of a call: the three words that all of policy shares."""

from __future__ import annotations

from enum import StrEnum


class Behavior(StrEnum):
    """What becomes of a call."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"
