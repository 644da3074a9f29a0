"""Rich messages of Markdown (Bot API 10.1): headings, tables and nested lists as Telegram has them.

`rich_parts` divides a text between its blocks. Each part has the HTML of a rich message, and the
same as an ordinary text for a server or a chat that takes no rich messages: nothing is lost then.
A block that is too large for both is an ordinary text only.

The HTML is rebuilt from a list of tags. Links are those that `text` allows, and pictures become
links: Telegram would fetch them from an address that a model has written. Pure.
"""

from __future__ import annotations

import logging
from html import escape
from html.parser import HTMLParser

from quarterdeck.domain.structs import Value, name_set
from quarterdeck.fronts.telegram.text import LONGEST, Part, clean, may_link, parts

log = logging.getLogger(__name__)

MOST_CHARACTERS = 32768
MOST_BLOCKS = 500
MOST_NESTING = 16
MOST_COLUMNS = 20

_BLOCKS = name_set("p h1 h2 h3 h4 h5 h6 pre ul ol li blockquote table tr hr")
_TAGS = _BLOCKS | name_set("b i u s code a br td th tg-spoiler tg-math")
_VOID = name_set("br hr")
_KEPT = {"ol": "start", "code": "class", "td": "align", "th": "align"}


class RichPart(Value):
    """A message: as HTML of a rich message, if there is one, and as a text."""

    part: Part
    html: str = ""


def rich_parts(markdown: str) -> list[RichPart]:
    """The messages for a Markdown text; none for an empty one."""
    found: list[RichPart] = []
    group: list[str] = []
    size = 0
    for block in _blocks(clean(markdown)):
        if group and size + len(block) > LONGEST:
            found += _split_blocks(group)
            group, size = [], 0
        group.append(block)
        size += len(block) + 1
    return found + _split_blocks(group)


def _split_blocks(blocks: list[str]) -> list[RichPart]:
    """One message of these blocks, or several if they are too much for one."""
    markdown = "\n".join(blocks)
    made = _make_part(markdown)
    if made is not None:
        return [made]
    if len(blocks) <= 1:
        return [RichPart(part=part) for part in parts(markdown)]
    half = len(blocks) // 2
    return _split_blocks(blocks[:half]) + _split_blocks(blocks[half:])


def _make_part(markdown: str) -> RichPart | None:
    """One rich message; None if the text is empty, or too much for one."""
    if len(markdown) > 4 * LONGEST:
        return None
    found = parts(markdown)
    if len(found) != 1:
        return None
    html = _html(markdown)
    return RichPart(part=found[0], html=html) if html else None


def _blocks(markdown: str) -> list[str]:
    """The blocks of a text: each ends where the next one begins."""
    from markdown_it import MarkdownIt

    lines = markdown.split("\n")
    parser = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table")
    try:
        tokens = parser.parse(markdown)
    except RecursionError:
        return [markdown]
    starts = sorted({token.map[0] for token in tokens if token.map and token.level == 0})
    if not starts:
        return [markdown] if markdown.strip() else []
    starts[0] = 0
    ends = [*starts[1:], len(lines)]
    return ["\n".join(lines[a:b]) for a, b in zip(starts, ends, strict=True)]


def _html(markdown: str) -> str:
    """The HTML of a rich message; empty if Telegram would refuse it."""
    from telegramify_markdown import richify

    try:
        made = richify(markdown).html or ""
        writer = _Writer()
        writer.feed(made)
        writer.close()
    except Exception:  # then the text is an ordinary one
        log.exception("a Markdown text could not be made a rich message")
        return ""
    return writer.html if writer.accepted else ""


class _Writer(HTMLParser):
    """Writes HTML again, with what is allowed in it, and counts what is limited."""

    def __init__(self) -> None:
        super().__init__()
        self._out: list[str] = []
        self._open: list[tuple[str, str]] = []
        self._blocks = 0
        self._deepest = 0
        self._cells = 0
        self._columns = 0
        self._text = False

    @property
    def html(self) -> str:
        """What was written."""
        return "".join(self._out) + "".join(end for _, end in reversed(self._open))

    @property
    def accepted(self) -> bool:
        """Whether Telegram takes it."""
        return (
            self._text
            and len(self.html) <= MOST_CHARACTERS
            and self._blocks <= MOST_BLOCKS
            and self._deepest <= MOST_NESTING
            and self._columns <= MOST_COLUMNS
        )

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Write a tag, if it is allowed."""
        given = {name: value or "" for name, value in attrs}
        if tag == "img":
            self._write_link(given.get("src", ""), given.get("alt", "") or given.get("src", ""))
            return
        if tag == "a" and not may_link(given.get("href", "")):
            tag = ""
        if tag not in _TAGS:
            self._open.append((tag, ""))
            return
        self._count(tag)
        self._out.append(self._start(tag, given))
        if tag not in _VOID:
            self._open.append((tag, f"</{tag}>"))
            self._deepest = max(self._deepest, sum(one in _BLOCKS for one, _ in self._open))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Write a tag without contents."""
        self.handle_starttag(tag, attrs)
        if tag not in _VOID and tag != "img":
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close what the tag has opened."""
        if tag not in _VOID and self._open:
            self._out.append(self._open.pop()[1])

    def handle_data(self, data: str) -> None:
        """Write text."""
        self._text = self._text or bool(data.strip())
        self._out.append(escape(data, quote=False))

    def _start(self, tag: str, given: dict[str, str]) -> str:
        if tag == "a":
            return f'<a href="{escape(given["href"])}">'
        name = _KEPT.get(tag, "")
        value = given.get(name, "")
        return f'<{tag} {name}="{escape(value)}">' if value else f"<{tag}>"

    def _count(self, tag: str) -> None:
        self._blocks += tag in _BLOCKS
        if tag == "tr":
            self._cells = 0
        if tag in {"td", "th"}:
            self._cells += 1
            self._columns = max(self._columns, self._cells)

    def _write_link(self, url: str, text: str) -> None:
        self._text = self._text or bool(text.strip())
        shown = escape(text, quote=False)
        linked = may_link(url) and not any(tag == "a" for tag, _ in self._open)
        self._out.append(f'<a href="{escape(url)}">{shown}</a>' if linked else shown)
