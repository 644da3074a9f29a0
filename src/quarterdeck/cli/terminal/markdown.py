"""Markdown of a model as lines for a terminal: text in, `rich.text.Text` lines out. Pure.

Owns the look of each kind of block, and where a text that is still being written may be cut
(`Blocks`). Nothing of the text is lost: what is no Markdown for us (HTML, images, definitions of
links) stays as it is written, and the address of a link is shown beside its text.

The text comes from a model. `plain` is applied to all of it before and after it is parsed, because
a parser can make characters, as from `&#27;`. A block that is too long to parse quickly is plain
text. The parser takes a tenth of a second to load, so `screen` loads this module late.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from quarterdeck.cli.terminal.text import plain

LONGEST_BLOCK = 6000
"""Characters of a block that is parsed: the parser takes quadratic time for some texts."""
NARROWEST = 16
"""Columns that a nested block has at least; deeper ones are not indented any more."""
DEEPEST = 20
"""Levels of nesting that are parsed."""

_HEADINGS = {"h1": "bold underline", "h2": "bold", "h3": "bold italic"}
_INLINE = {"strong": "bold", "em": "italic", "s": "strike"}
_LINK = "underline"
_CODE = "cyan"
_ADDRESS = "dim"
_THEME = "ansi_dark"
"""A theme of the terminal's own colours, which are readable on any background."""
_LANGUAGES = frozenset({
    "bash", "c", "c++", "cpp", "cs", "csharp", "css", "diff", "dockerfile", "go", "html", "ini",
    "java", "javascript", "js", "json", "jsx", "kotlin", "lua", "make", "makefile", "php", "py",
    "python", "rb", "ruby", "rs", "rust", "scala", "sh", "shell", "sql", "swift", "toml", "ts",
    "tsx", "typescript", "xml", "yaml", "yml", "zsh",
})  # fmt: skip
"""Languages whose code gets colours: the lexers of hundreds of others are not needed."""
_BACKTICK_RUN = 3

_measure = Console(width=80, color_system=None)
"""Rich wraps texts for a console; nothing is printed on this one."""


def to_lines(source: str, width: int) -> list[Text]:
    """The lines of a text, each at most `width` columns wide. Never raises."""
    source = plain(source)
    width = max(1, width)
    if len(source) > LONGEST_BLOCK:
        return list(chain.from_iterable(to_lines(part, width) for part in _cut(source)))
    try:
        lines = _children(_parse(source).children, width, 0)
    except (RecursionError, ValueError, AssertionError, IndexError, KeyError):
        return wrap(Text(source.strip("\n")), width)
    return lines


def wrap(text: Text, width: int) -> list[Text]:
    """Break a text at words, or within a word that is longer than a line."""
    found: list[Text] = []
    for line in text.split("\n", allow_blank=True):
        line.expand_tabs(4)
        found += line.wrap(_measure, max(1, width), overflow="fold") or [Text()]
    return found


def _cut(source: str) -> Iterator[str]:
    """A long text in pieces that can be parsed: its blocks, and parts of long blocks."""
    blocks = Blocks()
    yield from blocks.feed(source)
    if blocks.rest:
        yield blocks.rest


class Blocks:
    """A text as it is written: the blocks that are complete, and the rest."""

    def __init__(self) -> None:
        self.rest = ""

    def feed(self, text: str) -> list[str]:
        """Add text; gives the blocks that it completes, with the blank lines after them."""
        self.rest += text
        found: list[str] = []
        if "\n" not in text and len(self.rest) <= LONGEST_BLOCK:
            return found
        while self.rest:
            head = self.rest[:LONGEST_BLOCK]
            starts = _starts(head)
            if len(starts) > 1:
                lines = head.split("\n")
                end = sum(len(line) + 1 for line in lines[: starts[-1]])
                found += _split_at(head[:end], starts[:-1])
                self.rest = self.rest[end:]
            if len(self.rest) <= LONGEST_BLOCK:
                break
            if len(starts) <= 1:
                found.append(self._take_long())
        return found

    def _take_long(self) -> str:
        """The beginning of a block that is too long; code stays code in both parts."""
        head = self.rest[: LONGEST_BLOCK - 200]
        end = head.rfind("\n") + 1 or head.rfind(" ") + 1 or len(head)
        first = self.rest.partition("\n")[0]
        mark = first.strip()[:_BACKTICK_RUN]
        if mark not in {"```", "~~~"} or len(first) > 100 or end <= len(first) + 1:
            taken, self.rest = self.rest[:end], self.rest[end:]
            return taken
        marks = first.strip()
        marks = marks[: len(marks) - len(marks.lstrip(mark[0]))]
        taken, self.rest = self.rest[:end], f"{first}\n{self.rest[end:]}"
        return f"{taken.removesuffix(chr(10))}\n{marks}\n"


