"""The rows of the list of sessions."""

from __future__ import annotations

from msgspec.structs import replace

from quarterdeck.cli.top.panes import session_row, state_mark
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.protocol.views import LastTurn
from support.acp_shapes import session


def test_a_session_that_crashed_or_failed_is_marked_in_red() -> None:
    over = session(state=SessionState.ENDED, run=None, directory="/work")
    turn = LastTurn(at=1, failed=True, outcome="", problem="")
    assert state_mark(over) == ("·", "dim")
    assert state_mark(replace(over, crashed=True)) == ("!", "red")
    assert state_mark(replace(session(), last_turn=turn)) == ("!", "red")
    assert "crashed" in session_row(replace(over, crashed=True)).plain
