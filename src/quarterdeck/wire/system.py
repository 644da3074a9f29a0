"""The `system` messages, by subtype.

Owns the CLI's messages about itself: how it was started, its current state, refusals. Those about
tasks are in `tasks`, those for people in `notices`, the unpublished ones in `internal`. `SYSTEM`
lists all of them for `codec`.

Written by tools/write_wire.py from tools/wire/system.toml; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from quarterdeck.domain.structs import name_set
from quarterdeck.wire.base import Message, Number, OpenEnum, Part
from quarterdeck.wire.envelope import System
from quarterdeck.wire.info import SlashCommand
from quarterdeck.wire.internal import (
    BridgeState,
    CloudSessionDelta,
    CodeChangePublished,
    DevIntent,
    FeedbackDraftQueued,
    FileAttachmentsMissing,
    InheritedAsksSettled,
    InstructionSizeWarning,
    PeerMessageHold,
    PermissionCheckStatus,
    PerTurnEffortChanged,
    PostTurnSummary,
    SessionMetadata,
    SessionTitleChanged,
    TaskSummary,
    TurnHandoffAvailable,
    TurnPreempted,
    UiFocus,
    UiInvalidate,
    UiLog,
    UiNotify,
    UiNotifyCancel,
    UiPanes,
    UiPlaced,
    UiScroll,
    UiStatus,
    UiToast,
    VcsStateChanged,
)
from quarterdeck.wire.notices import (
    ElicitationComplete,
    FilesPersisted,
    HookProgress,
    HookResponse,
    HookStarted,
    Informational,
    LocalCommandOutput,
    MemoryRecall,
    MirrorError,
    Notification,
    PermissionDenied,
    PluginInstall,
    SessionWritesLost,
)
from quarterdeck.wire.permissions import PermissionMode
from quarterdeck.wire.reports import FastModeDisabledReason, FastModeState
from quarterdeck.wire.tasks import (
    BackgroundTasksChanged,
    TaskNotification,
    TaskProgress,
    TaskStarted,
    TaskUpdated,
)


class InitMcpServer(Part):
    """An MCP server, and whether it can be reached."""

    name: str = ""
    status: str = ""
    source: str | None = None


class InitPlugin(Part):
    """A plugin that was loaded."""

    name: str = ""
    path: str = ""
    version: str | None = None
    source: str | None = None


class ManagedLock(Part):
    """Who forbids changing a plugin."""

    plugin_enabled: bool = False
    name: str = ""
    marketplace: str | None = None


class PluginError(Part):
    """A plugin that could not be loaded."""

    plugin: str = ""
    type: str = ""
    message: str = ""
    path: str | None = None
    managed_lock: ManagedLock | None = None


class MemoryPaths(Part):
    """The folders of the CLI's memories."""

    auto: str | None = None
    team: str | None = None


class Init(System, tag="init"):
    """A turn begins. It comes only after a prompt, and with every turn; the newest holds."""

    untyped: ClassVar[frozenset[str]] = name_set(
        """
        client_thinking cloud_session flag_restate_noop footer_indicator mcp_server_errors
        plugin_warnings powershell_path scratchpad_path startup_timing synced_skills_path
        worker_epoch
        """
    )

    cwd: str = ""
    tools: tuple[str, ...] = ()
    mcp_servers: tuple[InitMcpServer, ...] = ()
    model: str = ""
    permission_mode: PermissionMode = field(name="permissionMode", default=PermissionMode.DEFAULT)
    slash_commands: tuple[str, ...] = ()
    terminal_slash_commands: tuple[str, ...] = ()
    api_key_source: str | None = field(name="apiKeySource", default=None)
    claude_code_version: str = ""
    output_style: str | None = None
    agents: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    plugins: tuple[InitPlugin, ...] = ()
    plugin_errors: tuple[PluginError, ...] = ()
    betas: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    fast_mode_state: FastModeState | None = None
    fast_mode_disabled_reason: FastModeDisabledReason | None = None
    effort: str | None = None
    view_mode: str | None = None
    user_message_uuids: tuple[str, ...] = ()
    original_cwd: str | None = None
    additional_directories: tuple[str, ...] = ()
    memory_paths: MemoryPaths | None = None
    messaging_socket_path: str | None = None
    analytics_disabled: bool | None = None
    product_feedback_disabled: bool | None = None
    per_turn_effort_active: bool | None = None
    ultrathink_available: bool | None = None
    ultrathink_typed_raises: bool | None = None


