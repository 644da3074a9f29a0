"""Views that another version of the program folded are folded again from the events.

A hub folds a session again when it writes to it, in the same transaction. Of the others one hub
folds those of older versions at its start, under a lease; it gives way to appends after each
session.
"""

from __future__ import annotations

from collections.abc import Callable

from quarterdeck.journal.postgres.reader import REFOLD_EVENTS, Reader
from quarterdeck.journal.postgres.rows import ADD_PROMPT, run_machine, view_bytes, write_usage
from quarterdeck.journal.postgres.schema import NOT_IDLE
from quarterdeck.journal.transaction import UsageStage
from quarterdeck.journal.views import VIEW_VERSION, fold
from quarterdeck.protocol.events import PromptQueued
from quarterdeck.protocol.session_view import SessionView

LEASE = "refold"
LEASE_SECONDS = 60.0


def refold(reader: Reader, session: str, number: int) -> SessionView | None:
    """Fold a session again, whose row is locked, and write its view, sums and prompts."""
    connection = reader.connection
    view: SessionView | None = None
    usage = UsageStage()
    prompts: list[tuple[int, str]] = []
    while events := reader.session(session, view.head if view else 0, REFOLD_EVENTS):
        for stored in events:
            before, view = view, fold(view, stored)
            usage.take(number, before, view, stored)
            if isinstance(stored.event, PromptQueued):
                prompts.append((number, stored.event.prompt))
    if view is None:
        return None
    # Sums are written only by the holder of the ticket.
    connection.execute("SELECT 1 FROM quarterdeck.ticket FOR UPDATE")
    connection.execute("DELETE FROM quarterdeck.usage WHERE session = %s", (number,))
    write_usage(connection, usage)
    for prompt in prompts:
        connection.execute(ADD_PROMPT.encode(), prompt)
    connection.execute(
        "UPDATE quarterdeck.sessions SET folded = %s, view = %s, archived = %s, run_machine = %s,"
        " updated = %s, said = %s, sent = %s WHERE number = %s",
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
    return view


def refold_old(reader: Reader, holds: Callable[[], bool]) -> int:
    """Fold the sessions of older versions, one transaction each, while the lease is held.

    Returns how many.
    """
    connection = reader.connection
    done = 0
    rows = connection.execute(
        "SELECT session, number FROM quarterdeck.sessions"
        " WHERE folded < %s AND NOT deleted AND head > 0 ORDER BY number DESC",
        (VIEW_VERSION,),
    ).fetchall()
    for session, number in rows:
        if not holds():
            break
        with connection.transaction():
            connection.execute(NOT_IDLE.encode())
            row = connection.execute(
                "SELECT folded FROM quarterdeck.sessions WHERE number = %s FOR UPDATE", (number,)
            ).fetchone()
            if row is not None and row[0] < VIEW_VERSION:
                refold(reader, session, number)
                done += 1
    return done
