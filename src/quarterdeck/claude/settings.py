"""The settings that a CLI is started with: those of the session, and one that we add.

From 2.1.224 on every CLI listens on a Unix socket, where any process of the same user can give it a
prompt ("cross-session messages"). Such a prompt comes past the hub: nobody sent it, no policy saw
it. So a CLI is started with that inbox closed, unless the session's own settings say what to do
with it. A repository cannot open it again: the CLI lets a project's settings only tighten this one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

import msgspec

from quarterdeck.claude.launch import Launch, version_numbers
from quarterdeck.domain.errors import UsageError

INBOX = "crossSessionInbound"
REFUSE = msgspec.Raw(b'"refuse"')
HAS_INBOX = (2, 1, 224)

AnyLaunch = TypeVar("AnyLaunch", bound=Launch)


def with_inbox_refused(launch: AnyLaunch, version: str | None, directory: Path) -> AnyLaunch:
    """The same launch, with the CLI's cross-session inbox refused where the version has one.

    A version that is not known may have one. Settings in a file are read, relative to the folder
    that the CLI starts in, and passed as text. Raises `UsageError` if they cannot be read.
    """
    if version is not None and version_numbers(version) < HAS_INBOX:
        return launch
    settings = read_settings(launch.settings, directory)
    if INBOX in settings:
        return launch
    text = msgspec.json.encode({**settings, INBOX: REFUSE}).decode()
    return msgspec.structs.replace(launch, settings=text)


def read_settings(
    settings: str | os.PathLike[str] | None, directory: Path
) -> dict[str, msgspec.Raw]:
    """Settings as the CLI takes them: JSON, or the path of a file. Raises `UsageError`."""
    if settings is None:
        return {}
    text = os.fspath(settings)
    try:
        if not text.lstrip().startswith("{"):
            text = (directory / text).read_text(encoding="utf-8-sig")
        return msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (OSError, ValueError) as error:
        raise UsageError(f"settings: cannot read them: {error}") from error
