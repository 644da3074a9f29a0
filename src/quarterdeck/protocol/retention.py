"""Retention: its limits, and what a run of it deletes. `journal.retention` makes the plan."""

from __future__ import annotations

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value


class Retention(Value):
    """The limits of retention. Without a limit everything is kept."""

    days: float | None = None
    """Delete sessions without an event for so many days."""
    bytes: int | None = None
    """Delete the oldest sessions until all events together have at most so many bytes."""
    archived_only: bool = False
    """Delete archived sessions only."""

    def __post_init__(self) -> None:
        """Refuse invalid limits."""
        if self.days is not None and not 0 < self.days < float("inf"):
            raise UsageError("retention: days: must be a number above 0")
        if self.bytes is not None and self.bytes <= 0:
            raise UsageError("retention: bytes: must be a number above 0")

    @property
    def keeps_all(self) -> bool:
        """Whether nothing is ever deleted."""
        return self.days is None and self.bytes is None


class Leaving(Value, omit_defaults=False):
    """A session to delete, and why."""

    session: str
    name: str
    updated: int
    bytes: int
    archived: bool
    reason: str


class Plan(Value, omit_defaults=False):
    """The sessions to delete, in order, and the size of everything."""

    leaving: tuple[Leaving, ...]
    sessions: int
    bytes: int

    @property
    def freed(self) -> int:
        """The size of the sessions to delete."""
        return sum(each.bytes for each in self.leaving)


class RetentionReport(Value, omit_defaults=False):
    """What went, or (`dry_run`) would go."""

    dry_run: bool
    leaving: tuple[Leaving, ...]
    freed_bytes: int
    sessions: int
    """All sessions there are, before anything goes, and their bytes."""
    bytes: int
