"""Permission modes, rules, and the changes to them that travel in both directions.

A CLI suggests changes with a permission request; we send changes with an answer. Below: `base`.
Which change is safe for which version is the business of `versions`.

Written by tools/write_wire.py from tools/wire/permissions.toml; do not edit.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from quarterdeck.wire.base import OpenEnum, OpenUnion, Part, UnknownPart
from quarterdeck.wire.values import PermissionRule


class PermissionMode(OpenEnum):
    """What a session may do without asking."""

    DEFAULT = "default"
    ACCEPT_EDITS = "acceptEdits"
    PLAN = "plan"
    # Despite its name: calls that no rule allows are denied without a question.
    DONT_ASK = "dontAsk"
    BYPASS_PERMISSIONS = "bypassPermissions"
    AUTO = "auto"
    # Only 2.1.37 had it.
    DELEGATE = "delegate"


ModeName: TypeAlias = Literal[
    "default", "acceptEdits", "plan", "dontAsk", "bypassPermissions", "auto"
]
"""The modes that are documented, for a type checker. A CLI may know others."""


class PermissionBehavior(OpenEnum):
    """The decision of a rule on a matching call."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


class Destination(OpenEnum):
    """Where a change is kept. `session` and `cliArg` live in memory only."""

    USER_SETTINGS = "userSettings"
    PROJECT_SETTINGS = "projectSettings"
    LOCAL_SETTINGS = "localSettings"
    SESSION = "session"
    CLI_ARG = "cliArg"


class AddRules(Part, tag="addRules"):
    """Add rules to those of the destination."""

    rules: tuple[PermissionRule, ...]
    behavior: PermissionBehavior
    destination: Destination


class ReplaceRules(Part, tag="replaceRules"):
    """Replace all rules of the destination for this behaviour."""

    rules: tuple[PermissionRule, ...]
    behavior: PermissionBehavior
    destination: Destination


class RemoveRules(Part, tag="removeRules"):
    """Take rules away."""

    rules: tuple[PermissionRule, ...]
    behavior: PermissionBehavior
    destination: Destination


class SetMode(Part, tag="setMode"):
    """Change the session's mode."""

    mode: PermissionMode
    destination: Destination


class AddDirectories(Part, tag="addDirectories"):
    """Let the session work in more directories."""

    directories: tuple[str, ...]
    destination: Destination


class RemoveDirectories(Part, tag="removeDirectories"):
    """Take directories away."""

    directories: tuple[str, ...]
    destination: Destination


PermissionUpdate = (
    AddRules | ReplaceRules | RemoveRules | SetMode | AddDirectories | RemoveDirectories
)

Suggestion = PermissionUpdate | UnknownPart
"""A change as a CLI may suggest it: of a kind that we know, or not."""

updates: OpenUnion[PermissionUpdate] = OpenUnion(PermissionUpdate)

suggestions = updates.decode_each
"""Decodes the suggestions of a CLI, each separately. Never raises."""
