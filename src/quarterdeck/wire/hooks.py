"""Hooks: their registration, and the input of each of the 33 events.

`hook_inputs` decodes an input; `hook_outputs` has the answers. An unknown event is an `UnknownHook`
with its JSON. Every member has a default: a hook must be answered, even if a version omits members.

Written by tools/write_wire.py from tools/wire/hooks.toml; do not edit.
"""

from __future__ import annotations

from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import ABSENT
from quarterdeck.wire.base import Number, OpenEnum, Part
from quarterdeck.wire.info import McpServerProvenance
from quarterdeck.wire.permissions import Suggestion, suggestions
from quarterdeck.wire.rawjson import EMPTY, always, plain_object


class HookEvent(OpenEnum):
    """When a hook runs. A CLI ignores events that it does not know."""

    PRE_TOOL_USE = "PreToolUse"
    POST_TOOL_USE = "PostToolUse"
    POST_TOOL_USE_FAILURE = "PostToolUseFailure"
    POST_TOOL_BATCH = "PostToolBatch"
    NOTIFICATION = "Notification"
    USER_PROMPT_SUBMIT = "UserPromptSubmit"
    USER_PROMPT_EXPANSION = "UserPromptExpansion"
    SESSION_START = "SessionStart"
    SESSION_END = "SessionEnd"
    STOP = "Stop"
    STOP_FAILURE = "StopFailure"
    SUBAGENT_START = "SubagentStart"
    SUBAGENT_STOP = "SubagentStop"
    PRE_COMPACT = "PreCompact"
    POST_COMPACT = "PostCompact"
    PRE_MODEL_SWITCH = "PreModelSwitch"
    POST_MODEL_SWITCH = "PostModelSwitch"
    PERMISSION_REQUEST = "PermissionRequest"
    PERMISSION_DENIED = "PermissionDenied"
    SETUP = "Setup"
    TEAMMATE_IDLE = "TeammateIdle"
    TASK_CREATED = "TaskCreated"
    TASK_COMPLETED = "TaskCompleted"
    ELICITATION = "Elicitation"
    ELICITATION_RESULT = "ElicitationResult"
    CONFIG_CHANGE = "ConfigChange"
    WORKTREE_CREATE = "WorktreeCreate"
    WORKTREE_REMOVE = "WorktreeRemove"
    INSTRUCTIONS_LOADED = "InstructionsLoaded"
    CWD_CHANGED = "CwdChanged"
    FILE_CHANGED = "FileChanged"
    DIRECTORY_ADDED = "DirectoryAdded"
    MESSAGE_DISPLAY = "MessageDisplay"


class HookMatcher(Part, rename="camel"):
    """Which calls of an event we want, and under which ids they shall call back.

    `timeout` is in seconds. `on_failure` (2.1.317 and newer) is `continue` or `block`.
    """

    hook_callback_ids: tuple[str, ...] = always(())
    matcher: str | None = None
    timeout: Number | None = None
    on_failure: str | None = None

    def __post_init__(self) -> None:
        if self.on_failure not in {None, "continue", "block"}:
            raise UsageError("on_failure of a hook must be 'continue' or 'block'")
        if self.timeout is not None and not self.timeout > 0:
            raise UsageError("the timeout of a hook must be a number of seconds above 0")


class Effort(Part):
    """How hard the model thinks."""

    level: str = ""


class BackgroundTaskSummary(Part):
    """A task that still runs when a turn stops."""

    id: str = ""
    type: str = ""
    status: str = ""
    description: str = ""
    command: str | None = None
    agent_type: str | None = None
    server: str | None = None
    tool: str | None = None
    name: str | None = None


class SessionCronSummary(Part):
    """A prompt that the session runs on a schedule."""

    id: str = ""
    schedule: str = ""
    recurring: bool = False
    prompt: str = ""


class ToolCall(Part):
    """One call of a batch."""

    tool_name: str = ""
    tool_input: Raw = EMPTY
    tool_use_id: str = ""
    tool_response: Raw = ABSENT

    @property
    def arguments(self) -> dict[str, object]:
        """The tool's input as plain values; empty if it is not a JSON object."""
        return plain_object(self.tool_input)


