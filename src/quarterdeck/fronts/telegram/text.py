"""Text as Telegram takes it: plain text with entities, in parts that are not too long.

`parts` makes messages of Markdown. `plain`, `bold`, `code`, `pre` and `+` compose a text of pieces
whose contents are shown as they are, whatever characters they have: that is the way for commands,
paths and everything else that is not Markdown. Offsets count UTF-16 code units.

Every part that leaves this module is accepted by Telegram: not empty, at most `LONGEST` units and
`MOST_ENTITIES` entities, and links only to http, https, tg and mailto. Pure.
"""

from __future__ import annotations

import logging
import re
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from quarterdeck.domain.structs import Value, name_set
from quarterdeck.fronts.telegram.types import Entity

if TYPE_CHECKING:
    from telegramify_markdown import RenderConfig

log = logging.getLogger(__name__)

LONGEST = 4096
LONGEST_CAPTION = 1024
MOST_ENTITIES = 100
LONGEST_URL = 2048
SCHEMES = frozenset({"http", "https", "tg", "mailto"})

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TYPES = name_set(
    "bold italic underline strikethrough spoiler blockquote expandable_blockquote code pre"
    " text_link"
)

_LOW_SURROGATES = frozenset(bytes([byte]) for byte in range(0xDC, 0xE0))
"""The upper byte of the second unit of a character that has two."""


class Part(Value):
    """A text with its entities: one message, or a piece of one."""

    text: str
    entities: tuple[Entity, ...] = ()

    def __add__(self, other: Part | str) -> Part:
        """The one after the other."""
        more = plain(other) if isinstance(other, str) else other
        shift = width(self.text)
        return Part(
            text=self.text + more.text,
            entities=self.entities + tuple(_shift(entity, shift) for entity in more.entities),
        )

    def __radd__(self, other: str) -> Part:
        return plain(other) + self

    @property
    def width(self) -> int:
        """Its length as Telegram counts."""
        return width(self.text)


def parts(markdown: str, *, limit: int = LONGEST) -> list[Part]:
    """The messages for a Markdown text; none for an empty one."""
    return split(_convert(clean(markdown)), limit)


def plain(text: str) -> Part:
    """A text as it is."""
    return Part(text=clean(text))


def with_style(text: str, style: str, *, language: str = "") -> Part:
    """A text with one style for all of it, such as `bold`, `italic` or `blockquote`."""
    part = plain(text)
    if not part.text:
        return part
    entity = Entity(type=style, offset=0, length=part.width, language=language)
    return Part(text=part.text, entities=(entity,))


def bold(text: str) -> Part:
    """A bold text."""
    return with_style(text, "bold")


def code(text: str) -> Part:
    """A text in a fixed-width font, within a line."""
    return with_style(text, "code")


def pre(text: str, language: str = "") -> Part:
    """A block of code."""
    return with_style(text, "pre", language=language[:64])


def quote(text: str) -> Part:
    """A quotation, which is folded if it is long."""
    return with_style(text, "expandable_blockquote")


def link(text: str, url: str) -> Part:
    """A link, or only its text if the URL is of a kind that may not be linked."""
    part = plain(text)
    if not part.text or not may_link(url):
        return part
    entity = Entity(type="text_link", offset=0, length=part.width, url=url)
    return Part(text=part.text, entities=(entity,))


def join(pieces: list[Part | str] | tuple[Part | str, ...]) -> Part:
    """All pieces, one after the other."""
    texts: list[str] = []
    entities: list[Entity] = []
    shift = 0
    for piece in pieces:
        part = plain(piece) if isinstance(piece, str) else piece
        texts.append(part.text)
        entities += [_shift(entity, shift) for entity in part.entities]
        shift += part.width
    return Part(text="".join(texts), entities=tuple(entities))


def cut(text: str, limit: int) -> str:
    """At most `limit` units of a text; a cut is marked by «…»."""
    text = clean(text)
    if width(text) <= limit:
        return text
    return text[: _index(text, max(limit - 1, 0))] + "…"


def fit(part: Part, limit: int = LONGEST) -> Part:
    """One message: as much of the part as Telegram takes in one; a cut is marked by «…».

    A part that is empty becomes «…», since Telegram refuses an empty text.
    """
    found = split(part, limit)
    if len(found) == 1:
        return found[0]
    found = split(part, limit - 1)
    return (found[0] + "…") if found else Part(text="…")


def split(part: Part, limit: int = LONGEST) -> list[Part]:
    """Parts of at most `limit` units, cut between lines where possible, else between words."""
    text, entities = part.text, _allowed_entities(part)
    found: list[Part] = []
    begin, offset = 0, 0
    while begin < len(text):
        end = _end(text, begin, offset, limit, entities)
        piece = text[begin:end]
        after = offset + width(piece)
        entities_here = [_clip(one, offset, after) for one in entities if one.offset < after]
        if trimmed := _trim(piece, entities_here):
            found.append(trimmed)
        entities = [one for one in entities if one.offset + one.length > after]
        begin, offset = end, after
    return found


def sendable(given: tuple[Part, ...], *, caption: bool) -> list[Part]:
    """The parts as Telegram takes them; it would refuse one that is too long or empty for good."""
    if caption:
        return [fit(given[0], LONGEST_CAPTION) if given and given[0].text else Part(text="")]
    return [piece for part in given for piece in split(part)] or [fit(Part(text=""))]