class WorkingStatus(OpenEnum):
    """An unusual activity of the CLI."""

    COMPACTING = "compacting"
    REQUESTING = "requesting"


class Status(System, tag="status"):
    """The mode has changed (`permission_mode` is set), or the activity of the CLI.

    `requesting` comes only with partial messages. `compact_result` comes when compacting ends.
    """

    untyped: ClassVar[frozenset[str]] = name_set(
        """
        compact_output_chars resume_held_for_plan
        """
    )

    status: WorkingStatus | None = None
    permission_mode: PermissionMode | None = field(name="permissionMode", default=None)
    compact_result: str | None = None
    compact_error: str | None = None
    user_message_uuids: tuple[str, ...] = ()


class PreservedSegment(Part):
    """The stretch of messages that a compaction kept."""

    head_uuid: str = ""
    anchor_uuid: str = ""
    tail_uuid: str = ""


class PreservedMessages(Part):
    """The messages that a compaction kept."""

    anchor_uuid: str = ""
    uuids: tuple[str, ...] = ()
    all_uuids: tuple[str, ...] = ()


class CompactMetadata(Part):
    """The result of a compaction. `trigger` is `manual` or `auto`."""

    trigger: str = ""
    pre_tokens: Number = 0
    post_tokens: Number | None = None
    duration_ms: Number | None = None
    cumulative_dropped_tokens: Number | None = None
    preserved_segment: PreservedSegment | None = None
    preserved_messages: PreservedMessages | None = None


class CompactBoundary(System, tag="compact_boundary"):
    """The conversation was compacted: a summary, which follows, replaces the messages before."""

    untyped: ClassVar[frozenset[str]] = name_set("historical")

    compact_metadata: CompactMetadata = CompactMetadata()
    logical_parent_uuid: str | None = None


class NoResponse(Part):
    """The API was silent for this long."""

    waited_ms: Number = 0
    retry_wait_ms: Number = 0


class ApiRetry(System, tag="api_retry"):
    """The API failed, and the CLI will try again."""

    attempt: Number = 0
    max_retries: Number = 0
    retry_delay_ms: Number = 0
    error_status: Number | None = None
    error: str | None = None
    no_response: NoResponse | None = None


class ControlRequestProgress(System, tag="control_request_progress"):
    """A control request of ours takes a while. `status` is `started` or `api_retry`."""

    request_id: str
    status: str = ""
    attempt: Number | None = None
    max_retries: Number | None = None
    retry_delay_ms: Number | None = None
    error_status: Number | None = None


class ModelRefusalFallback(System, tag="model_refusal_fallback"):
    """The model refused, and another one took over; discard the refused messages."""

    untyped: ClassVar[frozenset[str]] = name_set(
        """
        saw_cyber_refusal api_refusal_cyber_verification
        """
    )

    trigger: str = ""
    direction: str = ""
    scope: str | None = None
    original_model: str = ""
    fallback_model: str = ""
    request_id: str | None = None
    api_refusal_category: str | None = None
    api_refusal_explanation: str | None = None
    retracted_message_uuids: tuple[str, ...] = ()
    refused_user_message_uuid: str | None = None
    content: str = ""


class ModelRefusalNoFallback(System, tag="model_refusal_no_fallback"):
    """The model refused, and that was it."""

    original_model: str = ""
    request_id: str | None = None
    api_refusal_category: str | None = None
    api_refusal_explanation: str | None = None
    refused_user_message_uuid: str | None = None
    content: str = ""


class ThinkingTokens(System, tag="thinking_tokens"):
    """The model is thinking without showing it: an estimate of the tokens so far."""

    estimated_tokens: Number = 0
    estimated_tokens_delta: Number = 0
    user_message_uuid: str | None = None


class SessionState(OpenEnum):
    """Whether the CLI works, waits for us, or neither."""

    IDLE = "idle"
    RUNNING = "running"
    REQUIRES_ACTION = "requires_action"


class SessionStateChanged(System, tag="session_state_changed"):
    """The CLI works, waits for us, or is idle: then all background work is done as well.

    Needs `CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1`.
    """

    state: SessionState
    sdk_host_only: bool = False


class WorkerShuttingDown(System, tag="worker_shutting_down"):
    """The CLI's host told it to exit."""

    reason: str = ""