class HookInputBase(Part, tag_field="hook_event_name"):
    """Members of every event."""

    session_id: str = ""
    transcript_path: str = ""
    cwd: str = ""
    permission_mode: str | None = None
    prompt_id: str | None = None
    agent_id: str | None = None
    agent_type: str | None = None
    effort: Effort | None = None


class _ToolInput(HookInputBase):
    """Members of the events of one tool call."""

    tool_name: str = ""
    tool_input: Raw = EMPTY
    tool_use_id: str = ""
    mcp_server: McpServerProvenance | None = None

    @property
    def arguments(self) -> dict[str, object]:
        """The tool's input as plain values; empty if it is not a JSON object."""
        return plain_object(self.tool_input)


class PreToolUseInput(_ToolInput, tag="PreToolUse"):
    """A tool is about to run."""


class PostToolUseInput(_ToolInput, tag="PostToolUse"):
    """A tool has run."""

    tool_response: Raw = Raw(b"null")
    duration_ms: Number | None = None


class PostToolUseFailureInput(_ToolInput, tag="PostToolUseFailure"):
    """A tool has failed. A command that ends with another code than 0 counts."""

    error: str = ""
    is_interrupt: bool | None = None
    duration_ms: Number | None = None


class PermissionRequestInput(_ToolInput, tag="PermissionRequest"):
    """A permission is about to be asked for. From 2.1.62 on the question is asked meanwhile."""

    permission_suggestions: tuple[Raw, ...] | None = None

    def suggestions(self) -> tuple[Suggestion, ...]:
        """The changes that would spare this question the next time."""
        return suggestions(self.permission_suggestions)


class PermissionDeniedInput(_ToolInput, tag="PermissionDenied"):
    """A call was denied without a question."""

    reason: str = ""


class PostToolBatchInput(HookInputBase, tag="PostToolBatch"):
    """All tool calls of one answer have run."""

    tool_calls: tuple[ToolCall, ...] = ()


class NotificationInput(HookInputBase, tag="Notification"):
    """The CLI wants attention."""

    message: str = ""
    title: str | None = None
    notification_type: str = ""


class UserPromptSubmitInput(HookInputBase, tag="UserPromptSubmit"):
    """A prompt is about to be sent to the model."""

    prompt: str = ""
    source: str | None = None
    session_title: str | None = None


class UserPromptExpansionInput(HookInputBase, tag="UserPromptExpansion"):
    """A command is about to become a prompt."""

    expansion_type: str = ""
    command_name: str = ""
    command_args: str = ""
    command_source: str | None = None
    prompt: str = ""


class SessionStartInput(HookInputBase, tag="SessionStart"):
    """A session has begun, or begun again."""

    source: str = ""
    model: str | None = None
    session_title: str | None = None
    seconds_since_last_response: Number | None = None
    context_tokens: Number | None = None
    prompt_cache_likely_expired: bool | None = None
    estimated_cache_write_usd: Number | None = None


class SessionEndInput(HookInputBase, tag="SessionEnd"):
    """A session is over."""

    reason: str = ""


class _StopInput(HookInputBase):
    stop_hook_active: bool = False
    last_assistant_message: str | None = None
    background_tasks: tuple[BackgroundTaskSummary, ...] | None = None
    session_crons: tuple[SessionCronSummary, ...] | None = None


class StopInput(_StopInput, tag="Stop"):
    """The model wants to stop. `stop_hook_active`: a hook has made it continue before."""


class SubagentStopInput(_StopInput, tag="SubagentStop"):
    """A subagent wants to stop."""

    agent_transcript_path: str = ""


class StopFailureInput(HookInputBase, tag="StopFailure"):
    """A turn ended on an error of the API."""

    error: str = ""
    error_details: str | None = None
    last_assistant_message: str | None = None


class SubagentStartInput(HookInputBase, tag="SubagentStart"):
    """A subagent begins."""


class PreCompactInput(HookInputBase, tag="PreCompact"):
    """The conversation is about to be compacted."""

    trigger: str = ""
    custom_instructions: str | None = None


class PostCompactInput(HookInputBase, tag="PostCompact"):
    """The conversation has been compacted."""

    trigger: str = ""
    compact_summary: str = ""


class _ModelSwitchInput(HookInputBase):
    from_model: str = ""
    to_model: str = ""
    requested_model: str | None = None
    source: str = ""
    context_tokens: Number = 0
    prompt_cache_warm: bool = False
    cache_ttl: str = ""
    estimated_cache_write_usd: Number = 0
    pricing: str = ""


