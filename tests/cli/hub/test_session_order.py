"""The order and the indentation of `ps`."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.cli.hub.session_table import by_lineage, print_sessions
from quarterdeck.fronts.http.shapes import session_shape
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from quarterdeck.protocol.views import SessionShape


def shape(session: str, *lineage: str) -> SessionShape:
    view = SessionView(session=session, spec=SessionSpec(directory="/srv"), lineage=lineage)
    made = session_shape(view)
    return msgspec.structs.replace(made, state=SessionState.IDLE, name=f"<{session}>")


def levels(*shapes: SessionShape) -> list[tuple[int, str]]:
    return [(level, shape.session) for level, shape in by_lineage(shapes)]


def test_a_session_is_above_those_that_its_agent_started() -> None:
    shapes = (
        shape("deep", "top", "a"),
        shape("new"),
        shape("b", "top"),
        shape("a", "top"),
        shape("top"),
        shape("orphan", "gone"),
    )
    assert levels(*shapes) == [
        (0, "new"),
        (0, "top"),
        (1, "b"),
        (1, "a"),
        (2, "deep"),
        (0, "orphan"),
    ]
    assert levels(shape("self", "self")) == [(0, "self")]


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdefg"), max_size=3)))
def test_every_session_is_listed_once_whatever_the_lineages_say(
    lineages: dict[str, list[str]],
) -> None:
    shapes = [shape(session, *above) for session, above in lineages.items()]
    found = levels(*shapes)
    assert sorted(session for _, session in found) == sorted(lineages)


def test_the_indentation_has_an_end(capsys: pytest.CaptureFixture[str]) -> None:
    chain = [shape("s0"), *(shape(f"s{at}", f"s{at - 1}") for at in range(1, 2000))]
    print_sessions(chain)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(chain)
    columns = [line.index("<") for line in lines]
    first = columns[0]
    assert columns[:6] == [first, first + 2, first + 4, first + 6, first + 8, first + 8]
    assert columns[-1] == first + 8
