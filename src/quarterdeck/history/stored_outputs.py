"""Which file the CLI named for a tool's output that was too long for the model. Pure.

Newer versions tell it beside the result, older ones only in the text that the model gets. A tool
can print such a text itself: so only the plain name is taken from it, and the conversation must be
the one that the CLI's own line names. The machine looks in the one folder where the CLI stores the
results of that conversation.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from quarterdeck.domain.structs import Value

_NAMED = re.compile(
    r"<persisted-output>\n?Output too large \([^)\n]{1,40}\)\. Full output saved to: ([^\n]+)\n"
)
_PLACE = re.compile(r".*[/\\]([0-9a-f-]{36})[/\\]tool-results[/\\]([^/\\]+)")


class StoredOutput(Value):
    """The conversation and the name of a file with output."""

    cli_session: str
    name: str


def find_stored_output(json: bytes, call: str) -> StoredOutput | None:
    """What an event, as JSON, says of the output of this call."""
    event: Any = msgspec.json.decode(json)
    line = event.get("line")
    content = _member(_member(line, "message"), "content")
    if not isinstance(content, list):
        return None
    for block in content:
        if _member(block, "type") == "tool_result" and _member(block, "tool_use_id") == call:
            given = _member(_member(line, "tool_use_result"), "persistedOutputPath")
            path = given if isinstance(given, str) else _path_in(_member(block, "content"))
            place = _PLACE.fullmatch(path)
            own = _member(line, "session_id") or _member(line, "sessionId")
            if place is None or place[1] != own:
                return None
            return StoredOutput(cli_session=place[1], name=place[2])
    return None


def _path_in(content: Any) -> str:
    if isinstance(content, list):
        content = "\n".join(str(_member(one, "text") or "") for one in content)
    named = _NAMED.match(content) if isinstance(content, str) else None
    return named[1] if named else ""


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