class CommandsChanged(System, tag="commands_changed"):
    """The complete list of slash commands."""

    commands: tuple[SlashCommand, ...] = ()


SYSTEM: dict[str, type[Message]] = {
    "init": Init,
    "status": Status,
    "compact_boundary": CompactBoundary,
    "api_retry": ApiRetry,
    "control_request_progress": ControlRequestProgress,
    "model_refusal_fallback": ModelRefusalFallback,
    "model_refusal_no_fallback": ModelRefusalNoFallback,
    "thinking_tokens": ThinkingTokens,
    "session_state_changed": SessionStateChanged,
    "worker_shutting_down": WorkerShuttingDown,
    "commands_changed": CommandsChanged,
    "local_command_output": LocalCommandOutput,
    "hook_started": HookStarted,
    "hook_progress": HookProgress,
    "hook_response": HookResponse,
    "plugin_install": PluginInstall,
    "notification": Notification,
    "files_persisted": FilesPersisted,
    "memory_recall": MemoryRecall,
    "elicitation_complete": ElicitationComplete,
    "permission_denied": PermissionDenied,
    "mirror_error": MirrorError,
    "informational": Informational,
    "session_writes_lost": SessionWritesLost,
    "task_started": TaskStarted,
    "task_progress": TaskProgress,
    "task_updated": TaskUpdated,
    "task_notification": TaskNotification,
    "background_tasks_changed": BackgroundTasksChanged,
    "bridge_state": BridgeState,
    "session_title_changed": SessionTitleChanged,
    "inherited_asks_settled": InheritedAsksSettled,
    "code_change_published": CodeChangePublished,
    "vcs_state_changed": VcsStateChanged,
    "feedback_draft_queued": FeedbackDraftQueued,
    "ui_invalidate": UiInvalidate,
    "ui_log": UiLog,
    "ui_toast": UiToast,
    "ui_notify": UiNotify,
    "ui_notify_cancel": UiNotifyCancel,
    "ui_status": UiStatus,
    "ui_panes": UiPanes,
    "ui_placed": UiPlaced,
    "ui_scroll": UiScroll,
    "ui_focus": UiFocus,
    "cloud_session_delta": CloudSessionDelta,
    "dev_intent": DevIntent,
    "turn_handoff_available": TurnHandoffAvailable,
    "turn_preempted": TurnPreempted,
    "peer_message_hold": PeerMessageHold,
    "per_turn_effort_changed": PerTurnEffortChanged,
    "permission_check_status": PermissionCheckStatus,
    "instruction_size_warning": InstructionSizeWarning,
    "file_attachments_missing": FileAttachmentsMissing,
    "post_turn_summary": PostTurnSummary,
    "task_summary": TaskSummary,
    "session_metadata": SessionMetadata,
}
"""Every `system` message that has a type, by subtype."""

AnySystem = (
    Init
    | Status
    | CompactBoundary
    | ApiRetry
    | ControlRequestProgress
    | ModelRefusalFallback
    | ModelRefusalNoFallback
    | ThinkingTokens
    | SessionStateChanged
    | WorkerShuttingDown
    | CommandsChanged
    | LocalCommandOutput
    | HookStarted
    | HookProgress
    | HookResponse
    | PluginInstall
    | Notification
    | FilesPersisted
    | MemoryRecall
    | ElicitationComplete
    | PermissionDenied
    | MirrorError
    | Informational
    | SessionWritesLost
    | TaskStarted
    | TaskProgress
    | TaskUpdated
    | TaskNotification
    | BackgroundTasksChanged
    | BridgeState
    | SessionTitleChanged
    | InheritedAsksSettled
    | CodeChangePublished
    | VcsStateChanged
    | FeedbackDraftQueued
    | UiInvalidate
    | UiLog
    | UiToast
    | UiNotify
    | UiNotifyCancel
    | UiStatus
    | UiPanes
    | UiPlaced
    | UiScroll
    | UiFocus
    | CloudSessionDelta
    | DevIntent
    | TurnHandoffAvailable
    | TurnPreempted
    | PeerMessageHold
    | PerTurnEffortChanged
    | PermissionCheckStatus
    | InstructionSizeWarning
    | FileAttachmentsMissing
    | PostTurnSummary
    | TaskSummary
    | SessionMetadata
)
"""The same as a union, for type checkers."""
