"""A session as Markdown.

Owns how entries look in it. Inputs and results of tools are in fences that no content can close.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

import msgspec
from msgspec import Raw

from quarterdeck.domain.marks import mark_characters
from quarterdeck.history.story import Answer, AnyEntry, Call, Notice, Outcome, Prompt, Thinking
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.wire.tools import one_line

MOST_BLANKS = 4_000_000
"""An input is indented if that needs no more blanks than this: deep nesting needs thousands."""

_BRACKETS = re.compile(rb"[\[\]{}]")
_FENCES = re.compile(r"`{3,}")
_MARKS = re.compile(r"([\\`*_\[\]<>#|])")


def head(view: SessionView) -> str:
    """The title, and properties of the whole session."""
    lines = [f"# {plain(view.name or view.session)}", ""]
    lines += [f"- {name}: {plain(value)}" for name, value in properties(view)]
    return mark_characters("\n".join(lines) + "\n")


def properties(view: SessionView) -> list[tuple[str, str]]:
    """Properties of the whole session, for people."""
    found = [
        ("Session", view.session),
        ("Directory", view.directory or view.spec.directory),
        ("Machine", view.machine or view.spec.machine or ""),
        ("Project", view.spec.project or ""),
        ("Model", view.spec.model or ""),
        ("CLI session", view.cli_session or ""),
        ("Created", moment(view.created)),
        ("Last event", moment(view.updated)),
        ("Turns", str(view.turns) if view.turns else ""),
        ("Cost", f"${view.cost_usd:.4f}" if view.cost_usd else ""),
    ]
    return [(name, value) for name, value in found if value]


def moment(at: int) -> str:
    """A time in UTC, the same for every reader."""
    try:
        return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, OSError, ValueError):
        return ""


def item(entry: AnyEntry) -> str:
    """One entry, with an empty line before it, and a mark for what would not be seen."""
    return mark_characters(_item(entry))


def _item(entry: AnyEntry) -> str:
    match entry:
        case Prompt(text=text, by=by, others=others):
            who = f" of {plain(by)}" if by else ""
            more = f"\n\n_(and {others} without text)_" if others else ""
            quoted = "\n".join(f"> {line}".rstrip() for line in text.splitlines())
            return f"\n## Prompt{who}, {moment(entry.at)}\n\n{quoted}{more}\n"
        case Answer(text=text):
            label = "_A subagent:_\n\n" if entry.inner else ""
            return f"\n{label}{text}\n"
        case Thinking(text=text):
            return f"\n_Thinking:_\n\n{code_block(text)}\n"
        case Call(tool=tool, title=title, input=input_):
            return f"\n**{plain(tool)}** {plain(title)}\n\n{code_block(readable(input_), 'json')}\n"
        case Outcome(tool=tool, title=title, text=text, failed=failed):
            what = "failed" if failed else "returned"
            return f"\n_{plain(tool or 'a tool')} {what}_ {plain(title)}\n\n{code_block(text)}\n"
        case Notice(text=text):
            return f"\n_{plain(capitalize(text))}_\n"


def foot(_: SessionView) -> str:
    """Nothing."""
    return ""


def code_block(text: str, language: str = "") -> str:
    """A code block that no content can close."""
    longest = max((len(found) for found in _FENCES.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def plain(text: str) -> str:
    """One line of text with all markup escaped."""
    return _MARKS.sub(r"\\\1", one_line(text, 500))


def capitalize(text: str) -> str:
    """The text of a notice with a capital first letter."""
    return text[:1].upper() + text[1:]


def readable(input_: Raw) -> str:
    """A tool's input as indented JSON, unless that would be too long."""
    data = bytes(input_)
    try:
        if _count_blanks(data) <= MOST_BLANKS:
            return msgspec.json.format(data, indent=2).decode("utf-8", "replace")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    return data.decode("utf-8", "replace")


def _count_blanks(data: bytes) -> int:
    """The most blanks that indented JSON could have in front of its lines."""
    depth = deepest = lines = 0
    for bracket in _BRACKETS.finditer(data):
        depth += 1 if bracket.group() in b"[{" else -1
        deepest = max(deepest, depth)
        lines += 1
        if lines > MOST_BLANKS:
            break
    return (lines + data.count(b",")) * 2 * deepest
