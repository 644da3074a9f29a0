"""Ids that are cut short."""

from __future__ import annotations

from typing import cast

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.cli.hub.target import SHORT, find_ask, short_asks, short_ids
from quarterdeck.client import BlockingClient
from quarterdeck.fronts.http.shapes import session_shape
from quarterdeck.protocol.events import AskKind, AskOpened
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from quarterdeck.protocol.views import AskView, SessionShape


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


class Asking:
    """A client of a hub that has these open questions."""

    def __init__(self, asks: set[tuple[str, str]]) -> None:
        self._asks = asks

    def asks(self, *, ended: bool) -> tuple[AskView, ...]:
        return tuple(
            AskView(
                session=session,
                seq=1,
                at=0,
                opened=AskOpened(
                    ask=f"{session}.{own}",
                    run="r",
                    request_id="1",
                    ask_kind=AskKind.TOOL,
                    tool="Bash",
                    title="ls",
                    request=msgspec.Raw(b"{}"),
                ),
            )
            for session, own in sorted(self._asks)
        )


IDS = st.text("ab", min_size=12, max_size=12)


@given(st.sets(st.tuples(IDS, IDS), min_size=1, max_size=20))
def test_the_short_id_of_a_question_finds_it_again(asks: set[tuple[str, str]]) -> None:
    client = cast("BlockingClient", Asking(asks))
    short = short_asks(f"{session}.{own}" for session, own in asks)
    assert len(short) == len(asks)
    for ask, beginning in short.items():
        found, card = find_ask(client, beginning)
        assert found == ask
        assert card is not None
        assert card.opened.ask == ask
