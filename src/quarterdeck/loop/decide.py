"""The next step of a loop: a pure function of its spec and its state.

No clock, no process, no disk: the runner carries out the step and adds what came of it to the
state. A goal is checked before the limits, so that a task that is done with the last turn is done.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from quarterdeck.domain.structs import DECODE_ERRORS, Value
from quarterdeck.loop.spec import LoopSpec, StopReason
from quarterdeck.loop.state import LoopState, Turn, TurnOutcome

LEAST_WAIT = 1.0
FIRST_WAIT = 60.0
LONGEST_WAIT = 900.0
"""Seconds between two tries, where nobody knows when the account's limit ends."""


class MakePlan(Value):
    """Let an agent make a plan."""


class Work(Value):
    """Let an agent work on the task."""

    number: int


class RunCheck(Value):
    """Run the command that tells whether the task is done."""

    command: str


class AskReviewer(Value):
    """Let a second agent review the last turn."""

    number: int


class WaitForLimit(Value):
    """Wait until the account's limit ends."""

    until: float


class Stop(Value):
    """The loop is over."""

    reason: StopReason
    text: str


Step: TypeAlias = MakePlan | Work | RunCheck | AskReviewer | WaitForLimit | Stop


def next_step(state: LoopState) -> Step:
    """What to do now."""
    spec = state.spec
    if state.stopped is not None:
        return Stop(reason=state.stopped.reason, text=state.stopped.text)
    if state.waiting_until is not None:
        return WaitForLimit(until=state.waiting_until)
    last = state.turns[-1] if state.turns else None
    if last is not None:
        if last.outcome.stopped_by is not None:
            return _person(last.outcome.stopped_by)
        # A turn that failed or was cut off is checked, too: its files may be right.
        if spec.stops.command is not None and last.check is None:
            return RunCheck(command=spec.stops.command)
        if spec.review is not None and last.verdict is None and _worth_a_review(last):
            return AskReviewer(number=last.number)
        if (goal := _goal(spec, last)) is not None and _is_agreed(spec, last):
            return goal
    if (limit := _limit(state)) is not None:
        return limit
    if spec.plan and state.plan is None:
        return MakePlan()
    return Work(number=len(state.turns) + 1)


def seconds_left(state: LoopState) -> float | None:
    """How long the loop may still work."""
    limit = state.spec.stops.seconds
    return None if limit is None else max(0.0, limit - state.worked)


def budget_left(state: LoopState) -> float | None:
    """What the loop may still spend, in US dollars."""
    limit = state.spec.stops.budget_usd
    return None if limit is None else max(0.0, limit - state.cost_usd)


def after_usage_limit(state: LoopState, outcome: TurnOutcome, now: float) -> LoopState:
    """The state after a turn that the account's limit has ended: the turn is not counted.

    The loop waits until the limit ends, or, where nobody knows when that is, longer each time.
    """
    assert outcome.limited is not None
    failures = state.limit_failures + 1
    state = replace(state, limit_failures=failures, lost_usd=state.lost_usd + outcome.cost_usd)
    left = state.spec.stops.usage_limit_seconds - state.waited
    known = outcome.limited.resets_at
    if left < LEAST_WAIT or (known is not None and known - now > left):
        # To wait and then to stop would help nobody.
        return replace(state, waited=max(state.waited, state.spec.stops.usage_limit_seconds))
    if known is not None:
        pause = max(known - now, LEAST_WAIT)
    else:
        pause = min(FIRST_WAIT * 2 ** min(failures - 1, 10), LONGEST_WAIT)
    return replace(state, waiting_until=now + min(pause, left))


def says_phrase(text: str, phrase: str) -> bool:
    """Whether the phrase is on a line of its own; marks of Markdown around it do not count.

    Inside a sentence it does not count: an agent may write about the phrase.
    """
    wanted = _bare(phrase)
    return any(_bare(line) == wanted for line in text.splitlines())


def _bare(line: str) -> str:
    stripped = line.strip().strip("*_`").strip()
    return stripped or line.strip()


