"""Nothing from outside may steer the terminal."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.cli.terminal.text import count, head_lines, plain

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
