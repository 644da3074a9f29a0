"""What Telegram accepts as the content of a message: texts, entities, buttons, rich messages.

Pure functions that return the content as Telegram would store it, or raise a `Refusal`.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

import msgspec

from quarterdeck.domain.structs import Value, name_set
from quarterdeck.testing.telegram.objects import Button, Entity, Keyboard, Paragraph, Rich
from quarterdeck.testing.telegram.params import Params
from quarterdeck.testing.telegram.refusal import bad

LONGEST_TEXT = 4096
LONGEST_CAPTION = 1024
LONGEST_CALLBACK_DATA = 64
LONGEST_TOAST = 200
MOST_ENTITIES = 100
MOST_BUTTONS = 100
LARGEST_UPLOAD = 50 * 1024 * 1024
LARGEST_PHOTO = 10 * 1024 * 1024
LARGEST_DOWNLOAD = 20 * 1024 * 1024
RICH_CHARACTERS = 32768
RICH_BLOCKS = 500
RICH_NESTING = 16
RICH_MEDIA = 50
RICH_COLUMNS = 20

_ENTITY_TYPES = name_set(
    "bold italic underline strikethrough spoiler blockquote expandable_blockquote code pre"
    " text_link text_mention custom_emoji mention hashtag cashtag bot_command url email"
    " phone_number date_time"
)
_LINK_SCHEMES = name_set("http https tg ton mailto")
_STYLES = name_set("danger success primary")


def utf16(text: str) -> int:
    """The length of a text as Telegram counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class Styled(Value):
    """A text with its entities, as stored."""

    text: str
    entities: tuple[Entity, ...] = ()


def read_text(
    params: Params,
    name: str = "text",
    entities: str = "entities",
    *,
    limit: int = LONGEST_TEXT,
    optional: bool = False,
) -> Styled:
    """The text of a call, trimmed as Telegram does it."""
    if params.has("parse_mode") and params.text("parse_mode"):
        raise bad("can't parse entities: this test server takes entities and no parse_mode")
    given = params.text(name).replace("\r", "")
    styles = check_entities(given, params.get(entities, tuple[Entity, ...]) or ())
    kept = given.strip()
    if not kept:
        if optional:
            return Styled(text="")
        raise bad("message text is empty")
    if utf16(kept) > limit:
        what = "message is too long" if name == "text" else "message caption is too long"
        raise bad(what)
    lead = utf16(given[: len(given) - len(given.lstrip())])
    return Styled(text=kept, entities=_trim(styles, lead, lead + utf16(kept)))


def check_entities(text: str, entities: tuple[Entity, ...]) -> tuple[Entity, ...]:
    """The entities that Telegram keeps: at most 100, no empty ones, only known links."""
    units = text.encode("utf-16-le", "surrogatepass")
    kept: list[Entity] = []
    for one in entities:
        if one.type not in _ENTITY_TYPES:
            raise bad(f"can't parse MessageEntity: unsupported type {one.type!r} specified")
        end = one.offset + one.length
        if one.offset < 0 or one.length < 0 or end * 2 > len(units):
            raise bad("can't parse entities: an entity is outside of the text")
        if _splits_character(units, one.offset) or _splits_character(units, end):
            raise bad("can't parse entities: an entity begins in the middle of a UTF-16 symbol")
        if one.type == "text_link" and not is_link(one.url or ""):
            continue
        if one.length:
            kept.append(one)
    return tuple(kept[:MOST_ENTITIES])


def is_link(url: str) -> bool:
    """Whether Telegram would make a link of it."""
    try:
        parsed = urlsplit(url)
    except ValueError:
        return False
    return parsed.scheme.lower() in _LINK_SCHEMES and bool(parsed.netloc or parsed.path)


def _splits_character(units: bytes, offset: int) -> bool:
    pair = units[offset * 2 : offset * 2 + 2]
    return len(pair) == 2 and 0xDC00 <= int.from_bytes(pair, "little") <= 0xDFFF


def _trim(entities: tuple[Entity, ...], begin: int, end: int) -> tuple[Entity, ...]:
    found = []
    for one in entities:
        first, last = max(one.offset, begin), min(one.offset + one.length, end)
        if last > first:
            found.append(msgspec.structs.replace(one, offset=first - begin, length=last - first))
    return tuple(found)


# --- buttons -------------------------------------------------------------------------------------


def read_keyboard(params: Params) -> Keyboard | None:
    """The buttons of a call; None if there are none, or if it asks for a reply."""
    markup = params.get("reply_markup", dict[str, Any])
    if not markup or "inline_keyboard" not in markup:
        return None
    try:
        keyboard = msgspec.convert(markup, Keyboard)
    except msgspec.ValidationError as error:
        raise bad(f"can't parse inline keyboard button: {error}") from None
    rows = tuple(row for row in keyboard.inline_keyboard if row)
    if sum(len(row) for row in rows) > MOST_BUTTONS:
        raise bad("reply markup is too long")
    for row in rows:
        for button in row:
            _check_button(button)
    return Keyboard(inline_keyboard=rows) if rows else None


