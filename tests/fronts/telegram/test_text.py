"""Text for Telegram: whatever comes in, every part that leaves is one that Telegram accepts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.fronts.telegram import text
from quarterdeck.fronts.telegram.text import (
    LONGEST,
    MOST_ENTITIES,
    Part,
    bold,
    code,
    cut,
    fit,
    join,
    link,
    parts,
    plain,
    pre,
    quote,
    split,
    width,
)
from quarterdeck.fronts.telegram.types import Entity
from quarterdeck.testing.telegram.checks import check_entities, is_link, utf16
from quarterdeck.testing.telegram.objects import Entity as Checked
from support.examples import examples

FACE = "\N{GRINNING FACE}"


def check(part: Part, limit: int = LONGEST) -> None:
    """What Telegram checks, as the test server does it."""
    assert part.text.strip()
    assert utf16(part.text) <= limit
    assert len(part.entities) <= MOST_ENTITIES
    given = tuple(
        Checked(type=one.type, offset=one.offset, length=one.length, url=one.url or None)
        for one in part.entities
    )
    # Nothing is refused, and nothing is dropped.
    assert check_entities(part.text, given) == given
    part.text.encode()


def styles(part: Part) -> list[tuple[str, str]]:
    """The styles with the texts that they cover."""
    units = part.text.encode("utf-16-le")
    return [
        (one.type, units[one.offset * 2 : (one.offset + one.length) * 2].decode("utf-16-le"))
        for one in part.entities
    ]


def test_markdown_becomes_text_with_entities() -> None:
    [part] = parts(
        f"# Title\n\n{FACE} **bold** `code` [site](https://a.example/x)\n\n- [ ] todo\n- one"
    )
    assert part.text == f"Title\n\n{FACE} bold code site\n\n☐ todo\n• one"
    assert ("bold", "bold") in styles(part)
    assert ("code", "code") in styles(part)
    assert ("text_link", "site") in styles(part)
    check(part)


def test_a_block_of_code_keeps_its_language_and_indentation() -> None:
    [part] = parts("```python\n    if x:\n        y()\n```")
    assert part.text == "    if x:\n        y()"
    assert part.entities == (
        Entity(type="pre", offset=0, length=width(part.text), language="python"),
    )


@pytest.mark.parametrize("markdown", ["", "   ", "\n\n\n", "\x00\x01"])
def test_an_empty_text_makes_no_message(markdown: str) -> None:
    assert parts(markdown) == []


LINKS = {
    "https://a.example/b?c=d": True,
    "http://a.example": True,
    "tg://user?id=1": True,
    "mailto:ada@a.example": True,
    "javascript:alert(1)": False,
    "JaVaScRiPt:alert(1)": False,
    "data:text/html,x": False,
    "file:///etc/passwd": False,
    "ftp://a.example": False,
    "vbscript:x": False,
    "//a.example/b": False,
    "/etc/passwd": False,
    "https://": False,
    "mailto:": False,
    "http://[": False,
    "": False,
    "https://a.example/" + "x" * 3000: False,
}


@pytest.mark.parametrize("url", LINKS)
def test_only_harmless_links_are_links(url: str) -> None:
    kept = LINKS[url]
    part = link("here", url)
    assert part.text == "here"
    assert bool(part.entities) == kept
    if kept:
        assert is_link(url)
    raw = Part(text="x", entities=(Entity(type="text_link", offset=0, length=1, url=url),))
    assert bool(split(raw)[0].entities) == kept
    for made in parts(f"[here](<{url}>) and ![picture](<{url}>)"):
        assert all(one.url == url for one in made.entities if one.type == "text_link" and kept)
        assert kept or all(one.type != "text_link" for one in made.entities)


def test_content_that_looks_like_markdown_is_shown_as_it_is() -> None:
    command = "echo `id` **x** ```[a](javascript:b)``` <b> || true || false"
    part = bold("Bash") + "\n" + pre(command, "bash") + "\n" + code("/tmp/*a*_b_")
    assert part.text == f"Bash\n{command}\n/tmp/*a*_b_"
    assert styles(part) == [("bold", "Bash"), ("pre", command), ("code", "/tmp/*a*_b_")]


def test_pieces_are_joined_with_their_styles() -> None:
    part = join([f"{FACE} ", bold("b"), " ", quote("q")])
    assert part.text == f"{FACE} b q"
    assert styles(part) == [("bold", "b"), ("expandable_blockquote", "q")]
    assert "x" + bold("y") == join(["x", bold("y")])
    assert bold("") == Part(text="")


def test_a_long_text_is_cut_between_paragraphs_lines_or_words() -> None:
    paragraphs = "\n\n".join(f"{number} " + "word " * 150 for number in range(20))
    found = parts(paragraphs)
    assert len(found) > 3
    for part in found:
        check(part)
        assert part.text.endswith("word")
        assert part.text[0].isdigit()
    assert "".join("".join(part.text.split()) for part in found) == "".join(paragraphs.split())


def test_a_text_without_any_mark_is_cut_between_characters() -> None:
    found = split(plain(FACE * 5000))
    assert [part.width for part in found] == [4096, 4096, 1808]
    for part in found:
        check(part)


def test_a_style_goes_on_in_the_next_part() -> None:
    found = split(pre("line\n" * 3000, "python"))
    assert len(found) > 2
    for part in found:
        check(part)
        [entity] = part.entities
        assert (entity.type, entity.language) == ("pre", "python")
        assert entity.length == part.width


def test_a_part_has_at_most_a_hundred_entities() -> None:
    found = parts(" ".join(f"**{number}**" for number in range(1000)))
    assert len(found) >= 10
    assert sum(len(part.entities) for part in found) == 1000
    for part in found:
        check(part)
    nested = Part(
        text="x" * 10, entities=tuple(Entity(type="bold", offset=0, length=10) for _ in range(300))
    )
    for part in split(nested):
        check(part)


def test_what_does_not_fit_is_cut_with_a_mark() -> None:
    assert cut("abc", 3) == "abc"
    assert cut("abcd", 3) == "ab…"
    assert cut(FACE * 3, 4) == f"{FACE}…"
    long = fit(bold("x" * 5000))
    assert long.width == LONGEST
    assert long.text.endswith("…")
    assert fit(plain("  ")).text == "…"
    assert fit(plain("short")) == plain("short")


def test_a_text_arrives_even_if_the_conversion_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    import telegramify_markdown

    def fail(*_: object, **__: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(telegramify_markdown, "convert", fail)
    assert parts("**text**") == [Part(text="**text**")]


def test_hostile_markdown_is_converted_too() -> None:
    for markdown in (
        ">" * 5000 + " x",
        "[" * 5000,
        "*" * 10000,
        "`" * 9999 + "x",
        "- " * 3000 + "x",
        "|" * 5000 + "\n" + "|-" * 5000,
        "<" * 5000,
        "![" * 3000 + "](x)" * 3000,
        "||" * 4000,
        "$" * 5000,
    ):
        for part in parts(markdown):
            check(part)


@settings(max_examples=examples(300))
@given(st.text(max_size=400) | st.text("*_`[]()#>|-~\n \\$<a" + FACE, max_size=400))
def test_every_part_of_any_markdown_is_accepted(markdown: str) -> None:
    for part in parts(markdown, limit=64):
        check(part, 64)


@settings(max_examples=examples(300))
@given(
    st.text(max_size=200),
    st.lists(
        st.builds(
            Entity,
            type=st.sampled_from(["bold", "code", "pre", "text_link", "huge"]),
            offset=st.integers(-2, 200),
            length=st.integers(-2, 200),
            url=st.sampled_from(["", "https://a.example", "javascript:x"]),
        ),
        max_size=8,
    ),
)
def test_every_part_of_any_composition_is_accepted(raw: str, entities: list[Entity]) -> None:
    clean = plain(raw)
    given = Part(text=clean.text, entities=tuple(entities))
    for part in split(given, limit=32):
        for one in part.entities:
            assert one.offset >= 0
            assert one.offset + one.length <= part.width
            assert one.type != "huge"
        assert 0 < part.width <= 32
    assert "".join("".join(part.text.split()) for part in split(given, 32)) == "".join(
        clean.text.split()
    )


def test_width_counts_as_telegram_does() -> None:
    assert [text.width(one) for one in ("", "a", "é", FACE, "\ud800")] == [0, 1, 1, 2, 1]
