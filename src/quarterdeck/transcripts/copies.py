"""Have a session where the CLI looks for it: with the project of another folder.

Owns `bring_session`. The CLI resumes only sessions of the folder in which it is started. The file
is copied as it is, under a name that nobody reads, and then moved into place.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import uuid4

from quarterdeck.transcripts.layout import (
    AnyPath,
    check_id,
    project_folder_name,
    project_path,
    projects_dir,
    require_session,
)


def bring_session(session_id: str, directory: AnyPath, config_dir: AnyPath | None = None) -> Path:
    """The session's file with the project of `directory`, copied there if it is with another one.

    Raises `UsageError` if there is no such session. Blocks on the disk.
    """
    projects = projects_dir(config_dir)
    there = (
        projects / project_folder_name(project_path(directory)) / f"{check_id(session_id)}.jsonl"
    )
    if there.is_file():
        return there
    found = require_session(session_id, None, config_dir)
    there.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = there.with_name(f".{uuid4()}.part")
    try:
        shutil.copyfile(found, part, follow_symlinks=False)
        part.chmod(0o600)
        part.replace(there)
    finally:
        part.unlink(missing_ok=True)
    return there