def _split_at(text: str, starts: Sequence[int]) -> list[str]:
    lines = text.split("\n")
    begins = [0, *starts[1:]]
    ends = [*starts[1:], len(lines)]
    found = ["\n".join(lines[a:b]) + "\n" for a, b in zip(begins, ends, strict=True)]
    found[-1] = found[-1].removesuffix("\n")
    return found


def ends_apart(block: str) -> bool:
    """Whether a block is followed by an empty line."""
    return not block.rstrip(" \t").removesuffix("\n").strip() or (
        block.replace(" ", "").replace("\t", "").endswith("\n\n")
    )


# --- parsing ----------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _parser(*, blocks_only: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": DEEPEST})
    parser.enable(["table", "strikethrough"])
    # These would hide a part of the text, or make characters that were not written.
    parser.disable(["image", "html_block", "html_inline", "reference", "entity"])
    if blocks_only:
        parser.disable(["inline", "text_join"])
    return parser


def _parse(source: str) -> SyntaxTreeNode:
    """The tree of a text. Raises `ValueError` where the parser left out what is nested too deep."""
    tokens = _parser(blocks_only=False).parse(source)
    if any(token.level >= DEEPEST - 1 for token in tokens):
        raise ValueError("nested too deep")
    return SyntaxTreeNode(tokens)


def _starts(source: str) -> list[int]:
    """The lines at which the outer blocks begin."""
    try:
        tokens = _parser(blocks_only=True).parse(source)
    except (RecursionError, ValueError, AssertionError, IndexError):
        return [0]
    return sorted({token.map[0] for token in tokens if token.map and token.level == 0})


# --- blocks -----------------------------------------------------------------------------------


def _children(nodes: Iterable[SyntaxTreeNode], width: int, depth: int) -> list[Text]:
    lines: list[Text] = []
    last = None
    for node in nodes:
        if node.map is not None and last is not None and node.map[0] > last:
            lines.append(Text())
        lines += _block(node, width, depth)
        last = _end(node)
    return lines


def _end(node: SyntaxTreeNode) -> int | None:
    """The line after a node's last one. A list ends with its last item's text."""
    if node.map is None:
        return None
    if node.type in {"bullet_list", "ordered_list", "list_item", "blockquote"} and node.children:
        return _end(node.children[-1]) or node.map[1]
    return node.map[1]


def _block(node: SyntaxTreeNode, width: int, depth: int) -> list[Text]:
    match node.type:
        case "paragraph":
            return wrap(_inline(node), width)
        case "heading":
            text = _inline(node)
            text.stylize_before(_HEADINGS.get(node.tag, "bold"))
            return wrap(text, width)
        case "fence" | "code_block":
            return _code(node, width)
        case "hr":
            return [Text("─" * min(width, 40), "dim")]
        case "blockquote":
            return _indent(node, Text("▌ ", "dim"), Text("▌ ", "dim"), width, depth)
        case "bullet_list":
            return _list(node, width, depth, None)
        case "ordered_list":
            first = node.attrs.get("start", 1)
            return _list(node, width, depth, int(first) if str(first).isdecimal() else 1)
        case "table":
            return _table(node, width)
        case _:
            return wrap(Text(plain(node.content)), width) if node.content else []


def _list(node: SyntaxTreeNode, width: int, depth: int, number: int | None) -> list[Text]:
    items: list[Text] = []
    last: int | None = None
    for count, item in enumerate(node.children):
        if item.map is not None and last is not None and item.map[0] > last:
            items.append(Text())
        mark = "• " if number is None else f"{number + count}. "
        items += _indent(item, Text(mark, "bold"), Text(" " * len(mark)), width, depth)
        last = _end(item)
    return items


def _indent(node: SyntaxTreeNode, first: Text, other: Text, width: int, depth: int) -> list[Text]:
    room = width - cell_len(first.plain)
    if room < NARROWEST:
        other, room = Text(), max(1, room)
    inner = _children(node.children, room, depth + 1) or [Text()]
    lines = [
        Text.assemble(first if number == 0 else other, line) for number, line in enumerate(inner)
    ]
    for line in lines:
        line.rstrip()
    return lines


