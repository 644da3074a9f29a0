"""Markdown at the terminal: rendered, wrapped, nothing lost, nothing obeyed."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from quarterdeck.cli.terminal.markdown import LONGEST_BLOCK, Blocks, to_lines

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
SGR = re.compile(r"\x1b\[[0-9;]*m")


def text_of(source: str, width: int = 40) -> str:
    return "\n".join(line.plain.rstrip() for line in to_lines(source, width))


def printed(source: str, width: int = 40) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=width, color_system="standard")
    for line in to_lines(source, width):
        console.print(line, no_wrap=True, overflow="ignore", crop=False)
    return out.getvalue()


CASES = {
    "emphasis": ("**bold** and *slanted*, `code`", "bold and slanted, code"),
    "heading": ("## A heading\n\ntext", "A heading\n\ntext"),
    "words": (
        "one two three four five six seven eighteen nine ten",
        "one two three four five six seven\neighteen nine ten",
    ),
    "lines of a paragraph": ("one\ntwo", "one\ntwo"),
    "list": ("- a\n- b\n  - c", "• a\n• b\n  • c"),
    "numbers": ("3. a\n4. b", "3. a\n4. b"),
    "loose list": ("- a\n\n- b", "• a\n\n• b"),
    "list after a line": ("Do:\n- a", "Do:\n• a"),
    "code": ("```python\nif x:\n    y()\n```", "  if x:\n      y()"),
    "quote": ("> said\n> so", "▌ said\n▌ so"),
    "link": ("[here](http://a.example/b)", "here (http://a.example/b)"),
    "bare link": ("<http://a.example/b>", "http://a.example/b"),
    "disguised link": (
        "[http://good.example](http://bad.example)",
        "http://good.example (http://bad.example)",
    ),
    "table": ("|a|b|\n|-|-|\n|x|yy|", "a  b\n─  ──\nx  yy"),
    "wide table": (
        "|name|what it is|\n|-|-|\n|" + "n" * 20 + "|" + "w" * 20 + "|",
        "name: " + "n" * 20 + "\nwhat it is: " + "w" * 20,
    ),
    "html": ("<b>x</b>\n\n<!-- hidden -->", "<b>x</b>\n\n<!-- hidden -->"),
    "image": ("![alt](http://a.example/p.png)", "!alt (http://a.example/p.png)"),
    "definition": ("[a]: http://a.example", "[a]: http://a.example"),
    "entity": ("&#27;[31m &lt;", "&#27;[31m &lt;"),
    "wide characters": ("日本語" * 8, "日本語日本語日本語日本語日本語日本語日本\n語日本語"),
    "long word": ("x" * 50, "x" * 40 + "\n" + "x" * 10),
    "escape": ("a\x1b[2Jb\u202ec", "a␛[2Jb\ufffdc"),
    "markup of a library": ("[bold red]x[/]", "[bold red]x[/]"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_text_is_rendered(name: str) -> None:
    source, wanted = CASES[name]
    assert text_of(source) == wanted


def test_what_is_nested_too_deep_is_shown_as_it_is() -> None:
    source = "> " * 60 + "the end"
    assert "the end" in text_of(source, 200).replace("\n", "")


@given(st.text() | st.text("ab \n`*_>#-|[]()!<&;\x1b1.~\\\t"), st.integers(1, 80))
def test_no_line_is_too_wide_and_no_control_character_is_printed(source: str, width: int) -> None:
    for line in to_lines(source, width):
        # A character of two columns has no place in one.
        assert cell_len(line.plain) <= max(width, 2), line.plain
    assert not OBEYED.search(SGR.sub("", printed(source, width)))


@given(st.lists(st.sampled_from(["one", "zwei", "**drei**", "- four", "\n", "\n\n", "`five`"])))
def test_every_word_is_shown(words: list[str]) -> None:
    source = " ".join(words)
    shown = text_of(source)
    for word in re.findall("[a-z]+", source):
        assert shown.count(word) >= source.count(word)


PIECES = [
    "word ",
    "\n",
    "\n\n",
    "- item",
    "```\n",
    "    x",
    "# head",
    "> q",
    "|a|b|\n|-|-|\n",
    "1. ",
]


@given(st.lists(st.sampled_from(PIECES), max_size=30), st.integers(1, 12))
def test_a_text_in_pieces_has_the_blocks_of_the_whole_text(pieces: list[str], size: int) -> None:
    source = "".join(pieces)
    blocks = Blocks()
    found = [
        block for at in range(0, len(source), size) for block in blocks.feed(source[at : at + size])
    ]
    assert "".join(found) + blocks.rest == source


@pytest.mark.parametrize("fence", ["```python", "~~~~"])
def test_code_that_is_too_long_for_one_block_stays_code(fence: str) -> None:
    lines = [f"line {number} * x * y" for number in range(LONGEST_BLOCK // 10)]
    marks = fence[: len(fence) - len(fence.lstrip(fence[0]))]
    shown = text_of("\n".join([fence, *lines, marks, "", "*after*"]), 80).split("\n")
    assert [line for line in shown if line.startswith("  line")] == [f"  {line}" for line in lines]
    assert shown[-1] == "after"


HOSTILE = ("[", "*a ", "`", "> ", "- ", "_a", "[a](", "|a", "<", "![[]()", "a\n", "~~a", "\\")


@pytest.mark.parametrize("part", HOSTILE)
def test_a_text_that_is_slow_to_parse_is_shown(part: str) -> None:
    assert "the end" in text_of(f"{part * (20_000 // len(part))}\n\nthe end", 80)
