"""What the CLI reports in numbers and codes: the usage, the context, the account's limits, and how
a turn ended.

The messages that carry them are in `messages` and `result`.

Written by tools/write_wire.py from tools/wire/reports.toml; do not edit.
"""

from __future__ import annotations

from msgspec import Raw, field

from quarterdeck.domain.structs import ABSENT
from quarterdeck.wire.base import Number, OpenEnum, Part
from quarterdeck.wire.envelope import Body, Lazy


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


class ContextCategory(Part):
    """One kind of content, and how much of the context it takes."""

    name: str = ""
    tokens: Number = 0
    kind: str = ""


class OverLimit(Part):
    """By how much the context is too full, and for what."""

    tokens_over: Number = 0
    kind: str = ""


class ContextUsage(Body):
    """What fills the context: the answer to `/context`."""

    model: str = ""
    total_tokens: Number = 0
    raw_max_tokens: Number = 0
    percentage: Number = 0
    over_limit: OverLimit | None = None
    categories: tuple[ContextCategory, ...] = ()
    mcp_tools: Raw = ABSENT
    memory_files: Raw = ABSENT
    agents: Raw = ABSENT
    skills: Raw = ABSENT


class SessionUsage(Part):
    """The session's usage so far."""

    total_cost_usd: Number = 0
    total_api_duration_ms: Number = 0
    total_duration_ms: Number = 0
    total_lines_added: Number = 0
    total_lines_removed: Number = 0
    model_usage: dict[str, ModelUsage] = field(default_factory=dict)


class UsageReport(Body):
    """The session's usage and the account's limits: the answer to `/usage`."""

    session: SessionUsage | None = None
    rate_limits: Raw = ABSENT


class RateLimitStatus(OpenEnum):
    """Whether the account may continue."""

    ALLOWED = "allowed"
    ALLOWED_WARNING = "allowed_warning"
    REJECTED = "rejected"


class RateLimitWindow(Part, rename="camel"):
    """How full one window is; `utilization` goes from 0 to 1."""

    utilization: Number | None = None
    resets_at: Number | None = None
    surpassed_threshold: Number | None = None


class RateLimitInfo(Part, rename="camel"):
    """The state of the account's limits. Times are seconds since 1970; `utilization` is 0 to 1."""

    status: RateLimitStatus = RateLimitStatus.ALLOWED
    resets_at: Number | None = None
    rate_limit_type: str | None = None
    utilization: Number | None = None
    overage_status: RateLimitStatus | None = None
    overage_resets_at: Number | None = None
    overage_disabled_reason: str | None = None
    is_using_overage: bool | None = None
    overage_in_use: bool | None = None
    overage_enabled: bool | None = None
    surpassed_threshold: Number | None = None
    limit_scope: str | None = None
    error_code: str | None = None
    can_user_purchase_credits: bool | None = None
    has_chargeable_saved_payment_method: bool | None = None
    unified_windows: dict[str, RateLimitWindow] = field(default_factory=dict)


decode_context_usage: Lazy[ContextUsage] = Lazy(ContextUsage, ContextUsage)

decode_usage_report: Lazy[UsageReport] = Lazy(UsageReport, UsageReport)
