"""The last rows of the terminal: output goes above them, and what is typed is never torn."""

from __future__ import annotations

import io

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from quarterdeck.cli.terminal.editor import Editor
from quarterdeck.cli.terminal.footer import Footer, elapsed_text
from quarterdeck.cli.terminal.screen import Screen
from quarterdeck.wire.codec import from_cli
from support.terminal_rows import Rows


class Desk:
    """A terminal with a screen and a footer, and a clock that the test sets."""

    def __init__(self, width: int = 40, height: int = 24) -> None:
        self.now = 100.0
        self.out = io.StringIO()
        self.width = width
        console = Console(
            file=self.out, force_terminal=True, width=width, height=height, color_system=None
        )
        self.footer = Footer(console, clock=lambda: self.now)
        self.screen = Screen(console, self.footer)
        self.editor = Editor()

    def type(self, keys: str) -> list[str]:
        done = list(self.editor.take(keys.encode()))
        self.footer.redraw()
        return done

    def tick(self, seconds: float = 1.0) -> None:
        self.now += seconds
        self.footer.tick()

    def stream(self, text: str) -> None:
        change = {"type": "text_delta", "text": text}
        event = {"type": "content_block_delta", "index": 0, "delta": change}
        self.show({"type": "stream_event", "event": event, "parent_tool_use_id": None})

    def say(self, text: str) -> None:
        block = {"type": "text", "text": text}
        message = {"id": "m", "role": "assistant", "content": [block]}
        self.show({"type": "assistant", "message": message, "parent_tool_use_id": None})

    def show(self, line: dict[str, object]) -> None:
        self.screen.show(from_cli(msgspec.json.encode(line)))

    @property
    def rows(self) -> str:
        rows = Rows(self.width)
        rows.feed(self.out.getvalue().replace("\n", "\r\n"))  # as the kernel does
        return rows.text


def test_text_is_written_above_the_line_that_is_typed() -> None:
    desk = Desk()
    desk.footer.edit(desk.editor)
    desk.footer.begin_work()
    desk.type("my next ")
    desk.stream("A **long** answer")
    desk.tick()
    desk.type("question")
    desk.stream(" in two\n\nparagraphs")
    desk.tick()
    assert desk.rows == (
        "A long answer in two\n\nparagraphs\n\n"
        "⠹ working · 2 s · Ctrl-C interrupts\n> my next question"
    )
    desk.say("A **long** answer in two\n\nparagraphs.")
    desk.screen.note("a notice")
    desk.footer.end_work()
    assert desk.rows == ("A long answer in two\n\nparagraphs.\n\n~ a notice\n\n> my next question")


def test_a_notice_during_a_text_does_not_tear_it() -> None:
    desk = Desk()
    desk.stream("one ")
    desk.screen.note("somebody else is here")
    desk.stream("two")
    desk.say("one two")
    assert desk.rows == "~ somebody else is here\n\none two"


def test_there_is_one_empty_row_between_a_notice_and_the_next_part_of_a_text() -> None:
    desk = Desk()
    desk.stream("one\n\ntwo")
    desk.screen.note("a notice")
    desk.say("one\n\ntwo")
    assert desk.rows == "one\n\n~ a notice\n\ntwo"


def test_a_text_that_was_interrupted_stays() -> None:
    desk = Desk()
    desk.stream("half a sen")
    desk.show(
        {"type": "result", "subtype": "error_during_execution", "is_error": True, "num_turns": 1}
        | {"duration_ms": 1000, "total_cost_usd": 0.5, "result": ""}
    )
    assert desk.rows.startswith("half a sen\n\n")


@pytest.mark.parametrize(
    ("keys", "row"),
    [
        ("short", "> short"),
        ("x" * 60, "> " + "x" * 17),
        ("日本語" * 10, "> 本語日本語日本語"),
        ("one\\\rtwo", "> one⏎two"),
        ("y" * 60 + "\x01", "> " + "y" * 17),
    ],
)
def test_a_long_line_is_shown_around_its_cursor(keys: str, row: str) -> None:
    desk = Desk(width=20)
    desk.footer.edit(desk.editor)
    desk.type(keys)
    shown = desk.rows.split("\n")[-1]
    assert shown == row
    assert len(desk.rows.split("\n")) == 2  # an empty row, and the line


def test_a_low_terminal_shows_the_end_of_a_long_text() -> None:
    desk = Desk(height=6)
    desk.footer.edit(desk.editor)
    desk.stream("\n".join(f"line {number}" for number in range(30)))
    desk.tick()
    rows = desk.rows.split("\n")
    assert len(rows) <= 6
    assert rows[-2:] == ["line 29", ">"]
    desk.say("\n".join(f"line {number}" for number in range(30)))
    assert desk.rows.split("\n")[:30] == [f"line {number}" for number in range(30)]


def test_what_somebody_else_prints_is_not_erased() -> None:
    desk = Desk()
    desk.footer.edit(desk.editor)
    desk.type("draft")
    desk.screen.hold()
    assert desk.rows == ""
    desk.screen.console.print(Text("a dialogue"))
    desk.screen.note("later")  # printed by us, above nothing
    desk.screen.resume()
    assert desk.rows == "a dialogue\n~ later\n\n> draft"


WORK = st.sampled_from(["stream", "note", "type", "tick", "say", "work", "rest", "enter"])


@given(st.lists(WORK, max_size=40), st.integers(12, 60))
def test_the_line_is_whole_after_everything(steps: list[str], width: int) -> None:
    desk = Desk(width=width)
    desk.footer.edit(desk.editor)
    typed = streamed = ""
    for step in steps:
        match step:
            case "stream":
                streamed += "word "
                desk.stream("word ")
            case "say":
                desk.say(streamed or "said")
                streamed = ""
            case "note":
                desk.screen.note("a notice that is longer than a narrow terminal")
            case "type":
                typed += "t"
                desk.type("t")
            case "enter":
                assert desk.type("\r") == [typed]
                typed = ""
            case "work":
                desk.footer.begin_work("tool")
            case "rest":
                desk.footer.end_work()
            case _:
                desk.tick()
    desk.footer.redraw()
    line = desk.rows.split("\n")[-1]
    assert line == f"> {typed[-(width - 3) :]}".rstrip()
    assert desk.rows.count("> ") <= 1


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.9, "59 s"), (61, "1 min 01 s"), (3661, "1 h 01 min"), (-5, "0 s")],
)
def test_elapsed_time_is_short(seconds: float, text: str) -> None:
    assert elapsed_text(seconds) == text
