"""Views that another version of the program folded are folded again from the events.

A hub folds a session again before it writes to it. Of the others one hub folds those of older
versions at its start, under a lease. It leaves those that run at a hub which is there: that hub may
be of the older version, and would fold each of them back before its next append.

The events are read and folded without a lock, and a long session takes long. Only what was appended
meanwhile is folded while the session's row is locked, and the ticket is taken for the last
statement: appends to other sessions go on.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from quarterdeck.journal.ownership import PRESENT_MS
from quarterdeck.journal.postgres.address import Address
from quarterdeck.journal.postgres.reader import REFOLD_EVENTS, Reader
from quarterdeck.journal.postgres.rows import (
    add_prompts,
    add_usage,
    run_machine,
    view_bytes,
    write_limits,
)
from quarterdeck.journal.postgres.schema import open_transaction
from quarterdeck.journal.postgres.shared_records import NOW
from quarterdeck.journal.transaction import UsageStage
from quarterdeck.journal.views import VIEW_VERSION, fold
from quarterdeck.protocol.events import PromptQueued
from quarterdeck.protocol.session_view import SessionView

LEASE = "refold"
LEASE_SECONDS = 60.0

_OLD = f"""
    SELECT session, number FROM quarterdeck.sessions s
    WHERE folded < %s AND NOT deleted AND head > 0 AND (run_machine IS NULL OR NOT EXISTS (
      SELECT 1 FROM quarterdeck.hubs h WHERE h.hub = s.owner AND h.at > {NOW} - {PRESENT_MS}
    ))
    ORDER BY number DESC
"""  # noqa: S608 - constants of ours


class _Folding(Struct):
    """A session as far as it is folded."""

    session: str
    number: int
    view: SessionView | None = None
    usage: UsageStage = field(default_factory=UsageStage)
    prompts: list[tuple[int, str]] = field(default_factory=list)

    def read(self, reader: Reader) -> None:
        """Fold the events that are stored by now."""
        while events := reader.session(self.session, self.head, REFOLD_EVENTS):
            for stored in events:
                before, self.view = self.view, fold(self.view, stored)
                self.usage.take(self.number, before, self.view, stored)
                if isinstance(stored.event, PromptQueued):
                    self.prompts.append((self.number, stored.event.prompt))

    @property
    def head(self) -> int:
        """The number of the last event that is folded."""
        return 0 if self.view is None else self.view.head


def refold(
    reader: Reader, address: Address, session: str, number: int, *, only_older: bool = False
) -> bool:
    """Fold a session again, and write its view, sums and prompts. Outside of transactions.

    `only_older`: a view of a newer version stays. Returns whether it was folded here.
    """
    folding = _Folding(session, number)
    folding.read(reader)
    connection = reader.connection
    with open_transaction(connection, address):
        row = connection.execute(
            "SELECT folded, deleted, head FROM quarterdeck.sessions WHERE number = %s FOR UPDATE",
            (number,),
        ).fetchone()
        folded, deleted, head = row or (VIEW_VERSION, True, 0)
        if deleted or folded == VIEW_VERSION or (only_older and folded > VIEW_VERSION):
            return False
        if folding.head < head:
            folding.read(reader)
        if (view := folding.view) is None:
            return False
        connection.execute("DELETE FROM quarterdeck.usage WHERE session = %s", (number,))
        add_usage(connection, folding.usage)
        add_prompts(connection, folding.prompts)
        connection.execute(
            "UPDATE quarterdeck.sessions SET folded = %s, view = %s, archived = %s,"
            " run_machine = %s, updated = %s, said = %s, sent = %s WHERE number = %s",
            (
                VIEW_VERSION,
                view_bytes(view),
                view.archived,
                run_machine(view),
                view.updated,
                view.said,
                view.sent,
                number,
            ),
        )
        if folding.usage.limits:
            # Those of an account are written by all its sessions: only with the ticket.
            connection.execute("SELECT 1 FROM quarterdeck.ticket FOR UPDATE")
            write_limits(connection, folding.usage)
    return True


def has_old_views(reader: Reader) -> bool:
    """Whether there are views of older versions that a hub folds at its start."""
    return bool(_old_views(reader))


def refold_old(reader: Reader, address: Address, holds: Callable[[], bool]) -> int:
    """Fold the sessions of older versions, one after the other, while the lease is held.

    Returns how many.
    """
    done = 0
    for session, number in _old_views(reader):
        if not holds():
            break
        done += refold(reader, address, session, number, only_older=True)
    return done


def _old_views(reader: Reader) -> list[tuple[str, int]]:
    return reader.connection.execute(_OLD.encode(), (VIEW_VERSION,)).fetchall()
