"""Questions whose agent has ended, and that nobody has answered: an answer resumes the session.

Owns which of them still wait. `hub` is above; the journal is below, and finds the candidates.
"""

from __future__ import annotations

from msgspec.structs import replace

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.journal.base import AskRecord, Overview
from quarterdeck.protocol.events import AskWithdrawn, RunEnded
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.views import AskView


async def waiting_asks(journal: Overview, session: str | None = None) -> list[AskView]:
    """Those of the last run of each session that has no process, oldest first.

    A session that goes on, in whatever way, has left its questions behind. One that is archived
    waits for nobody.
    """
    views: dict[str, SessionView | None] = {}
    found: list[AskView] = []
    for record in await journal.unanswered_asks():
        ask = record.ask
        if session is not None and ask.session != session:
            continue
        if ask.session not in views:
            views[ask.session] = await journal.summary(ask.session)
        view = views[ask.session]
        if view is None or view.archived or view.run is not None or view.ended is None:
            continue
        if view.ended.run == ask.opened.run and _ended_with(record, view.ended):
            found.append(replace(ask, ended=True))
    return found


def _ended_with(record: AskRecord, ended: RunEnded) -> bool:
    """Whether a question was open until its run ended.

    An older hub has no code for that. It withdraws such a question with the reason of the end.
    """
    match record.settled.event if record.settled is not None else None:
        case RunEnded():
            return True
        case AskWithdrawn(coded=CodedText(code=code)):
            return code == TextCode.RUN_ENDED
        case AskWithdrawn(reason=reason):
            return reason == ended.reason
        case _:
            return False
