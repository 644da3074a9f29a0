"""The settings that a program's CLI gets: the program's own, and what the hub needs.

Owns how both are put together: the CLI's inbox for messages of other sessions is refused, and hooks
are called whatever the settings of a repository or a user say. It reads the program's file of
settings. Where settings are on the command line is `arguments`' business.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from quarterdeck.claude.launch import (
    INBOX,
    LONGEST_ARGUMENT,
    REFUSE,
    ArgumentFiles,
    Launch,
    read_settings,
    with_hooks_called,
    with_inbox_refused,
)
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.program.arguments import Given


class _Permissions(Value):
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class _Sandbox(Value):
    filesystem: dict[str, object] = msgspec.field(default_factory=dict)


class _WithPaths(Value):
    """The settings that name paths."""

    permissions: _Permissions = _Permissions()
    sandbox: _Sandbox = _Sandbox()


def guarded_settings(given: Given, directory: Path, files: ArgumentFiles) -> str:
    """The settings for the CLI, as text or as the path of one of `files`.

    Those of a file stay in a file, since others can read arguments. Raises `UsageError` if the
    program's settings cannot be read, or contradict what the hub needs.
    """
    text = given.settings if (given.settings or "").strip() else None
    if given.managed_settings:
        # These take precedence over the ones that we change, so they are only looked at.
        _guarded(given.managed_settings, directory)
    is_file = text is not None and not text.lstrip().startswith("{")
    if text is not None and is_file:
        _check_paths(text, directory)
    guarded = _guarded(text, directory)
    if not is_file and len(guarded.encode("utf-8", "surrogateescape")) <= LONGEST_ARGUMENT:
        return guarded
    return files.write("settings", guarded)


def _guarded(text: str | None, directory: Path) -> str:
    settings = read_settings(text, directory)
    if INBOX in settings and bytes(settings[INBOX]).strip() != bytes(REFUSE):
        raise UsageError(
            f"settings: {INBOX}: through the hub, messages of other sessions are refused; remove it"
        )
    launch = with_inbox_refused(Launch(settings=text), None, directory)
    guarded = with_hooks_called(launch, directory).settings
    assert guarded is not None
    return os.fspath(guarded)


def _check_paths(name: str, directory: Path) -> None:
    """Raise `UsageError` for paths that begin at the folder of the file: ours is elsewhere."""
    text = msgspec.json.encode(read_settings(name, directory))
    try:
        found = msgspec.json.decode(text, type=_WithPaths)
    except ValueError as error:
        raise UsageError(f"settings: {error}") from error
    rules = found.permissions
    moved = [
        rule
        for rule in (*rules.allow, *rules.ask, *rules.deny)
        if "(/" in rule and "(//" not in rule
    ]
    for paths in found.sandbox.filesystem.values():
        if isinstance(paths, list):
            moved += [str(path) for path in paths if not str(path).startswith(("/", "~"))]
    if moved:
        raise UsageError(
            f"settings: {moved[0]} begins at the folder of {name}, and the CLI gets a copy"
            " elsewhere; write the whole path (with // in front in a permission rule)"
        )