def width(text: str) -> int:
    """The length of a text in UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


# --- conversion ----------------------------------------------------------------------------------


def _convert(markdown: str) -> Part:
    from telegramify_markdown import convert  # with a library in Rust

    try:
        text, found = convert(markdown, latex_escape=False, config=_config())
    except Exception:  # a text must arrive, whatever the library does with it
        log.exception("a Markdown text could not be converted; it is sent as it is")
        return Part(text=markdown)
    entities = tuple(
        Entity(
            type=one.type,
            offset=one.offset,
            length=one.length,
            url=one.url or "",
            language=(one.language or "")[:64],
        )
        for one in found
    )
    return Part(text=text, entities=entities)


@cache
def _config() -> RenderConfig:
    from telegramify_markdown import RenderConfig

    config = RenderConfig.isolated()
    symbols = config.markdown_symbol
    for level in range(1, 7):
        setattr(symbols, f"heading_level_{level}", "")
    symbols.unordered_list_item = "•"
    symbols.task_uncompleted = "☐"
    symbols.image = ""
    return config


def clean(text: str) -> str:
    """A text without what Telegram cannot take: halves of characters, and control characters."""
    # Half a surrogate pair is not valid JSON, and Telegram removes control characters itself, after
    # which offsets would be wrong.
    text = text.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", text)


# --- entities ------------------------------------------------------------------------------------


def _allowed_entities(part: Part) -> list[Entity]:
    units = part.text.encode("utf-16-le", "surrogatepass")
    found = [
        one
        for one in part.entities
        if one.type in _TYPES
        and one.length > 0
        and one.offset >= 0
        and (one.offset + one.length) * 2 <= len(units)
        and not _halves(units, one.offset)
        and not _halves(units, one.offset + one.length)
        and (one.type != "text_link" or may_link(one.url))
    ]
    # Outer ones first, as Telegram returns them.
    return sorted(found, key=lambda one: (one.offset, -one.length))


def _halves(units: bytes, offset: int) -> bool:
    """Whether an offset is in the middle of a character that has two units."""
    return units[offset * 2 + 1 : offset * 2 + 2] in _LOW_SURROGATES


def may_link(url: str) -> bool:
    """Whether a URL is of a kind that may be linked."""
    try:
        parsed = urlsplit(url)
    except ValueError:
        return False
    if parsed.scheme.lower() not in SCHEMES or len(url) > LONGEST_URL:
        return False
    return not any(letter.isspace() for letter in url) and (
        bool(parsed.netloc) or (parsed.scheme.lower() == "mailto" and bool(parsed.path))
    )


def _shift(entity: Entity, by: int) -> Entity:
    return Entity(
        type=entity.type,
        offset=entity.offset + by,
        length=entity.length,
        url=entity.url,
        language=entity.language,
    )


def _clip(entity: Entity, begin: int, end: int) -> Entity:
    """The part of an entity between two offsets, seen from the first one."""
    start = max(entity.offset, begin)
    return Entity(
        type=entity.type,
        offset=start - begin,
        length=min(entity.offset + entity.length, end) - start,
        url=entity.url,
        language=entity.language,
    )


def _trim(text: str, entities: list[Entity]) -> Part | None:
    """Without white space at both ends, as Telegram would have it; None if nothing is left."""
    kept = text.strip()
    if not kept:
        return None
    lead = width(text[: len(text) - len(text.lstrip())])
    if text[: len(text) - len(text.lstrip())] and entities and _begins_block(entities):
        # The indentation of a first line of code matters: only empty lines before it are removed.
        body = text.rstrip()
        lead = width(body[: len(body) - len(body.lstrip("\n"))])
        kept = body.lstrip("\n")
    end = lead + width(kept)
    inside = [one for one in entities if one.offset < end and one.offset + one.length > lead]
    return Part(
        text=kept,
        entities=tuple(_clip(one, lead, end) for one in inside[:MOST_ENTITIES]),
    )


def _begins_block(entities: list[Entity]) -> bool:
    return any(one.type == "pre" and one.offset == 0 for one in entities)


# --- where to cut --------------------------------------------------------------------------------


def _end(text: str, begin: int, offset: int, limit: int, entities: list[Entity]) -> int:
    """The index at which the part that begins at `begin` ends."""
    room = limit
    if len(entities) > MOST_ENTITIES:
        # The first entity that would be one too many begins the next part.
        room = min(room, max(entities[MOST_ENTITIES].offset - offset, 1))
    # No need to look at more text than could fit.
    window = text[begin : begin + room + 1]
    if width(window) <= room:
        return begin + len(window)
    size = _index(window, room)
    for mark in ("\n\n", "\n", " "):
        # A cut that leaves a part nearly empty is worse than one at a lesser mark.
        found = window.rfind(mark, size // 2, size)
        if found >= 0:
            return begin + found + len(mark)
    return begin + max(size, 1)


def _index(text: str, units: int) -> int:
    """The index of the character at which so many units are used up."""
    if text.isascii():
        return min(units, len(text))
    head = text[:units].encode("utf-16-le")[: units * 2]
    # Half of a character at the end is left out.
    return len(head.decode("utf-16-le", "ignore"))
