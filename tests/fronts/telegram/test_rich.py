"""Rich messages: what Telegram draws, without what it would fetch, and never less than the text."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.fronts.telegram import rich as rich_module
from quarterdeck.fronts.telegram.rich import RichPart, rich_parts
from quarterdeck.testing.telegram.checks import read_rich
from quarterdeck.testing.telegram.params import Params
from support.examples import examples

TABLE = "| name | value |\n|:--|--:|\n| a | 1 |\n| b | 2 |"


def shown(made: RichPart) -> str:
    """What the test server shows of it; it refuses what Telegram refuses."""
    rich = msgspec.to_builtins({"html": made.html})
    return "\n".join(block.text for block in read_rich(Params({"rich_message": rich}, {})).blocks)


def test_markdown_becomes_one_rich_message_with_a_plain_one() -> None:
    [made] = rich_parts(
        f"# Title\n\ntext **bold**\n\n{TABLE}\n\n- one\n  - two\n\n```py\nx < 1\n```"
    )
    assert "<h1>Title</h1>" in made.html
    assert "<table>" in made.html
    assert "x &lt; 1" in made.html
    assert made.part.text.startswith("Title")
    for word in ("Title", "bold", "value", "two", "x < 1"):
        assert word in shown(made)
        assert word in made.part.text


def test_a_long_text_is_divided_between_its_blocks() -> None:
    markdown = "\n\n".join([f"## Section {number}\n\n" + "word " * 300 for number in range(12)])
    made = rich_parts(markdown)
    assert len(made) > 3
    words = " ".join(shown(one) for one in made).split()
    assert words.count("word") == 12 * 300
    assert " ".join(one.part.text for one in made).split().count("word") == 12 * 300


def test_a_block_that_is_too_large_is_an_ordinary_text() -> None:
    made = rich_parts("# Title\n\n```\n" + "line\n" * 3000 + "```\n\nend")
    assert any(not one.html for one in made)
    assert sum(one.part.text.count("line") for one in made) == 3000
    wide = "|" + " a |" * 21 + "\n|" + "--|" * 21 + "\n|" + " b |" * 21
    assert [one.html for one in rich_parts(wide)] == [""]


HOSTILE = {
    "[x](javascript:alert)": "javascript",
    "![x](https://a.example/pixel.png)": "<img",
    "![x](file:///etc/passwd)": "file:",
    "[a ![b](https://b.example)](https://c.example)": "<img",
    '<img src="https://a.example/p"> <script>x</script>': "<script",
    "<video src='https://a.example/v'></video> text": "<video",
    '[x](https://a.example/"onclick="y)': 'onclick="',
    '```a"b<c>\nx\n```': "<c>",
}


@pytest.mark.parametrize("markdown", HOSTILE)
def test_nothing_is_fetched_and_no_dangerous_link_is_made(markdown: str) -> None:
    for made in rich_parts(markdown):
        assert HOSTILE[markdown] not in made.html
        if made.html:
            shown(made)


@pytest.mark.parametrize("markdown", ["", " \n ", "\x00"])
def test_an_empty_text_makes_no_message(markdown: str) -> None:
    assert rich_parts(markdown) == []


@settings(max_examples=examples(200))
@given(st.text(max_size=300) | st.text('*_`[]()#>|-~\n !\\$<a1."', max_size=300))
def test_every_rich_message_of_any_markdown_is_accepted(markdown: str) -> None:
    for made in rich_parts(markdown):
        assert made.part.text.strip()
        if made.html:
            shown(made)


def test_a_text_is_converted_about_once_for_each_message(monkeypatch: pytest.MonkeyPatch) -> None:
    converted: list[str] = []
    convert = rich_module._html

    def count(markdown: str) -> str:
        converted.append(markdown)
        return convert(markdown)

    monkeypatch.setattr(rich_module, "_html", count)
    text = "A **line** of `code` that is repeated.\n\n" * 800
    found = rich_parts(text)
    assert sum(each.part.text.count("repeated") for each in found) == 800
    assert all(each.html for each in found)
    assert sum(map(len, converted)) <= 2 * len(text)
