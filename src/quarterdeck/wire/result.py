"""The `result` message: how a turn ended, and what it used.

Owns one struct for every kind of end. `failed` combines two members to tell whether a turn failed.
Parts that may change form (usage, origin, statistics) are decoded on demand, so that a number that
cannot be decoded does not hide the end of a turn.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from msgspec import Raw, field

from quarterdeck.domain.structs import ABSENT, name_set
from quarterdeck.wire.base import Message, Number, OpenEnum, Part
from quarterdeck.wire.content import Usage, decode_usage
from quarterdeck.wire.envelope import Body, Lazy, Origin, decode_origin

INTERRUPTED = "the turn was interrupted"

_DIAGNOSTIC = "[ede_diagnostic]"
"""How newer versions begin a line of `errors` that is for their makers."""


class ResultSubtype(OpenEnum):
    """How a turn ended. `success` may still be an error: see `Result.failed`."""

    SUCCESS = "success"
    ERROR_DURING_EXECUTION = "error_during_execution"
    ERROR_MAX_TURNS = "error_max_turns"
    ERROR_MAX_BUDGET_USD = "error_max_budget_usd"
    ERROR_MAX_STRUCTURED_OUTPUT_RETRIES = "error_max_structured_output_retries"


class TerminalReason(OpenEnum):
    """Why the loop of model and tools ended (newer versions)."""

    COMPLETED = "completed"
    MAX_TURNS = "max_turns"
    BUDGET_EXHAUSTED = "budget_exhausted"
    ABORTED_STREAMING = "aborted_streaming"
    ABORTED_TOOLS = "aborted_tools"
    API_ERROR = "api_error"
    MODEL_ERROR = "model_error"
    IMAGE_ERROR = "image_error"
    PROMPT_TOO_LONG = "prompt_too_long"
    BLOCKING_LIMIT = "blocking_limit"
    RAPID_REFILL_BREAKER = "rapid_refill_breaker"
    MALFORMED_TOOL_USE_EXHAUSTED = "malformed_tool_use_exhausted"
    STRUCTURED_OUTPUT_RETRY_EXHAUSTED = "structured_output_retry_exhausted"
    STOP_HOOK_PREVENTED = "stop_hook_prevented"
    HOOK_STOPPED = "hook_stopped"
    TOOL_DEFERRED = "tool_deferred"
    TOOL_DEFERRED_UNAVAILABLE = "tool_deferred_unavailable"
    BACKGROUND_REQUESTED = "background_requested"
    TURN_SETUP_FAILED = "turn_setup_failed"


class StartupFailureReason(OpenEnum):
    """Why the CLI could not even begin (newest versions)."""

    ORG_PIN_API_KEY_CONFLICT = "org_pin_api_key_conflict"
    PROVIDER_NOT_ALLOWED = "provider_not_allowed"
    ORG_VERIFY_FAILED = "org_verify_failed"
    ORG_PIN_MISMATCH = "org_pin_mismatch"
    MANAGED_SETTINGS_INVALID = "managed_settings_invalid"
    MANAGED_SETTINGS_NOT_DELIVERED = "managed_settings_not_delivered"
    REMOTE_SETTINGS_REQUIRED_UNAVAILABLE = "remote_settings_required_unavailable"
    GATEWAY_SIGNIN_REQUIRED = "gateway_signin_required"
    GATEWAY_ACCESS_DENIED = "gateway_access_denied"
    PROXY_INVALID = "proxy_invalid"
    TEMP_DIR_UNUSABLE = "temp_dir_unusable"
    CWD_UNAVAILABLE = "cwd_unavailable"
    SHELL_TOOL_MISSING = "shell_tool_missing"
    SESSION_HELD_BY_BACKGROUND = "session_held_by_background"
    WORKTREE_RESUME_REFUSED = "worktree_resume_refused"
    WORKTREE_UNVERIFIED = "worktree_unverified"
    CLI_VERSION_TOO_OLD = "cli_version_too_old"
    BYPASS_ROOT = "bypass_root"
    ORG_CONFIG_REQUIRED_UNAVAILABLE = "org_config_required_unavailable"
    ORG_CONFIG_REFUSED = "org_config_refused"
    SANDBOX_REQUIRED_UNAVAILABLE = "sandbox_required_unavailable"
    INITIALIZE_NOT_FIRST = "initialize_not_first"
    CONFIG_FILE_INVALID = "config_file_invalid"


class FastModeState(OpenEnum):
    """Whether answers come in fast mode."""

    OFF = "off"
    COOLDOWN = "cooldown"
    ON = "on"


class FastModeDisabledReason(OpenEnum):
    """Why fast mode is not available."""

    FREE = "free"
    PREFERENCE = "preference"
    EXTRA_USAGE_DISABLED = "extra_usage_disabled"
    NETWORK_ERROR = "network_error"
    NOT_FIRST_PARTY = "not_first_party"
    DISABLED_BY_ENV = "disabled_by_env"
    MODEL_NOT_ALLOWED = "model_not_allowed"
    SDK_OPT_IN_REQUIRED = "sdk_opt_in_required"
    PENDING = "pending"
    # The CLI's own value; `UNKNOWN` is the name of values that an `OpenEnum` does not know.
    NOT_KNOWN = "unknown"


class ModelUsage(Part):
    """The usage and cost of one model since the process started."""

    input_tokens: Number = field(name="inputTokens", default=0)
    output_tokens: Number = field(name="outputTokens", default=0)
    thinking_tokens: Number | None = field(name="thinkingTokens", default=None)
    cache_read_input_tokens: Number = field(name="cacheReadInputTokens", default=0)
    cache_creation_input_tokens: Number = field(name="cacheCreationInputTokens", default=0)
    cache_creation_ephemeral_5m_input_tokens: Number | None = field(
        name="cacheCreationEphemeral5mInputTokens", default=None
    )
    cache_creation_ephemeral_1h_input_tokens: Number | None = field(
        name="cacheCreationEphemeral1hInputTokens", default=None
    )
    web_search_requests: Number = field(name="webSearchRequests", default=0)
    cost_usd: Number = field(name="costUSD", default=0)
    context_window: Number | None = field(name="contextWindow", default=None)
    max_output_tokens: Number | None = field(name="maxOutputTokens", default=None)
    canonical_model: str | None = field(name="canonicalModel", default=None)
    provider: str | None = None
    cost_basis: str | None = field(name="costBasis", default=None)


class PermissionDenial(Part):
    """A tool call that was refused, by a person, a rule, or the mode."""

    tool_name: str = ""
    tool_use_id: str = ""
    tool_input: Raw = ABSENT


class DeferredToolUse(Body):
    """The tool call that a hook put off; the turn ended because of it."""

    id: str = ""
    name: str = ""
    input: Raw = ABSENT


class InvalidConfigFile(Body):
    """The settings file that kept the CLI from starting."""

    path: str = ""
    is_global: bool = False
    backup_searched: bool = False
    backup_path: str | None = None


class SubagentStats(Body):
    """The number of subagents of the turn, by outcome."""

    spawned: Number = 0
    requested: dict[str, Number] = field(default_factory=dict)
    started_in_background: Number = 0
    by_type: dict[str, Number] = field(default_factory=dict)
    max_depth: Number = 0
    spawned_by_subagents: Number = 0
    completed: Number = 0
    failed: Number = 0
    killed: dict[str, Number] = field(default_factory=dict)
    refused: dict[str, Number] = field(default_factory=dict)


class Result(Message, tag="result"):
    """The end of a turn. Results do not match prompts one to one; see `user_message_uuids`.

    `total_cost_usd` and `model_usage` are totals of the process, until a `ConversationReset`;
    `usage` and `num_turns` are of this turn.
    """

    # Times and sizes inside the CLI and its host, for its makers.
    untyped: ClassVar[frozenset[str]] = name_set(
        """
        first_stream_post_ack_ms first_stream_post_ms first_stream_post_queue_wait_ms
        first_stream_post_queued_behind first_stream_post_wall_ms first_text_post_ms
        first_text_post_queue_wait_ms first_text_post_queued_behind first_text_post_wall_ms
        flag_fetch_kick frame_enqueued_wall_ms frame_intake_phases_ms frame_received_wall_ms
        handoff_intake_phases_ms input_attachments_detail main_stream_chunk_count
        main_stream_count main_stream_event_count message_normalization_detail
        process_anon_mib_result process_anon_mib_turn_start process_cpu_ms_between_turns
        process_cpu_ms_streaming process_cpu_ms_turn process_garbage_collections
        process_peak_rss_mib process_rss_mib_result process_rss_mib_turn_start
        process_start_purge_delay_ms process_start_tuning process_turn_index process_turn_states
        process_turn_threads process_wall_ms_between_turns process_wall_ms_streaming
        process_wall_ms_turn request_build_detail restored_rewind resume_store_confirm_detail
        runner_exit shell_cpu_ms_since_last_result shell_cpu_ms_turn
        shell_wall_ms_since_last_result text_post_count text_post_flush_timer_max_late_ms
        text_post_gap_over_500ms_count time_origin_ms time_to_request_cpu_ms
        time_to_request_from_spawn_ms time_to_request_loop_lag_ms time_to_request_major_faults
        time_to_request_phases_ms tool_pool_build_count tool_pool_build_lapsed_count
        tool_pool_limit_ms tool_pool_moved_at_lapse_count tool_schema_build_detail
        turn_start_control_requests_ms turn_start_phases_ms turn_started_wall_ms
        user_message_server_received_wall_ms warm_spare_claimed
        """
    )

    subtype: ResultSubtype
    is_error: bool = False
    duration_ms: Number = 0
    duration_api_ms: Number = 0
    num_turns: Number = 0
    result: str | None = None
    stop_reason: str | None = None
    session_id: str = ""
    total_cost_usd: Number = 0
    usage_json: Raw = field(name="usage", default=ABSENT)
    model_usage_json: Raw = field(name="modelUsage", default=ABSENT)
    permission_denials: tuple[PermissionDenial, ...] = ()
    uuid: str = ""
    errors: tuple[str, ...] = ()
    structured_output: Raw = ABSENT
    terminal_reason: TerminalReason | None = None
    api_error_status: Number | None = None
    api_error: str | None = None
    api_error_code: str | None = None
    api_error_type: str | None = None
    api_error_origin: str | None = None
    fast_mode_state: FastModeState | None = None
    fast_mode_disabled_reason: FastModeDisabledReason | None = None
    origin_json: Raw = field(name="origin", default=ABSENT)
    user_message_uuid: str | None = None
    user_message_uuids: tuple[str, ...] = ()
    local_command: str | None = None
    queued_turn_count: Number | None = None
    result_index: Number | None = None
    resume_reason: str | None = None
    deferred_tool_use_json: Raw = field(name="deferred_tool_use", default=ABSENT)
    startup_failure_reason: StartupFailureReason | None = None
    invalid_config_file_json: Raw = field(name="invalid_config_file", default=ABSENT)
    credential_expires_at: str | None = None
    ttft_ms: Number | None = None
    ttft_stream_ms: Number | None = None
    time_to_request_ms: Number | None = None
    request_sent_wall_ms: Number | None = None
    first_content_frame_ms: Number | None = None
    first_request_input_tokens: Number | None = None
    first_request_cache_read_input_tokens: Number | None = None
    model_usage_since_last_result_json: Raw = field(
        name="model_usage_since_last_result", default=ABSENT
    )
    subagent_stats_json: Raw = field(name="subagent_stats", default=ABSENT)
    safety_stops: Number | None = None
    policy_answer: str | None = None
    policy_answer_reason: str | None = None
    turn_start_resume_kind: str | None = None
    interrupted_by_shutdown: bool = False
    stopped_by_permission_check: bool = False

    @property
    def failed(self) -> bool:
        """Whether the turn failed.

        An API error is a `success` with `is_error`; an interrupt and the limits are not a
        `success`, and up to 2.1.62 come without `is_error`. An interrupt after a Stop hook made the
        model go on is a `success` without `is_error`.
        """
        return self.is_error or self.subtype is not ResultSubtype.SUCCESS or self.interrupted

    @property
    def outcome(self) -> str:
        """One code for the end of the turn, the most specific that this version gives."""
        if not self.failed:
            return (self.terminal_reason or TerminalReason.COMPLETED).value
        # 2.1.92 to 2.1.200 call a turn completed that ended with an API error.
        if self.terminal_reason not in {None, TerminalReason.COMPLETED}:
            return self.terminal_reason.value
        return "api_error" if self.subtype is ResultSubtype.SUCCESS else self.subtype.value

    @property
    def interrupted(self) -> bool:
        """Whether the turn was interrupted.

        Newer versions report it. For an older one it follows from the absence of an error text.
        """
        if self.terminal_reason is not None:
            return self.terminal_reason.startswith("aborted")
        return self.subtype is ResultSubtype.ERROR_DURING_EXECUTION and not self._complaints

    @property
    def error_text(self) -> str:
        """The error, as a text for people; empty if the turn did not fail.

        Lines of `errors` for the CLI's makers are omitted.
        """
        if not self.failed:
            return ""
        if self._complaints:
            return "\n".join(self._complaints)
        return INTERRUPTED if self.interrupted else self.result or self.outcome

    @property
    def _complaints(self) -> tuple[str, ...]:
        return tuple(line for line in self.errors if not line.startswith(_DIAGNOSTIC))

    @property
    def prompts(self) -> tuple[str, ...]:
        """The uuids of the prompts of this turn, as far as this version reports them."""
        if self.user_message_uuids:
            return self.user_message_uuids
        return (self.user_message_uuid,) if self.user_message_uuid else ()

    @cached_property
    def usage(self) -> Usage:
        """Tokens of this turn, without those of subagents."""
        return decode_usage(self.usage_json)

    @cached_property
    def model_usage(self) -> dict[str, ModelUsage]:
        """Totals of the process so far, by model; subagents are in it."""
        return _decode_models(self.model_usage_json)

    @cached_property
    def model_usage_since_last_result(self) -> dict[str, ModelUsage]:
        """The usage of each model since the previous result (newest versions)."""
        return _decode_models(self.model_usage_since_last_result_json)

    @cached_property
    def origin(self) -> Origin | None:
        """The origin of the turn; mostly absent for turns that a person started."""
        return decode_origin.maybe(self.origin_json)

    @cached_property
    def deferred_tool_use(self) -> DeferredToolUse | None:
        """The tool call that a hook put off."""
        return _decode_deferred.maybe(self.deferred_tool_use_json)

    @cached_property
    def invalid_config_file(self) -> InvalidConfigFile | None:
        """The settings file that kept the CLI from starting."""
        return _decode_config.maybe(self.invalid_config_file_json)

    @cached_property
    def subagent_stats(self) -> SubagentStats | None:
        """The outcomes of the turn's subagents (newest versions)."""
        return _decode_stats.maybe(self.subagent_stats_json)


_decode_models: Lazy[dict[str, ModelUsage]] = Lazy(dict[str, ModelUsage], dict)
_decode_deferred: Lazy[DeferredToolUse] = Lazy(DeferredToolUse, DeferredToolUse)
_decode_config: Lazy[InvalidConfigFile] = Lazy(InvalidConfigFile, InvalidConfigFile)
_decode_stats: Lazy[SubagentStats] = Lazy(SubagentStats, SubagentStats)
