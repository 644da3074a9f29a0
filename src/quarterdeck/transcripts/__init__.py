"""The sessions that the CLI keeps on disk: find, read, rename, copy and delete them.

No CLI needs to run. All functions block on the disk: from async code call them in a thread, ``await
anyio.to_thread.run_sync(list_sessions, directory)``. Reading returns None or an empty list for a
missing session. Changing a missing session, and an id that is not a UUID, is a `UsageError`.
Changes pass an `OSError` of the disk on; reading never raises one.
"""

from __future__ import annotations

from quarterdeck.transcripts.catalogue import list_sessions, session_info
from quarterdeck.transcripts.edit import delete_session, rename_session, tag_session
from quarterdeck.transcripts.fork import fork_session
from quarterdeck.transcripts.history import list_subagents, session_messages, subagent_messages
from quarterdeck.transcripts.layout import project_folder_name, project_path, projects_dir
from quarterdeck.transcripts.model import SessionInfo, SessionMessage, SubagentInfo
from quarterdeck.transcripts.stream_lines import TranscriptLine, to_stream_line, transcript_lines

__all__ = [
    "SessionInfo",
    "SessionMessage",
    "SubagentInfo",
    "TranscriptLine",
    "delete_session",
    "fork_session",
    "list_sessions",
    "list_subagents",
    "project_folder_name",
    "project_path",
    "projects_dir",
    "rename_session",
    "session_info",
    "session_messages",
    "subagent_messages",
    "tag_session",
    "to_stream_line",
    "transcript_lines",
]
