"""The answers of hooks.

`SyncOutput` decides at once, `AsyncOutput` says that the hook continues in the background, and
`SyncOutput()` has no opinion. Members for a single event are in their own struct, in `specific`.

Written by tools/write_wire.py from tools/wire/hook_outputs.toml; do not edit.
"""

from __future__ import annotations

from msgspec import Raw, field

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import ABSENT
from quarterdeck.wire.base import Number, OpenEnum, Part
from quarterdeck.wire.rawjson import always, is_object


class HookDecision(OpenEnum):
    """The older way to decide; `block` denies, `approve` allows."""

    APPROVE = "approve"
    BLOCK = "block"


class HookPermission(OpenEnum):
    """A hook's decision on a tool call. `defer` (2.1.91 and newer) ends the turn."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"
    DEFER = "defer"


class _Specific(Part, tag_field="hookEventName", rename="camel"):
    """The base of what only one event understands."""


class _WithContext(_Specific):
    additional_context: str | None = None


class PreToolUseOutput(_WithContext, tag="PreToolUse"):
    """Decide about a call before a person is asked, or change its input."""

    permission_decision: HookPermission | None = None
    permission_decision_reason: str | None = None
    updated_input: Raw = ABSENT

    def __post_init__(self) -> None:
        if self.updated_input and not is_object(self.updated_input):
            raise UsageError("the updated input of a hook must be a JSON object")


class PostToolUseOutput(_WithContext, tag="PostToolUse"):
    """Add context for the model, or change the tool's result."""

    classifier_context: str | None = None
    updated_tool_output: Raw = ABSENT
    updated_mcp_tool_output: Raw = field(name="updatedMCPToolOutput", default=ABSENT)


class PostToolUseFailureOutput(_WithContext, tag="PostToolUseFailure"):
    """Tell the model more."""


class PostToolBatchOutput(_WithContext, tag="PostToolBatch"):
    """Tell the model more."""


class NotificationOutput(_WithContext, tag="Notification"):
    """Tell the model more."""


class UserPromptSubmitOutput(_WithContext, tag="UserPromptSubmit"):
    """Add to a prompt, or name the session."""

    session_title: str | None = None
    suppress_original_prompt: bool | None = None


class UserPromptExpansionOutput(_WithContext, tag="UserPromptExpansion"):
    """Add to a command's prompt."""

    suppress_original_prompt: bool | None = None


class SessionStartOutput(_WithContext, tag="SessionStart"):
    """Begin a session with something."""

    initial_user_message: str | None = None
    session_title: str | None = None
    watch_paths: tuple[str, ...] | None = None
    reload_skills: bool | None = None


class SetupOutput(_WithContext, tag="Setup"):
    """Tell the model more."""


class StopOutput(_WithContext, tag="Stop"):
    """Tell the model more."""


class SubagentStartOutput(_WithContext, tag="SubagentStart"):
    """Tell the subagent more."""


class SubagentStopOutput(_WithContext, tag="SubagentStop"):
    """Tell the subagent more."""


class PreModelSwitchOutput(_Specific, tag="PreModelSwitch"):
    """Decide about a change of model. `defer` is not valid here."""

    permission_decision: HookPermission | None = None
    permission_decision_reason: str | None = None


class PostModelSwitchOutput(_WithContext, tag="PostModelSwitch"):
    """Tell the model more."""


class AllowDecision(Part, tag_field="behavior", tag="allow", rename="camel"):
    """The hook allows the call itself; the question is withdrawn."""

    updated_input: Raw = ABSENT
    updated_permissions: tuple[Raw, ...] | None = None

    def __post_init__(self) -> None:
        if self.updated_input and not is_object(self.updated_input):
            raise UsageError("the updated input of a hook must be a JSON object")


class DenyDecision(Part, tag_field="behavior", tag="deny"):
    """The hook denies the call itself; the question is withdrawn."""

    message: str | None = None
    interrupt: bool | None = None


class PermissionRequestOutput(_Specific, tag="PermissionRequest"):
    """Decide about a call while it is being asked for."""

    decision: AllowDecision | DenyDecision


class PermissionDeniedOutput(_Specific, tag="PermissionDenied"):
    """Let the model try again."""

    retry: bool | None = None


class _ElicitationSpecific(_Specific):
    action: str | None = None
    content: Raw = ABSENT

    def __post_init__(self) -> None:
        if self.content and not is_object(self.content):
            raise UsageError("the content of a hook must be a JSON object")


class ElicitationOutput(_ElicitationSpecific, tag="Elicitation"):
    """Answer an MCP server in a person's place."""


class ElicitationResultOutput(_ElicitationSpecific, tag="ElicitationResult"):
    """Change a person's answer to an MCP server."""


class CwdChangedOutput(_Specific, tag="CwdChanged"):
    """Watch these files."""

    watch_paths: tuple[str, ...] | None = None


class FileChangedOutput(_Specific, tag="FileChanged"):
    """Watch these files."""

    watch_paths: tuple[str, ...] | None = None


class WorktreeCreateOutput(_Specific, tag="WorktreeCreate"):
    """The worktree is there."""

    worktree_path: str


class MessageDisplayOutput(_Specific, tag="MessageDisplay"):
    """Show this instead."""

    display_content: str | None = None


SpecificOutput = (
    PreToolUseOutput
    | PostToolUseOutput
    | PostToolUseFailureOutput
    | PostToolBatchOutput
    | NotificationOutput
    | UserPromptSubmitOutput
    | UserPromptExpansionOutput
    | SessionStartOutput
    | SetupOutput
    | StopOutput
    | SubagentStartOutput
    | SubagentStopOutput
    | PreModelSwitchOutput
    | PostModelSwitchOutput
    | PermissionRequestOutput
    | PermissionDeniedOutput
    | ElicitationOutput
    | ElicitationResultOutput
    | CwdChangedOutput
    | FileChangedOutput
    | WorktreeCreateOutput
    | MessageDisplayOutput
)


class SyncOutput(Part, rename="camel"):
    """A hook's decision. Without members it has no opinion.

    `continue_=False` ends the turn; the current tool is still asked for and run.
    """

    continue_: bool | None = None
    stop_reason: str | None = None
    suppress_output: bool | None = None
    decision: HookDecision | None = None
    reason: str | None = None
    system_message: str | None = None
    terminal_sequence: str | None = None
    specific: SpecificOutput | None = field(name="hookSpecificOutput", default=None)


class AsyncOutput(Part, rename="camel"):
    """The hook continues in the background; the CLI does not wait."""

    async_: bool = always(True)
    async_timeout: Number | None = None


HookOutput = SyncOutput | AsyncOutput