class PreModelSwitchInput(_ModelSwitchInput, tag="PreModelSwitch"):
    """The model is about to be changed."""


class PostModelSwitchInput(_ModelSwitchInput, tag="PostModelSwitch"):
    """The model has been changed."""


class SetupInput(HookInputBase, tag="Setup"):
    """The CLI sets itself up."""

    trigger: str = ""


class TeammateIdleInput(HookInputBase, tag="TeammateIdle"):
    """A teammate has nothing to do."""

    teammate_name: str = ""
    team_name: str = ""


class _TaskInput(HookInputBase):
    task_id: str = ""
    task_subject: str = ""
    task_description: str | None = None
    teammate_name: str | None = None
    team_name: str | None = None


class TaskCreatedInput(_TaskInput, tag="TaskCreated"):
    """A task was put on the list."""


class TaskCompletedInput(_TaskInput, tag="TaskCompleted"):
    """A task is done."""


class ElicitationInput(HookInputBase, tag="Elicitation"):
    """An MCP server wants something from a person."""

    mcp_server_name: str = ""
    message: str = ""
    mode: str | None = None
    url: str | None = None
    elicitation_id: str | None = None
    requested_schema: Raw = ABSENT


class ElicitationResultInput(HookInputBase, tag="ElicitationResult"):
    """A person has answered an MCP server."""

    mcp_server_name: str = ""
    elicitation_id: str | None = None
    mode: str | None = None
    action: str = ""
    content: Raw = ABSENT


class ConfigChangeInput(HookInputBase, tag="ConfigChange"):
    """Settings have changed on disk."""

    source: str = ""
    file_path: str | None = None


class WorktreeCreateInput(HookInputBase, tag="WorktreeCreate"):
    """A worktree is wanted; the hook may make it."""

    name: str = ""


class WorktreeRemoveInput(HookInputBase, tag="WorktreeRemove"):
    """A worktree is no longer needed."""

    worktree_path: str = ""


class InstructionsLoadedInput(HookInputBase, tag="InstructionsLoaded"):
    """A file with instructions was read."""

    file_path: str = ""
    memory_type: str = ""
    load_reason: str = ""
    globs: tuple[str, ...] | None = None
    trigger_file_path: str | None = None
    parent_file_path: str | None = None


class CwdChangedInput(HookInputBase, tag="CwdChanged"):
    """The session works in another directory now."""

    old_cwd: str = ""
    new_cwd: str = ""


class FileChangedInput(HookInputBase, tag="FileChanged"):
    """A watched file has changed."""

    file_path: str = ""
    event: str = ""


class DirectoryAddedInput(HookInputBase, tag="DirectoryAdded"):
    """The session may work in one more directory."""

    directory: str = ""
    source: str = ""


class MessageDisplayInput(HookInputBase, tag="MessageDisplay"):
    """Text of the model is about to be shown."""

    turn_id: str = ""
    message_id: str = ""
    index: Number = 0
    final: bool = False
    delta: str = ""


class UnknownHook(Part):
    """An event that we do not know, or an input that does not fit it (`error` says why)."""

    event: str = ""
    json: Raw = EMPTY
    error: str | None = None


HookInput = (
    PreToolUseInput
    | PostToolUseInput
    | PostToolUseFailureInput
    | PermissionRequestInput
    | PermissionDeniedInput
    | PostToolBatchInput
    | NotificationInput
    | UserPromptSubmitInput
    | UserPromptExpansionInput
    | SessionStartInput
    | SessionEndInput
    | StopInput
    | SubagentStopInput
    | StopFailureInput
    | SubagentStartInput
    | PreCompactInput
    | PostCompactInput
    | PreModelSwitchInput
    | PostModelSwitchInput
    | SetupInput
    | TeammateIdleInput
    | TaskCreatedInput
    | TaskCompletedInput
    | ElicitationInput
    | ElicitationResultInput
    | ConfigChangeInput
    | WorktreeCreateInput
    | WorktreeRemoveInput
    | InstructionsLoadedInput
    | CwdChangedInput
    | FileChangedInput
    | DirectoryAddedInput
    | MessageDisplayInput
)
