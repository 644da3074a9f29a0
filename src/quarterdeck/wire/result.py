"""The `result` message: how a turn ended, and what it used.

Owns one struct for every kind of end; `reports` declares its parts. `failed` combines two members
to tell whether a turn failed. Parts that may change form (usage, origin, statistics) are decoded on
demand, so that a number that cannot be decoded does not hide the end of a turn.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from msgspec import Raw, field

from quarterdeck.domain.structs import ABSENT, name_set
from quarterdeck.wire.base import Message, Number
from quarterdeck.wire.content import Usage, decode_usage
from quarterdeck.wire.envelope import Lazy
from quarterdeck.wire.info import Origin, decode_origin
from quarterdeck.wire.reports import (
    DeferredToolUse,
    FastModeDisabledReason,
    FastModeState,
    InvalidConfigFile,
    ModelUsage,
    PermissionDenial,
    ResultSubtype,
    StartupFailureReason,
    SubagentStats,
    TerminalReason,
)

INTERRUPTED = "the turn was interrupted"

_DIAGNOSTIC = "[ede_diagnostic]"
"""How newer versions begin a line of `errors` that is for their makers."""


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
