"""What a loop is to do, and when it stops.

Plain data, checked when it is made. `decide` reads it, `prompts` makes texts of it, and a `Worker`
runs the turns. It does not know how an agent is started.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta, Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import ABSENT, Value

LONGEST_TASK = 1024 * 1024
"""Characters of a task."""
MOST_TURNS = 10_000

Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
Turns = Annotated[int, Meta(ge=1, le=MOST_TURNS)]
Text = Annotated[str, Meta(min_length=1, max_length=LONGEST_TASK)]


class StopReason(StrEnum):
    """Why a loop stopped."""

    PHRASE = "phrase"
    """The agent wrote the phrase on a line of its own."""
    COMMAND = "command"
    """The command exited with 0."""
    RESULT = "result"
    """The structured result says that the task is done."""
    TURNS = "turns"
    TIME = "time"
    BUDGET = "budget"
    NO_PROGRESS = "no_progress"
    """No file and no number of failing tests has changed for some turns."""
    USAGE_LIMIT = "usage_limit"
    """The account's limit did not end within the time that the loop may wait."""
    FAILED = "failed"
    """Several turns in a row failed."""
    PERSON = "person"


GOALS = frozenset({StopReason.PHRASE, StopReason.COMMAND, StopReason.RESULT})
"""The task is done. Any other reason is a limit."""

EXIT_CODES: dict[StopReason, int] = {
    StopReason.PHRASE: 10,
    StopReason.COMMAND: 11,
    StopReason.RESULT: 12,
    StopReason.TURNS: 20,
    StopReason.TIME: 21,
    StopReason.BUDGET: 22,
    StopReason.NO_PROGRESS: 23,
    StopReason.USAGE_LIMIT: 24,
    StopReason.FAILED: 25,
    StopReason.PERSON: 30,
}
"""The exit code of `quarterdeck loop` for each reason. 0 to 4 have their usual meaning."""


class Stops(Value, forbid_unknown_fields=True):
    """When a loop stops. It needs a goal or a limit: `turns` is always one."""

    phrase: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    command: Text | None = None
    """A command of the shell; the task is done when it exits with 0."""
    command_seconds: Seconds = 900.0
    """How long the command may run."""
    result: bool = False
    """Ask each turn for a structured result. The task is done when its `done` is true."""
    result_schema: Raw = ABSENT
    """The JSON schema of the result; it must have a boolean `done`. Absent: `done`, `summary`."""
    turns: Turns = 20
    seconds: Seconds | None = None
    budget_usd: Annotated[float, Meta(gt=0)] | None = None
    no_progress: Turns | None = None
    """Stop after this many turns without a change of files or of failing tests."""
    failures: Turns = 3
    """Stop after this many failed turns in a row."""
    usage_limit_seconds: Annotated[float, Meta(ge=0, le=31_536_000)] = 21_600.0
    """How long to wait for the account's limit, in total."""

    def __post_init__(self) -> None:
        """Refuse a schema that has no `done`."""
        if self.phrase is not None and len(self.phrase.splitlines()) != 1:
            raise UsageError("phrase: must be one line")
        if self.result_schema:
            if not self.result:
                raise UsageError("result_schema: needs `result`")
            check_schema(bytes(self.result_schema))


class Review(Value, forbid_unknown_fields=True):
    """A second agent that reviews each turn. The task is done only when it agrees."""

    prompt: str = ""
    """What it is to look for."""
    model: str | None = None


class LoopSpec(Value, forbid_unknown_fields=True):
    """A loop: a task, how its turns are run, and when it stops."""

    task: Text
    directory: str
    name: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    fresh: bool = True
    """Each turn is a new process with a new conversation. Otherwise there is one conversation."""
    plan: bool = False
    """The first turn makes a plan, and changes nothing."""
    review: Review | None = None
    worktree: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    """Work in a git worktree on a branch of this name."""
    commit: bool = False
    """Commit what each turn has changed."""
    proof: Annotated[tuple[Text, ...], Meta(max_length=20)] = ()
    """Commands that are run when the loop stops; the report shows their output."""
    ask_timeout: Seconds | None = 300.0
    """Seconds after which a question that nobody answers is denied. None waits without limit."""
    background_seconds: Seconds = 1800.0
    """How long a turn may wait for its background tasks."""
    stops: Stops = Stops()

    def __post_init__(self) -> None:
        """Refuse what cannot work, before anything is started."""
        if not self.directory.startswith("/"):
            raise UsageError("directory: must be an absolute path")
        if not self.task.strip():
            raise UsageError("task: is empty")

    @property
    def title(self) -> str:
        """A short name for people."""
        return self.name or self.task.strip().splitlines()[0][:80]


def check_spec(spec: LoopSpec) -> LoopSpec:
    """The same spec, with the bounds of all members checked. Raises `UsageError`."""
    try:
        return msgspec.json.decode(msgspec.json.encode(spec), type=LoopSpec)
    except msgspec.ValidationError as error:
        raise UsageError(f"the loop cannot be right: {error}") from error


class _Property(msgspec.Struct):
    type: object = None


class _Schema(msgspec.Struct):
    type: str = ""
    properties: dict[str, _Property] = {}


def check_schema(schema: bytes) -> None:
    """Raise `UsageError` unless it is the schema of an object with a boolean `done`."""
    try:
        found = msgspec.json.decode(schema, type=_Schema)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(f"result_schema: {error}") from error
    done = found.properties.get("done")
    if found.type != "object" or done is None or done.type != "boolean":
        raise UsageError("result_schema: must be an object with a boolean `done`")
