"""The values that this package returns.

Message bodies stay undecoded; the types of `wire` decode them.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from quarterdeck.domain.errors import UsageError


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A session, as described by its file's size, age, first and last bytes.

    `summary` is the text to show: the title, else the last prompt, else a summary by the CLI, else
    the first prompt. `custom_title` is the title that a person gave, else the one by the model.
    Times are milliseconds since 1970.
    """

    session_id: str
    summary: str
    last_modified: int
    file_size: int
    path: str
    custom_title: str | None = None
    first_prompt: str | None = None
    git_branch: str | None = None
    cwd: str | None = None
    tag: str | None = None
    created_at: int | None = None


class SessionMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a conversation.

    `message` is the API's message, undecoded; it is always one complete JSON value. The two parents
    are set only for messages of a subagent: the call that started it, and the subagent that made
    that call, if it was not the session itself.
    """

    type: Literal["user", "assistant"]
    uuid: str
    session_id: str
    message: msgspec.Raw
    timestamp: str | None = None
    is_compact_summary: bool = False
    parent_tool_use_id: str | None = None
    parent_agent_id: str | None = None


class SubagentInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A subagent of a session; all but id and path come from a side file, if there is one."""

    agent_id: str
    path: str
    agent_type: str | None = None
    description: str | None = None
    parent_tool_use_id: str | None = None
    parent_agent_id: str | None = None


def check_page(limit: int | None, offset: int) -> None:
    """Refuse pages that cannot be; `limit` None is everything, 0 is nothing."""
    if offset < 0:
        raise UsageError(f"offset must not be negative: {offset}")
    if limit is not None and limit < 0:
        raise UsageError(f"limit must not be negative: {limit}")
