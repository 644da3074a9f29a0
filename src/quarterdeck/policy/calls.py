"""Short forms of calls, as people write them: `Bash` and `git push`, or `Edit(./src/app.py)`.

For examples in policy files and for queries by people. Real calls come with their input.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import UsageError

ARGUMENT = {
    "Bash": "command",
    "Read": "file_path",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "Write": "file_path",
    "NotebookEdit": "notebook_path",
    "NotebookRead": "notebook_path",
    "Glob": "path",
    "Grep": "path",
    "LS": "path",
    "WebFetch": "url",
    "WebSearch": "query",
    "Agent": "subagent_type",
    "Task": "subagent_type",
    "Skill": "skill",
}
"""For each tool, the member of its input that the short form sets."""

_SHORT = re.compile(r"([A-Z][A-Za-z]*|mcp__[\w-]+)(?:\((.*)\))?", re.DOTALL)


def input_of(tool: str, argument: str) -> Raw:
    """The input of a call: a JSON object, or the value of the tool's one argument.

    Raises `UsageError` for a tool whose argument is not known.
    """
    text = argument.strip()
    if text.startswith("{"):
        try:
            msgspec.json.decode(text, type=dict[str, object])
        except (msgspec.DecodeError, RecursionError) as error:
            raise UsageError(f"the input is not a JSON object: {error}") from error
        return Raw(text.encode())
    if not argument:
        return Raw(b"{}")
    member = ARGUMENT.get(tool)
    if member is None:
        raise UsageError(f"give the input of {tool} as a JSON object")
    if tool == "WebFetch" and "://" not in argument:
        argument = f"https://{argument}/"
    return Raw(msgspec.json.encode({member: argument}))


def short_call(text: str) -> tuple[str, Raw]:
    """Parse the short form of a call: `Tool(argument)`, or else a command for Bash. Raises
    `UsageError`.
    """
    found = _SHORT.fullmatch(text.strip())
    if found is None or (found[2] is None and found[1] not in ARGUMENT and "__" not in found[1]):
        return "Bash", input_of("Bash", text)
    return found[1], input_of(found[1], found[2] or "")
