"""Ids that are cut short."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.cli.hub.target import SHORT, short_ids
from quarterdeck.fronts.http.shapes import session_shape
from quarterdeck.journal.views import SessionView
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from quarterdeck.protocol.views import SessionShape


def shape(session: str) -> SessionShape:
    made = session_shape(SessionView(session=session, spec=SessionSpec(directory="/")))
    return msgspec.structs.replace(made, state=SessionState.IDLE)


@given(st.sets(st.text("ab", min_size=12, max_size=12), max_size=30))
def test_a_short_id_belongs_to_one_session_only(ids: set[str]) -> None:
    short = short_ids(map(shape, ids))
    assert short.keys() == ids
    for id_, beginning in short.items():
        assert len(beginning) >= SHORT
        assert [other for other in ids if other.startswith(beginning)] == [id_]
