"""The line that a person types: what each key does to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.cli.terminal.editor import LONGEST, Editor

LEFT, UP, DOWN = "\x1b[D", "\x1b[A", "\x1b[B"
PASTE, END = "\x1b[200~", "\x1b[201~"


def typed(keys: str) -> tuple[list[str], str, int]:
    editor = Editor()
    return list(editor.take(keys.encode())), editor.text, editor.cursor


CASES = {
    "letters": ("hello", [], "hello", 5),
    "enter": ("hello\r", ["hello"], "", 0),
    "two lines": ("one\rtwo\r", ["one", "two"], "", 0),
    "erase": ("hellp\x7fo\r", ["hello"], "", 0),
    "insert": (f"ac{LEFT}b", [], "abc", 2),
    "delete": (f"abc{LEFT}{LEFT}\x1b[3~", [], "ac", 1),
    "begin and end": ("bc\x01a\x05d", [], "abcd", 4),
    "word": ("foo bar\x17baz", [], "foo baz", 7),
    "clear": ("foo\x15", [], "", 0),
    "rest": ("foo\x01\x0b", [], "", 0),
    "words back": ("foo bar\x1bbx", [], "foo xbar", 5),
    "history": (f"one\rtwo\rdraft{UP}{UP}", ["one", "two"], "one", 3),
    "history and back": (f"one\rdraft{UP}{DOWN}", ["one"], "draft", 5),
    "backslash": ("two \\\rlines\r", ["two \nlines"], "", 0),
    "alt enter": ("a\x1b\rb\r", ["a\nb"], "", 0),
    "paste": (f"{PASTE}a\rb\ny\x1b[A{END}\r", ["a\nb\ny␛[A"], "", 0),
    "unknown key": ("a\x1b[15~\x1b[1;9Zb", [], "ab", 2),
    "wide": ("日本\x7f語", [], "日語", 2),
    "control character": ("a\x0cb", [], "ab", 2),
    "ctrl-d with text": ("ab\x01\x04", [], "b", 0),
}


@pytest.mark.parametrize("name", CASES)
def test_a_key_does_what_it_does_elsewhere(name: str) -> None:
    keys, done, text, cursor = CASES[name]
    assert typed(keys) == (done, text, cursor)


def test_ctrl_d_in_an_empty_line_ends_the_input() -> None:
    editor = Editor()
    assert list(editor.take(b"a\x7f\x04b")) == []
    assert editor.ended
    assert editor.text == ""


def test_the_escape_key_alone_does_nothing_to_what_follows() -> None:
    editor = Editor()
    list(editor.take(b"a\x1b"))
    editor.flush()
    list(editor.take(b"b"))
    assert editor.text == "ab"


def test_a_text_has_a_limit() -> None:
    editor = Editor()
    list(editor.take(b"x" * (LONGEST + 10)))
    assert len(editor.text) == LONGEST


KEYS = [
    "a",
    "é",
    "日",
    "\r",
    LEFT,
    UP,
    DOWN,
    "\x7f",
    "\x17",
    "\x01",
    PASTE,
    END,
    "\\",
    "\x1bb",
    " ",
]


@given(st.lists(st.sampled_from(KEYS)), st.integers(1, 7))
def test_it_does_not_matter_how_the_bytes_arrive(keys: list[str], size: int) -> None:
    data = "".join(keys).encode()
    editor = Editor()
    done = [text for at in range(0, len(data), size) for text in editor.take(data[at : at + size])]
    assert (done, editor.text, editor.cursor) == typed("".join(keys))
