"""The settings that a program's CLI gets: the program's own, and what the hub needs.

Owns how both are put together: the CLI's inbox for messages of other sessions is refused, and hooks
are called whatever the settings of a repository or a user say. It reads the program's file of
settings. Where settings are on the command line is `arguments`' business.
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Raw

from quarterdeck.claude.forced_settings import (
    ALL_OFF,
    INBOX,
    REFUSE,
    read_settings,
    with_hooks_called,
    with_inbox_refused,
)
from quarterdeck.claude.launch import ArgumentFiles, Launch
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.launch_options import LONGEST_ARGUMENT
from quarterdeck.program.arguments import Given


def guarded_settings(
    given: Given, directory: Path, files: ArgumentFiles, version: str | None = None
) -> str:
    """The settings for the CLI of a version, as text or as the path of one of `files`.

    Those of a file stay in a file, since others can read arguments. Raises `UsageError` if the
    program's settings cannot be read, or contradict what the hub needs.
    """
    text = given.settings if (given.settings or "").strip() else None
    if given.managed_settings:
        # These take precedence over the ones that we change, so they are only looked at.
        _check_hooks(given.managed_settings, directory)
        _guard(given.managed_settings, directory, version)
    is_file = text is not None and not text.lstrip().startswith("{")
    guarded = _guard(text, directory, version)
    if not is_file and len(guarded.encode("utf-8", "surrogateescape")) <= LONGEST_ARGUMENT:
        return guarded
    return files.write("settings", guarded)


def _check_hooks(managed: str, directory: Path) -> None:
    """Raise `UsageError` if managed settings switch all hooks off.

    2.1.120 obeys them if it is started by an SDK; 2.1.325 leaves our hooks (tried).
    """
    if bytes(read_settings(managed, directory).get(ALL_OFF, Raw(b"false"))).strip() != b"false":
        raise UsageError(
            f"managed settings: {ALL_OFF}: the CLI would call no hooks, and the hub's rules would"
            " not hold"
        )


def _guard(text: str | None, directory: Path, version: str | None) -> str:
    settings = read_settings(text, directory)
    if INBOX in settings and bytes(settings[INBOX]).strip() != bytes(REFUSE):
        raise UsageError(
            f"settings: {INBOX}: through the hub, messages of other sessions are refused; remove it"
        )
    launch = with_inbox_refused(Launch(settings=text), None, directory)
    guarded = with_hooks_called(launch, directory, version).settings
    assert guarded is not None
    return os.fspath(guarded)
