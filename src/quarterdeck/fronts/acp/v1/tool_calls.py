"""Tool calls of the CLI as those of ACP: kind, title, locations, diffs. Pure."""

from __future__ import annotations

import msgspec
from acp import schema
from msgspec import Raw

from quarterdeck.domain.structs import DECODE_ERRORS

_KINDS: dict[str, schema.ToolKind] = {
    "Read": "read",
    "NotebookRead": "read",
    "Edit": "edit",
    "MultiEdit": "edit",
    "Write": "edit",
    "NotebookEdit": "edit",
    "Bash": "execute",
    "BashOutput": "execute",
    "KillShell": "execute",
    "Glob": "search",
    "Grep": "search",
    "LS": "search",
    "WebFetch": "fetch",
    "WebSearch": "fetch",
    "Task": "think",
    "Agent": "think",
    "TodoWrite": "think",
    "EnterPlanMode": "switch_mode",
    "ExitPlanMode": "switch_mode",
}
_PATHS = ("file_path", "path", "notebook_path")

ToolContent = (
    schema.ContentToolCallContent | schema.FileEditToolCallContent | schema.TerminalToolCallContent
)
Members = dict[str, object]


def kind_of(tool: str) -> schema.ToolKind:
    """What sort of thing a tool does."""
    return _KINDS.get(tool, "other")


def members_of(input_: Raw) -> Members:
    """The input as plain values; empty if it is no JSON object. Never raises."""
    try:
        return msgspec.json.decode(input_, type=dict[str, object]) if input_ else {}
    except DECODE_ERRORS:
        return {}


def text_content(text: str) -> schema.ContentToolCallContent:
    """A text, as the content of a tool call."""
    block = schema.TextContentBlock(type="text", text=text)
    return schema.ContentToolCallContent(type="content", content=block)


def locations_of(given: Members) -> list[schema.ToolCallLocation]:
    """The file that a call is about."""
    for name in _PATHS:
        path = given.get(name)
        if isinstance(path, str) and path:
            line = given.get("offset")
            at = (
                line if isinstance(line, int) and not isinstance(line, bool) and line >= 0 else None
            )
            return [schema.ToolCallLocation(path=path, line=at)]
    return []


def diffs_of(tool: str, given: Members) -> list[ToolContent]:
    """The changes of files that a call makes."""
    path = next((given[name] for name in _PATHS if isinstance(given.get(name), str)), None)
    if kind_of(tool) != "edit" or not isinstance(path, str):
        return []
    edits = given.get("edits")
    rows = edits if tool == "MultiEdit" and isinstance(edits, list) else [given]
    found: list[ToolContent] = []
    for row in rows:
        if not isinstance(row, dict):
            continue
        new = next((row[name] for name in _NEW if isinstance(row.get(name), str)), None)
        old = row.get("old_string")
        if isinstance(new, str):
            found.append(
                schema.FileEditToolCallContent(
                    type="diff",
                    path=path,
                    old_text=old if isinstance(old, str) else None,
                    new_text=new,
                )
            )
    return found


_NEW = ("new_string", "content", "new_source")
