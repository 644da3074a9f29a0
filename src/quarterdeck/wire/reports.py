"""Numbers that the CLI reports: the context, the usage, and the account's limits.

The messages that carry them are in `messages`.
"""

from __future__ import annotations

from msgspec import Raw, field

from quarterdeck.domain.structs import ABSENT
from quarterdeck.wire.base import Number, OpenEnum, Part
from quarterdeck.wire.envelope import Body, Lazy
from quarterdeck.wire.result import ModelUsage


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


class RateLimitWindow(Part):
    """How full one window is; `utilization` goes from 0 to 1."""

    utilization: Number | None = None
    resets_at: Number | None = field(name="resetsAt", default=None)
    surpassed_threshold: Number | None = field(name="surpassedThreshold", default=None)


class RateLimitInfo(Part):
    """The state of the account's limits. Times are seconds since 1970; `utilization` is 0 to 1."""

    status: RateLimitStatus = RateLimitStatus.ALLOWED
    resets_at: Number | None = field(name="resetsAt", default=None)
    rate_limit_type: str | None = field(name="rateLimitType", default=None)
    utilization: Number | None = None
    overage_status: RateLimitStatus | None = field(name="overageStatus", default=None)
    overage_resets_at: Number | None = field(name="overageResetsAt", default=None)
    overage_disabled_reason: str | None = field(name="overageDisabledReason", default=None)
    is_using_overage: bool | None = field(name="isUsingOverage", default=None)
    overage_in_use: bool | None = field(name="overageInUse", default=None)
    overage_enabled: bool | None = field(name="overageEnabled", default=None)
    surpassed_threshold: Number | None = field(name="surpassedThreshold", default=None)
    limit_scope: str | None = field(name="limitScope", default=None)
    error_code: str | None = field(name="errorCode", default=None)
    can_user_purchase_credits: bool | None = field(name="canUserPurchaseCredits", default=None)
    has_chargeable_saved_payment_method: bool | None = field(
        name="hasChargeableSavedPaymentMethod", default=None
    )
    unified_windows: dict[str, RateLimitWindow] = field(name="unifiedWindows", default_factory=dict)


decode_context_usage: Lazy[ContextUsage] = Lazy(ContextUsage, ContextUsage)
decode_usage_report: Lazy[UsageReport] = Lazy(UsageReport, UsageReport)
