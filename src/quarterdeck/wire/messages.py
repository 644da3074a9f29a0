"""The messages of a CLI, except `system` (see `system`) and control (see `control`).

Owns the conversation: the output of the model and the tools, whole or in pieces, and the notices
with their own type. `result` and `internal` have the rest.

Bodies that may take new forms (`message`, `event`) are decoded on demand.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from msgspec import Raw, field

from quarterdeck.domain.structs import ABSENT, name_set
from quarterdeck.wire.base import Malformed, Message, Number, OpenEnum, Part, Unknown, UnknownPart
from quarterdeck.wire.content import (
    AssistantBody,
    Block,
    UserBody,
    decode_assistant_body,
    decode_user_body,
)
from quarterdeck.wire.control import ControlCancel, ControlRequest, ControlResponse
from quarterdeck.wire.deltas import delta_text
from quarterdeck.wire.info import Origin, decode_origin
from quarterdeck.wire.internal import AutocompactState, CommandLifecycle, TranscriptMirror
from quarterdeck.wire.outbound import KeepAlive
from quarterdeck.wire.reports import (
    ContextUsage,
    RateLimitInfo,
    UsageReport,
    decode_context_usage,
    decode_usage_report,
)
from quarterdeck.wire.result import Result as Result
from quarterdeck.wire.stream import Event, events
from quarterdeck.wire.system import AnySystem


class SystemHeader(Message, tag="system"):
    """A `system` message before its subtype is known; `codec` decodes it again by that."""

    subtype: str


class StreamEvent(Message, tag="stream_event"):
    """A piece of the answer while it is being made. Superseded by the `Assistant` that follows.

    Needs `--include-partial-messages`.
    """

    untyped: ClassVar[frozenset[str]] = name_set(
        "resume_reason abandoned_blocks text_runs_joined owed_rows"
    )

    event_json: Raw = field(name="event")
    session_id: str = ""
    parent_tool_use_id: str | None = None
    uuid: str = ""
    api_message_id: str | None = None
    ttft_ms: Number | None = None
    thinking_display: str | None = None
    user_message_uuid: str | None = None
    user_message_uuids: tuple[str, ...] = ()

    @cached_property
    def event(self) -> Event | UnknownPart:
        """The event, decoded."""
        return events.decode(self.event_json)

    @property
    def text(self) -> str:
        """The text that this adds to a block of text; empty for every other event."""
        return delta_text(self.event_json)


class AssistantError(OpenEnum):
    """Why the model did not answer."""

    AUTHENTICATION_FAILED = "authentication_failed"
    OAUTH_ORG_NOT_ALLOWED = "oauth_org_not_allowed"
    ACCOUNT_ON_HOLD = "account_on_hold"
    VERIFICATION_REQUIRED = "verification_required"
    BILLING_ERROR = "billing_error"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    INVALID_REQUEST = "invalid_request"
    MODEL_NOT_FOUND = "model_not_found"
    SERVER_ERROR = "server_error"
    MAX_OUTPUT_TOKENS = "max_output_tokens"
    CLOUD_CREDENTIAL_ERROR = "cloud_credential_error"
    # The CLI's own value; `UNKNOWN` is the name of values that an `OpenEnum` does not know.
    NOT_KNOWN = "unknown"


class LocalCommandRun(Part):
    """A slash command that the CLI ran itself."""

    command: str = ""
    args: str = ""
    plugin: str | None = None


class LocalCommandOutcome(Part):
    """The failure of a slash command."""

    kind: str = ""
    suggestion: str | None = None


class Assistant(Message, tag="assistant"):
    """A finished block of the model's answer, or a text by the CLI in its place.

    `parent_tool_use_id` is the tool call of the subagent, if one wrote it. `supersedes` names
    messages that this one replaces. `aborted` marks a message that an interrupt cut short.
    """

    untyped: ClassVar[frozenset[str]] = name_set(
        """
        advisor_model api_error_origin api_error_params attribution_agent attribution_mcp_server
        attribution_mcp_tool attribution_plugin attribution_skill batch_tool_uses error_details
        historical is_meta is_virtual narration_block_indexes narration_hint wire_ingest_context
        wire_tool_inputs
        """
    )

    message_json: Raw = field(name="message")
    parent_tool_use_id: str | None = None
    session_id: str = ""
    uuid: str = ""
    error: AssistantError | None = None
    request_id: str | None = None
    timestamp: str | None = None
    user_message_uuid: str | None = None
    user_message_uuids: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    aborted: bool = False
    agent_id: str | None = None
    subagent_type: str | None = None
    task_description: str | None = None
    resume_reason: str | None = None
    resumed_from_incomplete_thinking: bool = False
    context_usage_json: Raw = field(name="context_usage", default=ABSENT)
    usage_report_json: Raw = field(name="usage_report", default=ABSENT)
    is_api_error_message: bool = False
    api_error: str | None = None
    api_error_status: Number | None = None
    api_error_code: str | None = None
    api_error_type: str | None = None
    refused_message_id: str | None = None
    local_command_source: str | None = None
    local_command_run: LocalCommandRun | None = None
    local_command_outcome: LocalCommandOutcome | None = None
    thinking_display: str | None = None
    thinking_duration_ms: Number | None = None
    tool_use_meta: Raw = ABSENT

    @cached_property
    def message(self) -> AssistantBody:
        """The message, decoded."""
        return decode_assistant_body(self.message_json)

    @property
    def blocks(self) -> tuple[Block | UnknownPart, ...]:
        """The blocks in it: text, thinking, calls of tools."""
        return self.message.content

    @property
    def text(self) -> str:
        """The text in it."""
        return self.message.text

    @cached_property
    def context_usage(self) -> ContextUsage | None:
        """The numbers behind the text that answers `/context`."""
        return decode_context_usage.maybe(self.context_usage_json)

    @cached_property
    def usage_report(self) -> UsageReport | None:
        """The numbers behind the text that answers `/usage`."""
        return decode_usage_report.maybe(self.usage_report_json)


class Priority(OpenEnum):
    """When a prompt is to be taken in. `now` breaks off the running turn."""

    NOW = "now"
    NEXT = "next"
    LATER = "later"


class User(Message, tag="user"):
    """Results of tools, a text by the CLI, or the echo of a prompt (`is_replay`)."""

    untyped: ClassVar[frozenset[str]] = name_set(
        """
        client_platform historical image_paste_ids inbound_origin initiator inline_pastes
        is_virtual mcp_meta plugin_prompt requeue_if_interrupted_within_ms seeded_summon
        server_received_wall_ms source_tool_assistant_uuid summarize_metadata text_not_typed
        tool_states ultrathink_typed
        """
    )

    message_json: Raw = field(name="message")
    parent_tool_use_id: str | None = None
    session_id: str = ""
    uuid: str | None = None
    tool_use_result: Raw = ABSENT
    is_replay: bool = field(name="isReplay", default=False)
    is_synthetic: bool = field(name="isSynthetic", default=False)
    timestamp: str | None = None
    priority: Priority | None = None
    origin_json: Raw = field(name="origin", default=ABSENT)
    should_query: bool | None = field(name="shouldQuery", default=None)
    client_composed: bool = False
    pasted_content: Raw = ABSENT
    file_attachments: Raw = ABSENT
    agent_id: str | None = None
    subagent_type: str | None = None
    task_description: str | None = None
    is_meta: bool = False
    is_compact_summary: bool = False
    is_visible_in_transcript_only: bool = False
    permission_mode: str | None = None
    plan_content: str | None = None
    source_tool_use_id: str | None = None
    interrupted_message_id: str | None = None
    refused_message_id: str | None = None
    retracted_message_uuids: tuple[str, ...] = ()
    tool_result_meta: Raw = ABSENT

    @cached_property
    def message(self) -> UserBody:
        """The message, decoded."""
        return decode_user_body(self.message_json)

    @property
    def blocks(self) -> tuple[Block | UnknownPart, ...]:
        """The blocks in it: what tools gave, or a prompt. A plain text is one block of text."""
        return self.message.blocks

    @property
    def text(self) -> str:
        """The text in it, without the output of tools."""
        return self.message.text

    @cached_property
    def origin(self) -> Origin | None:
        """Its origin."""
        return decode_origin.maybe(self.origin_json)


class SubagentRetry(Part):
    """A subagent's request to the API failed, and is being tried again."""

    agent_id: str = ""
    attempt: Number = 0
    max_retries: Number = 0
    retry_delay_ms: Number = 0
    error_status: Number | None = None
    error_category: str = ""