def _check_button(button: Button) -> None:
    if not button.text.strip():
        raise bad("inline keyboard button text must be non-empty")
    if button.callback_data is None and button.url is None:
        raise bad("text buttons are unallowed in the inline keyboard")
    if button.callback_data is not None and not (
        1 <= len(button.callback_data.encode()) <= LONGEST_CALLBACK_DATA
    ):
        raise bad("BUTTON_DATA_INVALID")
    if button.url is not None and not is_link(button.url):
        raise bad(f"inline keyboard button URL '{button.url}' is invalid: Wrong HTTP URL")
    if button.style is not None and button.style not in _STYLES:
        raise bad("inline keyboard button style is invalid")


# --- rich messages -------------------------------------------------------------------------------

_BLOCKS = name_set(
    "p h1 h2 h3 h4 h5 h6 pre ul ol li blockquote aside table tr hr details footer figure"
    " tg-collage tg-slideshow tg-map tg-math-block"
)
_MEDIA = name_set("img video audio")
_VOID = name_set("br hr img input source tg-map")
_INLINE = name_set(
    "b strong i em u ins s strike del code a span tg-spoiler tg-emoji tg-math tg-thinking mark sub"
    " sup br td th thead tbody caption summary input cite figcaption tg-time tg-reference img video"
    " audio source"
)


class _RichReader(HTMLParser):
    """Counts what is limited, and collects the text of each outermost block."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = 0
        self.media = 0
        self.depth = 0
        self.deepest = 0
        self.columns = 0
        self.thinking = False
        self.paragraphs: list[str] = []
        self._open: list[str] = []
        self._cells = 0
        self._text: list[str] = []

    def handle_starttag(self, tag: str, _attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _BLOCKS and tag not in _INLINE:
            raise bad(f"can't parse rich message: unsupported tag <{tag}>")
        if not self._open and tag in _BLOCKS:
            self._flush()
        self.blocks += tag in _BLOCKS
        self.media += tag in _MEDIA
        self.thinking = self.thinking or tag == "tg-thinking"
        if tag == "tr":
            self._cells = 0
        if tag in {"td", "th"}:
            self._cells += 1
            self.columns = max(self.columns, self._cells)
        if tag not in _VOID:
            self._open.append(tag)
            self.deepest = max(self.deepest, sum(one in _BLOCKS for one in self._open))
        if tag in {"br", "li", "tr"}:
            self._text.append("\n")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        if not self._open or self._open[-1] != tag:
            raise bad(f"can't parse rich message: unexpected end tag </{tag}>")
        self._open.pop()
        if not self._open:
            self._flush()

    def handle_data(self, data: str) -> None:
        self._text.append(data)

    def finish(self) -> None:
        self.close()
        if self._open:
            raise bad(f"can't parse rich message: <{self._open[-1]}> is not closed")
        self._flush()

    def _flush(self) -> None:
        text = "".join(self._text).strip()
        self._text.clear()
        if text:
            self.paragraphs.append(text)


class _RichInput(Value):
    html: str | None = None
    markdown: str | None = None
    blocks: list[dict[str, Any]] | None = None
    is_rtl: bool = False
    skip_entity_detection: bool = False
    media: list[dict[str, Any]] | None = None


def read_rich(params: Params, *, draft: bool = False) -> Rich:
    """The content of a rich message."""
    given = params.get("rich_message", _RichInput)
    if given is None:
        raise bad("parameter rich_message is required")
    if [given.html, given.markdown, given.blocks].count(None) != 2:
        raise bad("exactly one of html, markdown and blocks must be specified")
    if given.blocks is not None:
        raise bad("can't parse rich message: this test server takes html and markdown, no blocks")
    source = given.html if given.html is not None else given.markdown
    assert source is not None
    if len(source) > RICH_CHARACTERS:
        raise bad("rich message is too long")
    html = source if given.html is not None else _html_of(source)
    reader = _RichReader()
    reader.feed(html)
    reader.finish()
    if not reader.paragraphs and not reader.media:
        raise bad("rich message is empty")
    if reader.blocks > RICH_BLOCKS:
        raise bad("rich message has too many blocks")
    if reader.deepest > RICH_NESTING:
        raise bad("rich message blocks are nested too deep")
    if reader.media > RICH_MEDIA:
        raise bad("rich message has too many media")
    if reader.columns > RICH_COLUMNS:
        raise bad("rich message table has too many columns")
    if reader.thinking and not draft:
        raise bad("thinking blocks are allowed in drafts only")
    return Rich(blocks=tuple(Paragraph(type="paragraph", text=text) for text in reader.paragraphs))


def _html_of(markdown: str) -> str:
    from markdown_it import MarkdownIt

    html = str(MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown))
    # Attributes and white space between blocks do not matter to what is checked.
    return re.sub(r">\s+<", "><", html)
