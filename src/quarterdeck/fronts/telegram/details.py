"""A tool call as a person reads it before deciding: all of its input. Pure.

What matters most is the text: a command, a change of a file. Every member of the input that the
text does not show is listed beside it, and those that can make a call less safe are marked.
"""

from __future__ import annotations

import difflib
import re
from typing import Literal

import msgspec
from msgspec import Raw

from quarterdeck.domain.structs import DECODE_ERRORS, Value
from quarterdeck.protocol.events import AskOpened
from quarterdeck.wire.rawjson import members
from quarterdeck.wire.requests import CanUseTool, decode_request

LARGEST_DETAIL = 100_000
"""Characters of a command, diff or plan in a file. More would take long to mask and to read."""
COMPARED = 60
"""Lines that are compared with each other: comparing takes the square of their number, or more."""
CONTEXT = 2
"""Lines that stay, before and after a change."""

_SHOWN: dict[str, tuple[str, ...]] = {
    "Bash": ("command",),
    "Edit": ("file_path", "old_string", "new_string"),
    "MultiEdit": ("file_path", "edits"),
    "Write": ("file_path", "content"),
    "NotebookEdit": ("notebook_path", "new_source"),
}
"""The members of an input that the text shows, if they have the expected type."""

_WARNINGS = {
    "dangerouslyDisableSandbox": "runs outside the sandbox",
    "edit_mode": "replaces, inserts or deletes the cell",
    "replace_all": "replaces every occurrence",
}
_UNSAFE = re.compile(r"danger|sandbox|bypass|permission|unsafe|force|mode$", re.IGNORECASE)
_HARMLESS = (b"false", b"null", b'""')


class Detail(Value):
    """What a tool call would do, in full."""

    kind: Literal["command", "diff", "input"]
    text: str
    name: str
    """The name of a file with it."""
    language: str = ""
    members: tuple[str, ...] = ()
    """The members that the text does not show, a line each."""
    whole: bool = True
    """Whether nothing was cut off."""
    summary: str = ""
    """A line that has no contents of files."""


def input_of(opened: AskOpened) -> dict[str, Raw]:
    """The members of the tool's input."""
    request = decode_request(opened.request)
    return members(request.input) if isinstance(request, CanUseTool) else {}


def detail(opened: AskOpened) -> Detail:
    """What the call would do."""
    given = input_of(opened)
    match opened.tool:
        case "Bash" if text := _string(given.get("command")):
            return Detail(
                kind="command",
                text=text[:LARGEST_DETAIL],
                name="command.sh",
                language="bash",
                members=_others(opened.tool, given),
                whole=len(text) <= LARGEST_DETAIL,
            )
        case "Edit" | "MultiEdit" | "Write" | "NotebookEdit":
            return _change(opened.tool, given)
        case _:
            encoded = msgspec.json.encode(given)
            text = msgspec.json.format(encoded, indent=2).decode() if given else ""
            return Detail(
                kind="input",
                text=text[:LARGEST_DETAIL],
                name="input.json",
                language="json",
                whole=len(text) <= LARGEST_DETAIL,
            )


def _others(tool: str, given: dict[str, Raw]) -> tuple[str, ...]:
    """What the text does not show, as `name: value`, with a warning where it is due."""
    found = []
    for name, value in given.items():
        if name in _SHOWN[tool] and _is_whole(name, value):
            continue
        text = _string(value) or bytes(value).decode()
        warning = _WARNINGS.get(name) or ("may make it less safe" if _UNSAFE.search(name) else "")
        mark = f"⚠️ {warning}: " if warning and bytes(value) not in _HARMLESS else ""
        found.append(f"{mark}{name}: {text}")
    return tuple(found)


def _is_whole(name: str, value: Raw) -> bool:
    """Whether the text shows all of a member: one with an unexpected type is listed as it is."""
    if name != "edits":
        return bytes(value)[:1] == b'"'
    try:
        msgspec.json.decode(value, type=list[_Replacement])
    except DECODE_ERRORS:
        return False
    return True


class _Replacement(msgspec.Struct, forbid_unknown_fields=True):
    old_string: str
    new_string: str


def _change(tool: str, given: dict[str, Raw]) -> Detail:
    path = _string(given.get("notebook_path" if tool == "NotebookEdit" else "file_path"))
    pairs = [(_string(given.get("old_string")), _string(given.get("new_string")))]
    match tool:
        case "Write":
            pairs = [("", _string(given.get("content")))]
        case "NotebookEdit":
            pairs = [("", _string(given.get("new_source")))]
        case "MultiEdit":
            pairs = [
                (_string(members(edit).get("old_string")), _string(members(edit).get("new_string")))
                for edit in _list(given.get("edits"))
            ]
    size = sum(len(old) + len(new) for old, new in pairs)
    whole = size <= LARGEST_DETAIL
    lines = [line for old, new in pairs for line in _diff(old, new)] if whole else []
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    others = _others(tool, given)
    return Detail(
        kind="diff",
        text=f"{path}\n" + "\n".join(lines),
        name="change.diff",
        language="diff",
        members=others,
        whole=whole,
        summary=f"{path}: +{added} −{removed} lines" if whole else f"{path}: {size} characters",
    )


def _diff(old: str, new: str) -> list[str]:
    """What is removed and added, between lines that stay. Linear, unless few lines differ."""
    before, after = (text.split("\n") if text else [] for text in (old, new))
    least = min(len(before), len(after))
    head = 0
    while head < least and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < least - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    gone, come = before[head : len(before) - tail], after[head : len(after) - tail]
    same = before[len(before) - tail :]
    if len(gone) + len(come) <= COMPARED:
        changed = [line.rstrip("\n") for line in difflib.ndiff(gone, come) if line[0] != "?"]
        marked = [line[0] + line[2:] for line in changed]
    else:
        marked = [f"-{line}" for line in gone] + [f"+{line}" for line in come]
    return [
        *(f" {line}" for line in before[max(0, head - CONTEXT) : head]),
        *marked,
        *(f" {line}" for line in same[:CONTEXT]),
    ]


def _string(json: Raw | None) -> str:
    try:
        return msgspec.json.decode(json, type=str) if json else ""
    except DECODE_ERRORS:
        return ""


def _list(json: Raw | None) -> list[Raw]:
    try:
        return msgspec.json.decode(json, type=list[Raw]) if json else []
    except DECODE_ERRORS:
        return []
