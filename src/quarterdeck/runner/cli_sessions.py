"""The sessions that the CLI has on this machine's disk, for a person who wants to continue one.

Owns how they are described within limits; `transcripts` knows the files. The runner's requests are
above. Only what a listing needs is read: the beginning and the end of each file.
"""

from __future__ import annotations

import os

from quarterdeck.protocol.machine_requests import (
    CliSessionOnDisk,
    CliSessionsOnDisk,
    SeeCliSessions,
)
from quarterdeck.transcripts import SessionInfo, list_sessions
from quarterdeck.transcripts.layout import config_dir_of
from quarterdeck.wire.tools import one_line

MOST = 500
LONGEST_TITLE = 200
LONGEST_PATH = 4096


def see_cli_sessions(wanted: SeeCliSessions) -> CliSessionsOnDisk:
    """List them. Blocks."""
    limit = max(1, min(wanted.limit, MOST))
    found = list_sessions(
        wanted.directory,
        limit=limit + 1,
        include_worktrees=wanted.worktrees,
        config_dir=wanted.config or config_dir_of(os.environ),
    )
    return CliSessionsOnDisk(sessions=tuple(map(_describe, found[:limit])), more=len(found) > limit)


def _describe(info: SessionInfo) -> CliSessionOnDisk:
    directory = info.cwd or ""
    return CliSessionOnDisk(
        cli_session=info.session_id,
        title=one_line(info.summary, LONGEST_TITLE),
        directory=directory if len(directory) <= LONGEST_PATH else "",
        branch=one_line(info.git_branch or "", LONGEST_TITLE),
        updated=info.last_modified,
        bytes=info.file_size,
    )