def _code(node: SyntaxTreeNode, width: int) -> list[Text]:
    code = plain(node.content).removesuffix("\n")
    words = plain(node.info).split() if node.type == "fence" else []
    text = _highlight(code, words[0]) if words else Text(code, _CODE)
    lines: list[Text] = []
    for line in text.split("\n", allow_blank=True):
        line.expand_tabs(4)
        lines += line.divide(_columns(line.plain, max(1, width - 2))) if line.plain else [Text()]
    return [Text.assemble("  ", line) for line in lines]


def _columns(line: str, width: int) -> list[int]:
    """Where a line of code is folded. Blanks stay: they mean something in code."""
    found, used = [], 0
    for at, character in enumerate(line):
        size = cell_len(character)
        if used + size > width and used:
            found.append(at)
            used = 0
        used += size
    return found


def _highlight(code: str, language: str) -> Text:
    if language.lower() not in _LANGUAGES:
        return Text(code, _CODE)
    from rich.syntax import Syntax

    try:
        text = Syntax(code, language, theme=_THEME, background_color="default").highlight(code)
    except Exception:  # noqa: BLE001 - a lexer that fails on this code gives it no colours
        return Text(code, _CODE)
    text.rstrip()
    # A lexer must not change the code that a person reads.
    if text.plain.rstrip("\n") != code.rstrip():
        return Text(code, _CODE)
    return text


# --- tables -----------------------------------------------------------------------------------


def _table(node: SyntaxTreeNode, width: int) -> list[Text]:
    rows = [
        [_inline(cell) for cell in row.children] for part in node.children for row in part.children
    ]
    if not rows:
        return []
    for cell in rows[0]:
        cell.stylize_before("bold")
    widths = [
        max(cell_len(row[column].plain) for row in rows if column < len(row))
        for column in range(len(rows[0]))
    ]
    if sum(widths) + 2 * (len(widths) - 1) <= width:
        lines = [_row(row, widths) for row in rows]
        rule = Text("  ".join("─" * each for each in widths), "dim")
        return [lines[0], rule, *lines[1:]]
    return _records(rows, width)


def _row(row: list[Text], widths: list[int]) -> Text:
    line = Text()
    for cell, size in zip(row, widths, strict=False):
        line.append_text(cell)
        line.append(" " * (size - cell_len(cell.plain) + 2))
    line.rstrip()
    return line


def _records(rows: list[list[Text]], width: int) -> list[Text]:
    """A table that is too wide: a line for each cell, named by its column."""
    head, *others = rows
    lines: list[Text] = []
    if not others:
        return [line for cell in head for line in wrap(cell, width)]
    for row in others:
        if lines:
            lines.append(Text("─" * min(width, 20), "dim"))
        for name, cell in zip(head, row, strict=False):
            lines += wrap(Text.assemble(name, ": ", cell), width)
    return lines


# --- text -------------------------------------------------------------------------------------


def _inline(node: SyntaxTreeNode) -> Text:
    text = Text()
    for child in node.children:
        _append(text, child, "", 0)
    return text


def _append(text: Text, node: SyntaxTreeNode, style: str, depth: int) -> None:
    match node.type:
        case "text" | "text_special":
            text.append(_flat(node.content), style)
        case "softbreak" | "hardbreak":
            text.append("\n")
        case "code_inline":
            text.append(_flat(node.content), f"{style} {_CODE}".strip())
        case "link":
            begin = len(text)
            for child in node.children:
                _append(text, child, f"{style} {_LINK}".strip(), depth + 1)
            address = plain(str(node.attrs.get("href", "")))
            if address and address.removeprefix("mailto:") != text.plain[begin:]:
                text.append(f" ({address})", _ADDRESS)
            if title := plain(str(node.attrs.get("title", ""))):
                text.append(f" “{title}”", _ADDRESS)
        case "strong" | "em" | "s" | "inline":
            inner = f"{style} {_INLINE.get(node.type, '')}".strip()
            for child in node.children:
                _append(text, child, inner, depth + 1)
        case _:
            text.append(_flat(node.content), style)


def _flat(content: str) -> str:
    """Text in a line: a tab has no place to jump to where words are wrapped."""
    return plain(content).replace("\t", " ")
