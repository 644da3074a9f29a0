"""Changes of permissions in plain words, so that a person knows what «always» means.

Pure: from the values of `wire.permissions` to one safe line each.
"""

from __future__ import annotations

from collections.abc import Iterable

from quarterdeck.wire.permissions import (
    AddDirectories,
    AddRules,
    Destination,
    PermissionBehavior,
    PermissionMode,
    RemoveDirectories,
    RemoveRules,
    ReplaceRules,
    SetMode,
    Suggestion,
)
from quarterdeck.wire.tools import one_line

_PLACES = {
    Destination.SESSION: "for this session",
    Destination.CLI_ARG: "for this session",
    Destination.LOCAL_SETTINGS: "in this project, for you (.claude/settings.local.json)",
    Destination.PROJECT_SETTINGS: "in this project, for everybody (.claude/settings.json)",
    Destination.USER_SETTINGS: "everywhere, for you (~/.claude/settings.json)",
}
_BEHAVIOURS = {
    PermissionBehavior.ALLOW: "allow",
    PermissionBehavior.DENY: "deny",
    PermissionBehavior.ASK: "always ask about",
}


def in_words(changes: Iterable[Suggestion]) -> list[str]:
    """The changes that the CLI suggests for «always», one line each."""
    return [_in_words(change) for change in changes]


def _in_words(change: Suggestion) -> str:
    match change:
        case AddRules() | ReplaceRules():
            verb = _BEHAVIOURS.get(change.behavior, one_line(change.behavior.value, 40))
            rules = ", ".join(one_line(str(rule), 300) for rule in change.rules)
            only = " and nothing else" if isinstance(change, ReplaceRules) else ""
            return f"{verb} {rules}{only} {_place(change.destination)}"
        case RemoveRules():
            rules = ", ".join(one_line(str(rule), 300) for rule in change.rules)
            return f"remove the rule {rules} {_place(change.destination)}"
        case SetMode(mode=PermissionMode.ACCEPT_EDITS):
            return f"accept all file edits {_place(change.destination)}"
        case SetMode():
            return (
                f"switch to the mode {one_line(change.mode.value, 40)} {_place(change.destination)}"
            )
        case AddDirectories():
            folders = ", ".join(one_line(folder, 300) for folder in change.directories)
            return f"let it work in {folders} {_place(change.destination)}"
        case RemoveDirectories():
            folders = ", ".join(one_line(folder, 300) for folder in change.directories)
            return f"no longer let it work in {folders} {_place(change.destination)}"
        case unknown:
            return f"a change of a kind unknown here: {one_line(unknown.kind, 80) or '?'}"


def _place(destination: Destination) -> str:
    return _PLACES.get(destination, f"in {one_line(destination.value, 60)}")
