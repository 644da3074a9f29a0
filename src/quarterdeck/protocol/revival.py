"""Which sessions an agent may go on with. Pure."""

from __future__ import annotations

from quarterdeck.domain.errors import Forbidden
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import is_agent


def check_revive(target: SessionView) -> None:
    """Raise `Forbidden` for an agent's prompt to a session that a person has stopped or archived.

    A person resumes it. While its CLI still ends, the prompt would be queued for the next one.
    """
    if target.archived:
        raise Forbidden("a person has archived this session: only a person may continue it")
    if target.stopped_by is not None and not is_agent(target.stopped_by):
        raise Forbidden("a person has stopped this session: only a person may continue it")
