"""The audit log for its readers: the kinds of entries, pages, and the result of a check.

`journal.audit_pages` says which entries are of which kind, and `journal.chain` checks the log.
"""

from __future__ import annotations

from enum import StrEnum

from quarterdeck.domain.structs import Value
from quarterdeck.protocol.stored_events import Stored


class AuditKind(StrEnum):
    """Which entries of the audit log are wanted."""

    DENIED = "denied"
    """Calls, connections and actions of programs that were denied or refused."""
    PEOPLE = "people"
    """Decisions of people."""
    CHANGES = "changes"
    """Changes of policies, grants, tokens and access."""
    PROGRAMS = "programs"
    """Actions of programs."""
    SANDBOX = "sandbox"
    """Sandboxes and their connections."""
    REFUSED = "refused"
    """Connections that a sandbox has refused."""


class AuditPage(Value):
    """Entries of one kind, the newest first."""

    entries: tuple[Stored, ...]
    next: int | None
    """The `before` of the following page; None at the end of the log."""


class Head(Value):
    """The end of a chain. Journals with the same head have the same audit log up to it."""

    position: int
    seal: str

    def __str__(self) -> str:
        """The text form: `position:seal`."""
        return f"{self.position}:{self.seal}"


class ChainFlaw(Value):
    """Something that was changed after it was written."""

    position: int
    session: str
    text: str


class Checked(Value, omit_defaults=False):
    """The result of a check. Good: no flaws."""

    entries: int
    """Entries that exist and are unchanged."""
    forgotten: int
    """Entries of deleted sessions, of which only the digests exist."""
    head: Head
    flaws: tuple[ChainFlaw, ...] = ()

    @property
    def good(self) -> bool:
        """Whether nothing was changed."""
        return not self.flaws


ACCESS = "access"
"""The level of a note about access: it is in the audit log."""
