"""The change that a tool call makes to a file, as a unified diff.

Two sources: the input of a call that has not run yet (`of_call`), and the patch that the CLI
reports afterwards (`of_result`), which has the line numbers. Both return None if no file is
changed. It reads no file.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable

import msgspec
from msgspec import Raw, Struct, field

from quarterdeck.cli.terminal.text import plain
from quarterdeck.domain.marks import mark_invisible

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

LARGEST = 400_000
"""The most characters of two texts that are compared: the comparison is quadratic."""
LONGEST = 4000
"""The most lines that are compared."""


class Diff(Struct, frozen=True):
    """A change of one file. Lines begin with a blank, `+`, `-` or `@`, and are safe to print."""

    path: str
    lines: tuple[str, ...]
    added: int
    removed: int
    note: str = ""


class _Edit(Struct):
    old_string: str = ""
    new_string: str = ""


class _Call(Struct):
    """The input of Edit, MultiEdit and Write; missing members are empty."""

    file_path: str = ""
    old_string: str | None = None
    new_string: str | None = None
    edits: tuple[_Edit, ...] = ()
    content: str | None = None


class _Hunk(Struct, rename="camel"):
    old_start: int = 0
    old_lines: int = 0
    new_start: int = 0
    new_lines: int = 0
    lines: tuple[str, ...] = ()


class _Outcome(Struct, rename="camel"):
    """The result of an edit, as the CLI reports it."""

    file_path: str = ""
    type: str = ""
    content: str | None = None
    structured_patch: tuple[_Hunk, ...] = field(default=())


_call = msgspec.json.Decoder(_Call).decode
_outcome = msgspec.json.Decoder(_Outcome).decode

EDITORS = frozenset({"Edit", "MultiEdit", "Write"})


def of_call(tool_name: str, tool_input: Raw, *, careful: bool = False) -> Diff | None:
    """The change that a call would make, from its input; None if it is no edit. Never raises.

    `careful` is for people who decide: invisible characters are marked.
    """
    show = _careful if careful else _plain
    if tool_name not in EDITORS:
        return None
    try:
        call = _call(tool_input)
    except _UNREADABLE:
        return None
    match tool_name:
        case "Write" if call.content is not None:
            return _make_diff(call.file_path, _all_new(call.content), "the whole file", show)
        case "Edit" if call.old_string is not None and call.new_string is not None:
            return _compare(call.file_path, ((call.old_string, call.new_string),), show)
        case "MultiEdit" if call.edits:
            pairs = tuple((edit.old_string, edit.new_string) for edit in call.edits)
            return _compare(call.file_path, pairs, show)
        case _:
            return None


def of_result(tool_use_result: Raw) -> Diff | None:
    """The change that the CLI reports; None if it reports none. Never raises."""
    if not tool_use_result or b'"structuredPatch"' not in bytes(tool_use_result):
        return None
    try:
        outcome = _outcome(tool_use_result)
    except _UNREADABLE:
        return None
    if outcome.structured_patch:
        lines: list[str] = []
        for hunk in outcome.structured_patch:
            lines.append(
                f"@@ -{hunk.old_start},{hunk.old_lines} +{hunk.new_start},{hunk.new_lines} @@"
            )
            lines += hunk.lines
        return _make_diff(outcome.file_path, lines)
    if outcome.type == "create" and outcome.content is not None:
        return _make_diff(outcome.file_path, _all_new(outcome.content), "new file")
    return None


def _plain(text: str) -> str:
    return plain(text.removesuffix("\r")).replace("\n", "␤")


def _careful(text: str) -> str:
    # The sign is not part of the line, which may be indented.
    return text[:1] + mark_invisible(text[1:]).replace("\n", "␤")


def _lines(text: str) -> list[str]:
    """The lines of a text, separated by newlines only: other separators are characters."""
    return text.removesuffix("\n").split("\n") if text else []


def _all_new(content: str) -> list[str]:
    return [f"+{line}" for line in _lines(content)]


def _compare(path: str, pairs: tuple[tuple[str, str], ...], show: Callable[[str], str]) -> Diff:
    size = sum(len(old) + len(new) for old, new in pairs)
    count = sum(old.count("\n") + new.count("\n") for old, new in pairs)
    if size > LARGEST or count > LONGEST:
        return Diff(plain(path), (), 0, 0, f"{size:,} characters: too large to compare here")
    lines: list[str] = []
    for old, new in pairs:
        compared = difflib.unified_diff(_lines(old), _lines(new), lineterm="", n=2)
        # Without the two lines of file names; line numbers of a snippet mean nothing.
        hunks = [line for number, line in enumerate(compared) if number > 1]
        lines += ["@@" if line.startswith("@@") else line for line in hunks]
    if lines and lines[0] == "@@":
        del lines[0]
    return _make_diff(path, lines, show=show)


def _make_diff(
    path: str, lines: list[str], note: str = "", show: Callable[[str], str] = _plain
) -> Diff:
    safe = tuple(show(line) for line in lines)
    return Diff(
        mark_invisible(path) if show is _careful else plain(path),
        safe,
        sum(line.startswith("+") for line in safe),
        sum(line.startswith("-") for line in safe),
        note,
    )
