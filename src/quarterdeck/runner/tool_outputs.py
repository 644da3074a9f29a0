"""Outputs of tools that the CLI stored in files, because they were too long for the model.

Owns which files are read: regular ones in the folder of the results of one conversation, by their
plain names, and a part of them at a time. The hub names the conversation and the file as the CLI
did; it has no say in the folder. A link is not followed. The runner's requests are above;
`transcripts` knows where the CLI keeps its files.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from quarterdeck.domain.errors import Conflict
from quarterdeck.protocol.machine_requests import SeeToolOutput, ToolOutput
from quarterdeck.transcripts.layout import config_dir_of, is_session_id, session_folders
from quarterdeck.worktrees.files import open_unlinked

PART = 128 * 1024
"""Bytes of an answer."""
RESULTS = "tool-results"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")


def see_tool_output(wanted: SeeToolOutput) -> ToolOutput:
    """Read a part. Blocks. Raises `Conflict`."""
    if not is_session_id(wanted.cli_session) or _NAME.fullmatch(wanted.name) is None:
        raise Conflict("bad_path", "this is no stored output of a tool")
    config = wanted.config or config_dir_of(os.environ)
    # The projects folder may be behind a link of the machine's owner; nothing below it is.
    for folder, _ in session_folders(wanted.directory, include_worktrees=False, config_dir=config):
        place = Path(os.path.realpath(folder.parent)) / folder.name
        target = place / wanted.cli_session / RESULTS / wanted.name
        found = _read(target, max(0, wanted.offset))
        if found is not None:
            return found
    raise Conflict("no_such_file", "the stored output is gone: the CLI deletes old ones")


def _read(target: Path, offset: int) -> ToolOutput | None:
    # Without blocking: a pipe with nobody at its other end would wait for ever.
    try:
        descriptor = open_unlinked(target, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        file.seek(offset)
        data = file.read(PART)
    end = offset + len(data)
    more = end < found.st_size
    if more:
        data = _whole_letters(data)
        end = offset + len(data)
    return ToolOutput(
        text=data.decode(errors="replace"), size=found.st_size, next=end if more else None
    )


def _whole_letters(data: bytes) -> bytes:
    """Without the bytes of a letter whose end is not there."""
    for back in range(1, 4):
        byte = data[-back] if back <= len(data) else 0
        if byte & 0xC0 == 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if length > back else data
        if byte & 0xC0 != 0x80:
            break
    return data
