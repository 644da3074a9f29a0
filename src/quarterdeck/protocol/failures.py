"""What went wrong with a session, as a code. Pure; the words are made where they are shown.

The web app has the same rules, in `web/src/state/activity.ts`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from quarterdeck.protocol.sessions import SessionState

if TYPE_CHECKING:  # light commands need no views
    from quarterdeck.protocol.views import SessionShape


class Failure(StrEnum):
    """What went wrong with a session."""

    NOT_STARTED = "not_started"
    """Its machine could not run it: the CLI is missing, for one."""
    CRASHED = "crashed"
    LOGIN = "needs_login"
    TURN = "failed"


LOGIN_PROBLEMS = frozenset(
    {
        "authentication_failed",
        "oauth_org_not_allowed",
        "verification_required",
        "cloud_credential_error",
    }
)
"""Problems of a turn that a login solves, in the CLI's codes."""


def failure_of(shape: SessionShape) -> Failure | None:
    """What went wrong with a session that does nothing now; None for any other."""
    if shape.state is SessionState.ENDED:
        if shape.machine is not None and shape.directory is None:
            return Failure.NOT_STARTED
        if shape.crashed:
            return Failure.CRASHED
    elif shape.state is not SessionState.IDLE:
        return None
    turn = shape.last_turn
    if turn is None or not turn.failed or turn.problem == "interrupted":
        return None
    return Failure.LOGIN if turn.problem in LOGIN_PROBLEMS else Failure.TURN
