"""Entries of one kind in the audit log, a page at a time. Pure.

Owns which entries are of which kind, and how much is read for a page: a kind that is rare would
otherwise make one request read the whole log. The engines give the entries.
"""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.journal.event_codec import PAGE_BYTES
from quarterdeck.protocol.audit import AuditKind, AuditPage
from quarterdeck.protocol.events import (
    AskAnswered,
    Decided,
    Event,
    Noted,
    ProgramActed,
    SandboxConnection,
    SandboxStarted,
)
from quarterdeck.protocol.stored_events import Stored, stored_size

SEARCHED = 2000
"""Entries that are read for one page."""


def page_of_kind(read: Sequence[Stored], kind: AuditKind, limit: int) -> AuditPage:
    """The entries of a kind among those that were read: at most `SEARCHED`, the newest first."""
    found = [stored for stored in read if is_of_kind(stored.event, kind)]
    if len(found) >= limit:
        return AuditPage(entries=tuple(found[:limit]), next=found[limit - 1].position)
    cut = len(read) >= SEARCHED or sum(map(stored_size, read)) >= PAGE_BYTES
    return AuditPage(entries=tuple(found), next=read[-1].position if cut and read else None)


def is_of_kind(event: Event, kind: AuditKind) -> bool:
    """Whether an entry of the audit log is of this kind."""
    match kind:
        case AuditKind.DENIED:
            return _is_denied(event)
        case AuditKind.PEOPLE:
            return isinstance(event, AskAnswered) or (
                isinstance(event, Decided) and event.by == "person"
            )
        case AuditKind.CHANGES:
            return isinstance(event, Noted)
        case AuditKind.PROGRAMS:
            return isinstance(event, ProgramActed)
        case AuditKind.SANDBOX:
            return isinstance(event, SandboxStarted | SandboxConnection)
        case AuditKind.REFUSED:
            return isinstance(event, SandboxConnection) and not event.allowed


def _is_denied(event: Event) -> bool:
    match event:
        case Decided(verdict=verdict):
            return verdict == "deny"
        case AskAnswered(allowed=allowed) | SandboxConnection(allowed=allowed):
            return not allowed
        case ProgramActed(refused=refused):
            return refused
        case _:
            return False
