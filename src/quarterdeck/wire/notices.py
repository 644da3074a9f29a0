"""The `system` messages for people.

Owns notes, warnings, the output of commands and of hooks from the settings, and refusals and
losses. `system` has those about the CLI's own state.

Written by tools/write_wire.py from tools/wire/notices.toml; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from quarterdeck.domain.structs import name_set
from quarterdeck.wire.base import Number, Part
from quarterdeck.wire.envelope import System


class LocalCommandOutput(System, tag="local_command_output"):
    """The output of a slash command. Newer versions send an `Assistant` instead."""

    content: str = ""


class HookStarted(System, tag="hook_started"):
    """A hook from the settings runs. Our own hooks come as control requests instead."""

    hook_id: str = ""
    hook_name: str = ""
    hook_event: str = ""


class HookProgress(System, tag="hook_progress"):
    """A hook from the settings has printed something."""

    hook_id: str = ""
    hook_name: str = ""
    hook_event: str = ""
    stdout: str = ""
    stderr: str = ""
    output: str = ""


class HookResponse(System, tag="hook_response"):
    """A hook from the settings has ended. `outcome` is `success`, `error` or `cancelled`."""

    hook_id: str = ""
    hook_name: str = ""
    hook_event: str = ""
    output: str = ""
    stdout: str = ""
    stderr: str = ""
    exit_code: Number | None = None
    outcome: str = ""


class PluginInstall(System, tag="plugin_install"):
    """Plugins are being installed: `started`, then `installed` or `failed` each, `completed`."""

    status: str = ""
    name: str | None = None
    error: str | None = None


class Notification(System, tag="notification"):
    """A note for a person. One with the same `key` replaces the one before."""

    key: str = ""
    text: str = ""
    priority: str = ""
    color: str | None = None
    timeout_ms: Number | None = None


class PersistedFile(Part):
    """A file that was stored."""

    filename: str = ""
    file_id: str = ""


class UnpersistedFile(Part):
    """A file that could not be stored."""

    filename: str = ""
    error: str = ""


class FilesPersisted(System, tag="files_persisted"):
    """Files were stored by a host in Anthropic's cloud."""

    files: tuple[PersistedFile, ...] = ()
    failed: tuple[UnpersistedFile, ...] = ()
    processed_at: str | None = None


class Memory(Part):
    """Something remembered. `scope` is `personal`, `team` or `organization`."""

    path: str = ""
    scope: str = ""
    content: str | None = None


class MemoryRecall(System, tag="memory_recall"):
    """The CLI has looked up its memories."""

    mode: str = ""
    memories: tuple[Memory, ...] = ()


class ElicitationComplete(System, tag="elicitation_complete"):
    """The information that an MCP server asked for was given on a web page."""

    mcp_server_name: str = ""
    elicitation_id: str = ""


class PermissionDenied(System, tag="permission_denied"):
    """A tool call was refused without a question, by a rule, the mode, or a classifier.

    A hint only: `Result.permission_denials` is the full account.
    """

    tool_name: str = ""
    tool_use_id: str = ""
    agent_id: str | None = None
    decision_reason_type: str | None = None
    decision_reason: str | None = None
    decision_reason_code: str | None = None
    message: str = ""


class MirrorKey(Part, rename="camel"):
    """Which session file a mirror is of."""

    project_key: str = ""
    session_id: str = ""
    subpath: str | None = None


class MirrorError(System, tag="mirror_error"):
    """A session's file could not be mirrored. Made by SDKs, never by the CLI."""

    error: str = ""
    key: MirrorKey | None = None


class PromptSubmitOutcome(Part):
    """The effect of a hook on a prompt."""

    prompt_kept: bool = False
    kind: str | None = None
    no_verdict_kind: str | None = None
    reason: str | None = None


class Informational(System, tag="informational"):
    """Something a person should read: a hook's feedback, a warning, a banner.

    `level` is `info`, `notice`, `suggestion` or `warning`.
    """

    untyped: ClassVar[frozenset[str]] = name_set("model_restriction hook_no_verdict")

    content: str = ""
    level: str = ""
    tool_use_id: str | None = None
    prevent_continuation: bool = False
    tag: str | None = None
    prompt_submit_outcome: PromptSubmitOutcome | None = None
    is_meta: bool = field(name="isMeta", default=False)
    timestamp: str | None = None


class SessionWritesLost(System, tag="session_writes_lost"):
    """The disk was full at the end: the session's file, or the settings, are not complete."""

    error_code: str = ""
    lost: tuple[str, ...] = ()
    transcript_session_ids: tuple[str, ...] = ()
