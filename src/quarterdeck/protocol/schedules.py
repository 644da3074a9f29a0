"""Schedules and inbound webhooks: what starts a session without a person, and what became of it.

Owns what people may write in the configuration and send to the API, and what they are shown. When a
time is due, and what is started, is known elsewhere.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.commands import Id
from quarterdeck.protocol.projects import BYPASS, HERE, Amount, Count, PlacePath

JobName = Annotated[str, Meta(min_length=1, max_length=64, pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$")]
"""A part of a URL, of branch names and of names of sessions."""
PromptText = Annotated[str, Meta(min_length=1, max_length=100_000)]
Word = Annotated[str, Meta(min_length=1, max_length=500)]
Overlap = Literal["skip", "wait"]
CatchUp = Literal["skip", "once", "all"]


class LoopJob(Value, forbid_unknown_fields=True):
    """A loop in place of a single session: turns until a goal or a limit is reached."""

    command: PromptText | None = None
    """A command of the shell on the hub's machine; the task is done when it exits with 0."""
    phrase: Word | None = None
    """The task is done when the agent writes this on a line of its own."""
    turns: Annotated[int, Meta(ge=1, le=10_000)] = 20
    no_progress: Count | None = None
    """Stop after so many turns without a change."""
    plan: bool = False
    """The first turn makes a plan."""
    review: bool = False
    """A second agent reviews each turn, and must agree."""
    commit: bool = False
    """Commit what each turn has changed."""

    def __post_init__(self) -> None:
        """Refuse a phrase that cannot be on one line."""
        if self.phrase is not None and len(self.phrase.splitlines()) != 1:
            raise UsageError("phrase: must be one line")


class Job(Value, forbid_unknown_fields=True):
    """What is started, for whom, and within which limits."""

    name: JobName
    prompt: PromptText
    """`{name}`, `{planned}` and `{date}` are replaced by the name and the planned time."""
    owner: Word | None = None
    """The person whom the sessions belong to. Over the API it is who makes the schedule."""
    project: Word | None = None
    directory: PlacePath | None = None
    machine: Word | None = None
    model: Word | None = None
    mode: Word | None = None
    effort: Word | None = None
    policy: Word | None = None
    worktree: bool = False
    """Each session works in a git worktree of its own."""
    ask_timeout: Amount | None = None
    """Seconds after which an unanswered question is denied."""
    max_running: Annotated[int, Meta(ge=1, le=20)] = 1
    overlap: Overlap = "skip"
    """When `max_running` sessions run already: skip this time, or wait for one to end."""
    per_day: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    max_minutes: Amount | None = None
    """A session that works longer is stopped."""
    budget_usd: Amount | None = None
    budget_tokens: Count | None = None
    """What each session may spend."""
    keep_running: bool = False
    """Leave the session's CLI running when its work is done."""
    paused: bool = False
    loop: LoopJob | None = None

    def __post_init__(self) -> None:
        """Refuse what no session could be started with, or what only a person may choose."""
        if self.project is None and self.directory is None:
            raise UsageError("directory: a schedule needs a directory or a project")
        if self.directory is not None and not self.directory.startswith("/"):
            raise UsageError("directory: must be an absolute path")
        if self.mode == BYPASS:
            raise UsageError(f"mode: {BYPASS} is never used without a person")
        if self.loop is not None and self.machine not in {None, HERE}:
            raise UsageError("machine: a loop works on the hub's machine")


class Schedule(Job):
    """A job with planned times: one of `cron`, `every` and `at`."""

    cron: Word | None = None
    """Five fields: minute, hour, day of the month, month, day of the week."""
    every: Word | None = None
    """An interval, as `90m`, `6h` or `1d`; at least a minute."""
    at: Word | None = None
    """One time, in ISO 8601. Without an offset it is in `timezone`."""
    timezone: Word = "UTC"
    catch_up: CatchUp = "once"
    """What happens to times that passed while the hub did not run."""
    catch_up_max: Annotated[int, Meta(ge=1, le=100)] = 10
    """With `all`: the newest so many."""

    def __post_init__(self) -> None:
        """Refuse a schedule with no times, or with several kinds of them."""
        Job.__post_init__(self)
        if sum(each is not None for each in (self.cron, self.every, self.at)) != 1:
            raise UsageError("a schedule needs one of cron, every and at")


class InboundHook(Job):
    """A job that a request to `/in/NAME` starts."""

    secret_file: PlacePath
    overlap: Overlap = "wait"
    auth: Literal["hmac", "bearer", "github"] = "hmac"
    per_minute: Annotated[int, Meta(ge=1, le=600)] = 10
    max_bytes: Annotated[int, Meta(ge=1, le=1_048_576)] = 65_536
    """The largest body."""


# --- what became of it ---------------------------------------------------------------------------


class FiringState(StrEnum):
    """What became of one start."""

    WAITING = "waiting"
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


class Cause(StrEnum):
    """Why a session was to be started."""

    TIME = "time"
    PERSON = "person"
    REQUEST = "request"


class Firing(Value, omit_defaults=False):
    """One start, or why there was none. Times are in ms since 1970."""

    id: str
    schedule: str
    planned: int
    made: int
    """When it was recorded."""
    cause: Cause
    by: str
    """The person who asked for it, or the address that a request came from."""
    state: FiringState
    reason: str
    """A code: why it was skipped, or failed."""
    detail: str
    session: str | None
    loop: str | None
    started: int | None
    ended: int | None
    cost_usd: float | None


class ScheduleShape(Value, omit_defaults=False):
    """A schedule or an inbound webhook, as people are shown it. Times are in ms since 1970."""

    name: str
    kind: Literal["cron", "every", "at", "webhook"]
    when: str
    """The expression, the interval or the time; for a webhook its path."""
    timezone: str | None
    source: Literal["config", "api"]
    owner: str
    prompt: str
    project: str | None
    directory: str | None
    loop: bool
    """It starts a loop, not a single session."""
    catch_up: CatchUp | None
    overlap: Overlap
    max_running: int
    per_day: int | None
    budget_usd: float | None
    budget_tokens: int | None
    paused: bool
    paused_by: str
    next: int | None
    """The next planned time; null if there is none."""
    running: int
    waiting: int
    last: Firing | None


class ScheduleList(Value, omit_defaults=False):
    """All schedules and inbound webhooks, by name."""

    schedules: tuple[ScheduleShape, ...]


class FiringList(Value, omit_defaults=False):
    """The starts of a schedule, newest first. `next` is the `before` of the following page."""

    firings: tuple[Firing, ...]
    next: str | None


class RunSchedule(Value, forbid_unknown_fields=True):
    """Start a session of a schedule now. Choose an `id` to make the call idempotent."""

    id: Id | None = None
