"""Invisible characters, and characters that change how others are drawn, as visible marks.

Owns the table of these characters and how a text with them is shown: `⟨U+202E⟩` for one character,
`· 400 blanks ·` for a run that would push the rest out of sight. The texts come from an agent, and
people decide by them. `web/src/ui/marks.ts` has the same table and rules for the browser;
`tests/fixtures/marks.json` holds both to one behaviour.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from quarterdeck.domain.look_alikes import suspicious

LONGEST_INDENT = 80
"""Blanks at the beginning of a line that are shown as they are: code is indented so."""
LONGEST_RUN = 20
"""The same anywhere else."""
MOST_EMPTY_LINES = 3
MOST_REPEATS = 3
"""The same mark so many times in a row is written out; more are counted."""
MOST_COMBINING = 3
MOST_MARKS = 1000
"""Characters of a long text whose code is written out."""

MARKED: tuple[tuple[int, int], ...] = (
    (0x0000, 0x0008),  # control characters but for tab and newline
    (0x000B, 0x001F),
    (0x007F, 0x00A0),  # … and the no-break space
    (0x00AD, 0x00AD),  # soft hyphen
    (0x034F, 0x034F),
    (0x0600, 0x0605),
    (0x061C, 0x061C),
    (0x06DD, 0x06DD),
    (0x070F, 0x070F),
    (0x0890, 0x0891),
    (0x08E2, 0x08E2),
    (0x115F, 0x1160),  # letters that are blank
    (0x1680, 0x1680),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2000, 0x200F),  # blanks of other widths, joiners, directions
    (0x2028, 0x202F),  # line separators, bidirectional embeddings and overrides
    (0x205F, 0x206F),  # … and isolates
    (0x2800, 0x2800),  # a braille pattern without dots
    (0x3000, 0x3000),
    (0x3164, 0x3164),
    (0xD800, 0xF8FF),  # halves of surrogate pairs, private use
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0xFFFE, 0xFFFF),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x16FE4, 0x16FE4),
    (0x1BCA0, 0x1BCA3),
    (0x1D159, 0x1D159),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),  # tag characters, more variation selectors
    (0xF0000, 0x10FFFF),  # private use
)
"""First and last code point of each range that is marked, unless the character is in its usual
place."""


def _class(*ranges: tuple[int, int]) -> str:
    return "[" + "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in ranges) + "]"


_COMBINING = _class(
    (0x300, 0x36F), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20FF), (0xFE20, 0xFE2F)
)
_FOUND = re.compile(
    rf"[ \t]*\n[ \t\n]*|[ \t]{{{LONGEST_RUN + 1},}}|{_class(*MARKED)}+"
    rf"|{_COMBINING}{{{MOST_COMBINING + 1},}}"
)
_ONE = re.compile(_class(*MARKED))
_PICTURE = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f"
    "\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
"""Characters beside which an emoji's variation selector or joiner is usual."""
_JOINED = re.compile("[\u0620-\u08ff\u0900-\u0dff]")
"""Letters of scripts that are written with joiners: Arabic and its relatives, those of India."""


def mark_invisible(text: str, *, code: bool = False) -> str:
    """The text with a visible mark for each invisible character. Newlines and tabs stay.

    Characters that look like ASCII ones are marked too: in code all of them, in prose those within
    a word of ASCII letters.
    """
    return "".join(_pieces(_without_look_alikes(text, code=code)))


def _without_look_alikes(text: str, *, code: bool) -> str:
    pieces: list[str] = []
    at = 0
    for place in suspicious(text, code=code):
        pieces += text[at:place], f"⟨U+{ord(text[place]):04X}⟩"
        at = place + 1
    return "".join(pieces) + text[at:]


def mark_characters(text: str, most: int = MOST_MARKS) -> str:
    """The text with a visible mark for each invisible character; blanks and line ends stay.

    For long texts that nobody decides by, such as an export: it takes little time whatever the text
    has. After `most` marks the others do not say which character it was.
    """
    pieces: list[str] = []
    at = 0
    for match in islice(_ONE.finditer(text), most):
        start, end = match.span()
        character = match[0]
        usual = _in_place(character, text[start - 1 : start] if start else "", text[end : end + 1])
        pieces += text[at:start], character if usual else f"⟨U+{ord(character):04X}⟩"
        at = end
    return "".join(pieces) + _ONE.sub("⟨?⟩", text[at:])


def replace_invisible(text: str, mark: str, *, keep: str = "") -> str:
    """The text with `mark` in place of each invisible character, where there is no room for its
    code.

    Blanks and the characters of `keep` stay.
    """

    def one(match: re.Match[str]) -> str:
        at, character = match.start(), match[0]
        if character in keep or _in_place(
            character, text[at - 1 : at] if at else "", text[at + 1 : at + 2]
        ):
            return character
        return mark

    return _ONE.sub(one, text)


def _pieces(text: str) -> Iterator[str]:
    at = 0
    for match in _FOUND.finditer(text):
        yield text[at : match.start()]
        if match[0][0] in " \t\n":
            yield from _blanks(match[0], first=match.start() == 0, last=match.end() == len(text))
        else:
            yield from _hidden_characters(text, match.start(), match.end())
        at = match.end()
    yield text[at:]


def _blanks(run: str, *, first: bool, last: bool) -> Iterator[str]:
    """Blanks and line ends. A long run would push the text after it out of sight."""
    lines = run.split("\n")
    if len(lines) == 1:
        yield _line(run, LONGEST_INDENT if first and not last else LONGEST_RUN)
        return
    yield _line(lines[0], LONGEST_RUN)
    yield "\n"
    inner = lines[1:-1]
    if len(inner) > MOST_EMPTY_LINES:
        yield f"· {len(inner)} empty lines ·\n"
    else:
        for line in inner:
            yield _line(line, LONGEST_RUN) + "\n"
    yield _line(lines[-1], LONGEST_RUN if last else LONGEST_INDENT)


def _line(blanks: str, most: int) -> str:
    return f"· {len(blanks)} blanks ·" if len(blanks) > most else blanks


def _hidden_characters(text: str, start: int, end: int) -> Iterator[str]:
    """Characters that are not seen, each as its code point."""
    at = start
    while at < end:
        character = text[at]
        if _in_place(character, text[at - 1 : at] if at else "", text[at + 1 : at + 2]):
            yield character
            at += 1
            continue
        upto = at + 1
        while upto < end and text[upto] == character:
            upto += 1
        count, name = upto - at, f"U+{ord(character):04X}"
        yield f"⟨{name} ×{count}⟩" if count > MOST_REPEATS else f"⟨{name}⟩" * count
        at = upto


def _in_place(character: str, before: str, after: str) -> bool:
    """Whether a selector or joiner is in its usual place: in an emoji, or in a word of such a
    script.
    """
    match character:
        case "\ufe0e" | "\ufe0f":
            return bool(_PICTURE.match(before)) or (
                before in set("0123456789#*") and after == "\u20e3"
            )
        case "\u200d" if (_PICTURE.match(before) or before == "\ufe0f") and _PICTURE.match(after):
            return True
        case "\u200c" | "\u200d":
            return bool(_JOINED.match(before) and _JOINED.match(after))
        case _:
            return False