class ToolProgress(Message, tag="tool_progress"):
    """A tool has been running for a while, and still is."""

    tool_use_id: str
    tool_name: str = ""
    parent_tool_use_id: str | None = None
    elapsed_time_seconds: Number = 0
    task_id: str | None = None
    heartbeat: bool = False
    subagent_type: str | None = None
    subagent_retry: SubagentRetry | None = None
    uuid: str = ""
    session_id: str = ""


class AuthStatus(Message, tag="auth_status"):
    """The progress of signing in. Needs `--enable-auth-status`."""

    is_authenticating: bool = field(name="isAuthenticating", default=False)
    output: tuple[str, ...] = ()
    error: str | None = None
    uuid: str = ""
    session_id: str = ""


class ToolUseSummary(Message, tag="tool_use_summary"):
    """A line that sums up the tool calls before it."""

    summary: str = ""
    preceding_tool_use_ids: tuple[str, ...] = ()
    timestamp: str | None = None
    uuid: str = ""
    session_id: str = ""


class RateLimitEvent(Message, tag="rate_limit_event"):
    """The account's limits have changed. Not an error by itself, not even as `rejected`."""

    rate_limit_info: RateLimitInfo
    uuid: str = ""
    session_id: str = ""


class PromptSuggestion(Message, tag="prompt_suggestion"):
    """A suggested next prompt. Comes after the result, at most once per turn, if requested."""

    suggestion: str = ""
    uuid: str = ""
    session_id: str = ""


