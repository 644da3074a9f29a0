"""What the routes of the past give. Above are the routes and the client of the commands.

It needs no web framework.
"""

from __future__ import annotations

from quarterdeck.domain.structs import Value
from quarterdeck.protocol.retention import Leaving


class RetentionReport(Value, omit_defaults=False):
    """What went, or (`dry_run`) would go."""

    dry_run: bool
    leaving: tuple[Leaving, ...]
    freed_bytes: int
    sessions: int
    """All sessions there are, before anything goes, and their bytes."""
    bytes: int