class _Done(msgspec.Struct):
    done: bool


def says_done(result: bytes) -> bool:
    """Whether a structured result says that the task is done."""
    try:
        return msgspec.json.decode(result, type=_Done).done
    except DECODE_ERRORS:
        return False


def _worth_a_review(turn: Turn) -> bool:
    return not turn.outcome.failed and turn.cut_off is None


def _is_agreed(spec: LoopSpec, turn: Turn) -> bool:
    return spec.review is None or (turn.verdict is not None and turn.verdict.agree)


def _goal(spec: LoopSpec, turn: Turn) -> Stop | None:
    """The goal that the turn has reached. A command counts most, since it is a proof."""
    stops = spec.stops
    if stops.command is not None and turn.check is not None and turn.check.code == 0:
        return Stop(reason=StopReason.COMMAND, text=f"The command exited with 0: {stops.command}")
    if turn.outcome.failed or turn.cut_off is not None:
        return None
    if stops.phrase is not None and says_phrase(turn.outcome.text, stops.phrase):
        return Stop(reason=StopReason.PHRASE, text=f"The agent wrote: {stops.phrase}")
    if stops.result and says_done(bytes(turn.outcome.result)):
        return Stop(reason=StopReason.RESULT, text="The structured result says `done`.")
    return None


def _limit(state: LoopState) -> Stop | None:
    stops = state.spec.stops
    last = state.turns[-1] if state.turns else None
    if state.limit_failures and state.waited >= stops.usage_limit_seconds:
        return Stop(
            reason=StopReason.USAGE_LIMIT,
            text=f"The account's limit did not end within {stops.usage_limit_seconds:g} s.",
        )
    if _over_budget(state):
        return Stop(
            reason=StopReason.BUDGET,
            text=f"${state.cost_usd:.4f} of ${stops.budget_usd:g} is spent.",
        )
    if stops.seconds is not None and state.worked >= stops.seconds:
        return Stop(reason=StopReason.TIME, text=f"It has worked for {stops.seconds:g} s.")
    if last is not None and last.cut_off is StopReason.TIME:
        return Stop(reason=StopReason.TIME, text="The time ended in the middle of a turn.")
    if failed_in_row(state) >= stops.failures:
        assert last is not None
        return Stop(
            reason=StopReason.FAILED,
            text=f"{stops.failures} turns in a row failed: {last.outcome.outcome}",
        )
    if stops.no_progress is not None and idle_turns(state) >= stops.no_progress:
        return Stop(
            reason=StopReason.NO_PROGRESS,
            text=f"{stops.no_progress} turns in a row changed no file and no number of failing"
            " tests.",
        )
    if len(state.turns) >= stops.turns:
        return Stop(reason=StopReason.TURNS, text=f"It has run {stops.turns} turns.")
    return None


def _over_budget(state: LoopState) -> bool:
    limit = state.spec.stops.budget_usd
    if limit is None:
        return False
    last = state.turns[-1] if state.turns else None
    # The CLI ends a turn just below the limit, where the next request would be above it.
    ended = last is not None and last.outcome.outcome in _BUDGET_CODES
    return state.cost_usd >= limit or ended


_BUDGET_CODES = frozenset({"error_max_budget_usd", "budget_exhausted", "budget_reached"})


def failed_in_row(state: LoopState) -> int:
    """How many turns in a row have failed, up to the last one."""
    count = 0
    for turn in reversed(state.turns):
        if not turn.outcome.failed:
            break
        count += 1
    return count


def idle_turns(state: LoopState) -> int:
    """How many turns in a row have changed no file and no number of failing tests."""
    count = 0
    for number in range(len(state.turns) - 1, -1, -1):
        turn = state.turns[number]
        before = state.turns[number - 1].check if number else None
        if turn.changed is not False:
            break
        if before is not None and turn.check is not None and before.failing != turn.check.failing:
            break
        count += 1
    return count


def _person(by: str) -> Stop:
    return Stop(reason=StopReason.PERSON, text=f"It was stopped by {by}." if by else "Stopped.")