class ResetTrigger(OpenEnum):
    """Why the conversation was restarted."""

    CLEAR = "clear"
    PLAN_MODE_EXIT = "plan_mode_exit"
    FRESH_SESSION = "fresh_session"
    ONBOARDING = "onboarding"


class ConversationReset(Message, tag="conversation_reset"):
    """The conversation restarts: later messages have another `session_id`, and costs restart."""

    new_conversation_id: str
    trigger: ResetTrigger | None = None
    user_message_uuid: str | None = None
    timestamp: str | None = None
    uuid: str = ""
    session_id: str = ""


class Goal(Part):
    """The goal that the CLI works on until it is reached."""

    condition: str = ""
    iterations: Number = 0
    set_at: Number = 0
    tokens_at_start: Number = 0
    last_reason: str | None = None


class ActiveGoal(Message, tag="active_goal"):
    """A goal was set, continued, or (`value` is null) removed."""

    value: Goal | None = None
    uuid: str = ""
    session_id: str = ""


class StreamlinedText(Message, tag="streamlined_text"):
    """The model's text, in a short form of the output. Up to about 2.1.62."""

    text: str = ""
    uuid: str = ""
    session_id: str = ""


class StreamlinedToolUseSummary(Message, tag="streamlined_tool_use_summary"):
    """The tool calls in one line, in a short form of the output. Up to about 2.1.62."""

    tool_summary: str = ""
    uuid: str = ""
    session_id: str = ""


_Spoken = (
    StreamEvent
    | Assistant
    | User
    | Result
    | ToolProgress
    | AuthStatus
    | ToolUseSummary
    | RateLimitEvent
    | PromptSuggestion
    | ConversationReset
    | ActiveGoal
    | StreamlinedText
    | StreamlinedToolUseSummary
    | ControlRequest
    | ControlResponse
    | ControlCancel
    | KeepAlive
    | CommandLifecycle
    | TranscriptMirror
    | AutocompactState
)

FROM_CLI = _Spoken | SystemHeader
FROM_CLI_TYPES = frozenset(str(struct.__struct_config__.tag) for struct in FROM_CLI.__args__)

FromCli = _Spoken | AnySystem | Unknown | Malformed
"""All that `codec.from_cli` returns, for a `match` that ends in `assert_never`."""
