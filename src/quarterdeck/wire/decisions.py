"""What a program decides about a tool call: `Allow` or `Deny`.

Owns the two values. `agent.asks` makes them the CLI's answer, `client.asks` the hub's.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from quarterdeck.wire.permissions import Suggestion


class Allow(Struct, frozen=True, kw_only=True):
    """Let the tool run.

    `input` replaces the whole input of the call: any mapping that can be encoded as JSON; None
    keeps the original. `updates` also changes the session's permissions, so that the next such call
    is not asked about.
    """

    input: object = None
    updates: Sequence[Suggestion] = ()


class Deny(Struct, frozen=True):
    """Do not let the tool run. The model reads `message`; `interrupt` ends the turn."""

    message: str = "The user does not want this to be done."
    interrupt: bool = False


Decision = Allow | Deny
