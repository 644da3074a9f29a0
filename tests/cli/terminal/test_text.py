"""Nothing from outside may steer the terminal."""

from __future__ import annotations

import unicodedata

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.cli.terminal.session_text import session_place
from quarterdeck.cli.terminal.text import (
    call_text,
    count,
    head_lines,
    plain,
    rough_cost,
    session_state,
)
from quarterdeck.fronts.http.shapes import session_shape
from quarterdeck.protocol.events import BudgetReached
from quarterdeck.protocol.holds import Holds, Task
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from quarterdeck.protocol.views import LastTurn

_HARMFUL = {"Cc", "Cs", "Zl", "Zp"}


@given(st.text(st.characters(exclude_categories=[])))
def test_no_control_character_survives_but_newline_and_tab(text: str) -> None:
    left = {char for char in plain(text) if unicodedata.category(char) in _HARMFUL}
    assert left <= {"\n", "\t"}
    plain(text).encode()  # halves of surrogate pairs are gone too


def test_an_escape_is_seen_and_not_obeyed() -> None:
    assert plain("a\x1b[2Jb\x07\x9b1m\x7f") == "a␛[2Jb␇\ufffd1m␡"


def test_marks_that_turn_text_around_are_seen() -> None:
    assert plain("safe\u202etxt.exe\u2066") == "safe\ufffdtxt.exe\ufffd"


def test_what_a_progress_bar_overwrites_becomes_lines() -> None:
    assert plain("10%\r20%\r\ndone") == "10%\n20%\ndone"


def test_letters_of_any_script_stay() -> None:
    text = "Grüße, 你好, नमस्ते, 👩‍🚀 \t tab"
    assert plain(text) == text


def test_the_head_of_a_text_says_how_much_is_left() -> None:
    assert head_lines("a\nb\nc\nd\n", 3) == (["a", "b", "c"], 1)
    assert head_lines("a", 3) == (["a"], 0)


def test_one_thing_is_counted_in_the_singular() -> None:
    assert [count(1, "line"), count(0, "line"), count(1200, "line")] == [
        "1 line",
        "0 lines",
        "1,200 lines",
    ]


def test_an_idle_session_says_how_its_last_turn_ended() -> None:
    view = SessionView(session="s", spec=SessionSpec(directory="/srv"))
    shape = msgspec.structs.replace(session_shape(view), state=SessionState.IDLE)

    def ended(problem: str, *, failed: bool = True) -> str:
        turn = LastTurn(at=1, failed=failed, outcome="", problem=problem)
        return session_state(msgspec.structs.replace(shape, last_turn=turn))

    assert session_state(shape) == ended("", failed=False) == "idle"
    assert ended("") == ended("server_error") == "failed"
    assert ended("interrupted") == "idle"
    assert ended("authentication_failed") == "needs login"
    spent = BudgetReached(scope="session", unit="usd", limit=1.0, spent=2.0)
    assert session_state(msgspec.structs.replace(shape, budgets=(spent,))) == "budget spent"
    behind = Holds(tasks=(Task(task="t", background=True),))
    assert session_state(msgspec.structs.replace(shape, holds=behind)) == "in background"
    waits = msgspec.structs.replace(shape, state=SessionState.WAITING)
    assert session_state(waits) == "waiting for you"
    over = msgspec.structs.replace(shape, state=SessionState.ENDED, machine="")
    assert session_state(over) == "did not start"
    over = msgspec.structs.replace(over, directory="/srv")
    assert session_state(over) == "ended"
    for problem, words in [
        ("interrupted", "ended"),
        ("server_error", "ended: failed"),
        ("authentication_failed", "ended: needs login"),
        ("verification_required", "ended: needs login"),
    ]:
        turn = LastTurn(at=1, failed=True, outcome="", problem=problem)
        assert session_state(msgspec.structs.replace(over, last_turn=turn)) == words
    assert session_state(msgspec.structs.replace(over, crashed=True)) == "crashed"


def test_a_call_names_its_tool_once() -> None:
    assert call_text("ExitPlanMode", "ExitPlanMode") == "ExitPlanMode"
    assert call_text("Read", "Read a.py") == "Read a.py"
    assert call_text("Bash", "ls") == "Bash: ls"


def test_lists_have_whole_cents_and_the_repository_and_branch_of_a_worktree() -> None:
    assert [rough_cost(usd) for usd in (0, 0.0012, 0.5, 1234.5678)] == [
        "$0.00",
        "<$0.01",
        "$0.50",
        "$1,234.57",
    ]
    view = SessionView(session="s", spec=SessionSpec(directory="/srv/shop", worktree="try-it"))
    shape = msgspec.structs.replace(session_shape(view), directory="/data/worktrees/4f1c/try-it")
    assert session_place(shape) == "/srv/shop (branch try-it)"
    plain_folder = msgspec.structs.replace(shape, spec=SessionSpec(directory="/srv/shop"))
    assert session_place(plain_folder) == "/data/worktrees/4f1c/try-it"
