"""The result of a check of the audit log. `journal.chain` checks it."""

from __future__ import annotations

from quarterdeck.domain.structs import Value


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
