"""What the routes of the past take and give. Above are the routes and the client of the commands.

Like `shapes`, it needs no web framework.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http.shapes import Body
from quarterdeck.journal.retention import Leaving


class NewImport(Body):
    """Take in sessions that the CLI left on the disk of the hub's machine."""

    directory: Annotated[str, Meta(min_length=1, max_length=4096)] | None = None
    """Only those of the project in this folder."""
    sessions: tuple[Annotated[str, Meta(max_length=64)], ...] = ()
    """Only these, by the CLI's own ids."""
    dry_run: bool = False


class NewRetention(Body):
    """Delete what is old. What is left out is no limit; all left out: the rule of the hub holds."""

    days: Annotated[float, Meta(gt=0, le=100_000)] | None = None
    megabytes: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    archived_only: bool = False
    dry_run: bool = True
    """Only tell what would go. It must be false for anything to be deleted."""


class RetentionReport(Value, omit_defaults=False):
    """What went, or (`dry_run`) would go."""

    dry_run: bool
    leaving: tuple[Leaving, ...]
    freed_bytes: int
    sessions: int
    """All sessions there are, before anything goes, and their bytes."""
    bytes: int
