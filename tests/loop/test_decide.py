"""The next step of a loop, from its state alone."""

from __future__ import annotations

import pytest
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.errors import UsageError
from quarterdeck.loop.decide import (
    AskReviewer,
    MakePlan,
    RunCheck,
    Stop,
    WaitForLimit,
    Work,
    after_usage_limit,
    idle_turns,
    next_step,
    says_done,
    says_phrase,
)
from quarterdeck.loop.runner import new_loop, reopen
from quarterdeck.loop.spec import EXIT_CODES, LoopSpec, Review, StopReason, Stops
from quarterdeck.loop.state import (
    Check,
    Limited,
    LoopState,
    Stopped,
    Turn,
    TurnOutcome,
    Verdict,
)

DONE = TurnOutcome(text="well\n\n**ALL DONE**")
BUSY = TurnOutcome(text="more to do")


def loop(stops: Stops | None = None, *, turns: tuple[Turn, ...] = (), **more: object) -> LoopState:
    spec = LoopSpec(task="Do it.", directory="/w", stops=stops or Stops())
    spec = replace(spec, **more)
    return replace(new_loop(spec, at=1000.0), turns=turns)


def turn(number: int = 1, outcome: TurnOutcome = BUSY, **more: object) -> Turn:
    made = Turn(number=number, began=1.0, ended=2.0, outcome=outcome, changed=True)
    return replace(made, **more)


def check(code: int | None, failing: int | None = None) -> Check:
    return Check(command="make", code=code, failing=failing)


def reason(state: LoopState) -> StopReason | None:
    step = next_step(state)
    return step.reason if isinstance(step, Stop) else None


def test_each_reason_has_an_exit_code_of_its_own() -> None:
    assert set(EXIT_CODES) == set(StopReason)
    assert len(set(EXIT_CODES.values())) == len(StopReason)
    assert not set(EXIT_CODES.values()) & {0, 1, 2, 3, 4, 130, 141, 143}


def test_a_loop_plans_works_checks_and_is_reviewed_in_this_order() -> None:
    state = loop(Stops(command="make", phrase="ALL DONE"), plan=True, review=Review())
    assert next_step(state) == MakePlan()
    state = replace(state, plan="first this")
    assert next_step(state) == Work(number=1)
    state = replace(state, turns=(turn(),))
    assert next_step(state) == RunCheck(command="make")
    state = replace(state, turns=(turn(check=check(1)),))
    assert next_step(state) == AskReviewer(number=1)
    verdict = Verdict(agree=False, reason="no")
    state = replace(state, turns=(turn(check=check(1), verdict=verdict),))
    assert next_step(state) == Work(number=2)


@pytest.mark.parametrize(
    ("stops", "last", "expected"),
    [
        (Stops(phrase="ALL DONE"), turn(outcome=DONE), StopReason.PHRASE),
        (Stops(phrase="ALL DONE"), turn(outcome=replace(DONE, failed=True)), None),
        (Stops(phrase="ALL DONE"), turn(outcome=TurnOutcome(text="not ALL DONE yet")), None),
        (Stops(command="make"), turn(check=check(0)), StopReason.COMMAND),
        (Stops(command="make"), turn(check=check(1)), None),
        (Stops(command="make"), turn(check=check(None)), None),
        (
            Stops(result=True),
            turn(outcome=TurnOutcome(result=Raw(b'{"done":true}'))),
            StopReason.RESULT,
        ),
        (Stops(result=True), turn(outcome=TurnOutcome(result=Raw(b'{"done":"yes"}'))), None),
        (Stops(result=True), turn(outcome=TurnOutcome(result=Raw(b"[]"))), None),
        (Stops(turns=1), turn(), StopReason.TURNS),
        (Stops(turns=1, phrase="ALL DONE"), turn(outcome=DONE), StopReason.PHRASE),
        (Stops(budget_usd=1), turn(outcome=TurnOutcome(cost_usd=1.5)), StopReason.BUDGET),
        (
            Stops(budget_usd=1),
            turn(outcome=TurnOutcome(cost_usd=0.9, failed=True, outcome="error_max_budget_usd")),
            StopReason.BUDGET,
        ),
        (Stops(failures=1), turn(outcome=TurnOutcome(failed=True)), StopReason.FAILED),
        (Stops(no_progress=1), turn(changed=False), StopReason.NO_PROGRESS),
        (Stops(no_progress=1), turn(changed=None), None),
        (Stops(), turn(cut_off=StopReason.TIME), StopReason.TIME),
        (Stops(), turn(outcome=TurnOutcome(stopped_by="ann")), StopReason.PERSON),
    ],
)
def test_a_loop_stops_for_this_reason(
    stops: Stops, last: Turn, expected: StopReason | None
) -> None:
    assert reason(loop(stops, turns=(last,))) == expected


def test_a_goal_counts_only_when_the_reviewer_agrees() -> None:
    state = loop(Stops(phrase="ALL DONE"), review=Review())
    no = turn(outcome=DONE, verdict=Verdict(agree=False, reason="look again"))
    yes = turn(outcome=DONE, verdict=Verdict(agree=True))
    assert next_step(replace(state, turns=(no,))) == Work(number=2)
    assert reason(replace(state, turns=(yes,))) is StopReason.PHRASE


def test_progress_is_a_changed_file_or_another_number_of_failing_tests() -> None:
    idle = [turn(n, changed=False, check=check(1, failing=3)) for n in (1, 2, 3)]
    assert idle_turns(loop(turns=tuple(idle))) == 3
    fewer = turn(4, changed=False, check=check(1, failing=2))
    assert idle_turns(loop(turns=(*idle, fewer))) == 0
    changed = turn(4, changed=True, check=check(1, failing=3))
    assert idle_turns(loop(turns=(*idle, changed, idle[0]))) == 1


def test_time_is_what_the_loop_has_worked() -> None:
    state = replace(loop(Stops(seconds=60)), worked=59.0)
    assert next_step(state) == Work(number=1)
    assert reason(replace(state, worked=60.0)) is StopReason.TIME


def test_a_usage_limit_is_waited_for_until_it_ends() -> None:
    known = TurnOutcome(failed=True, cost_usd=0.5, limited=Limited(resets_at=2000.0))
    state = after_usage_limit(loop(), known, now=1500.0)
    assert next_step(state) == WaitForLimit(until=2000.0)
    assert state.cost_usd == 0.5
    assert not state.turns


def test_where_nobody_knows_when_a_limit_ends_each_wait_is_longer() -> None:
    unknown = TurnOutcome(failed=True, limited=Limited())
    state, waits = loop(), []
    for _ in range(6):
        state = after_usage_limit(state, unknown, now=0.0)
        waits.append(state.waiting_until)
    assert waits == [60, 120, 240, 480, 900, 900]


@pytest.mark.parametrize(("bound", "resets_at"), [(0.0, None), (0.0, 10.0), (100.0, 5000.0)])
def test_a_limit_that_ends_too_late_stops_the_loop_at_once(
    bound: float, resets_at: float | None
) -> None:
    state = loop(Stops(usage_limit_seconds=bound))
    limited = TurnOutcome(failed=True, limited=Limited(resets_at=resets_at))
    assert reason(after_usage_limit(state, limited, now=0.0)) is StopReason.USAGE_LIMIT


def test_a_loop_that_a_person_stopped_can_go_on_and_one_that_is_done_cannot() -> None:
    stopped = Stopped(reason=StopReason.PERSON, text="", at=1.0)
    state = replace(loop(turns=(turn(outcome=TurnOutcome(stopped_by="ann")),)), stopped=stopped)
    assert next_step(reopen(state)) == Work(number=2)
    done = replace(state, stopped=replace(stopped, reason=StopReason.PHRASE))
    assert reopen(done) == done


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ALL DONE", True),
        ("  `ALL DONE`  ", True),
        ("first\n**ALL DONE**\nlast", True),
        ("I will write ALL DONE at the end", False),
        ("> ALL DONE", False),
        ("", False),
        ("all done", False),
    ],
)
def test_a_phrase_counts_on_a_line_of_its_own(text: str, found: bool) -> None:
    assert says_phrase(text, "ALL DONE") is found


@pytest.mark.parametrize("result", [b"", b"{", b"[" * 100_000, b'{"done":1}', b'{"finished":true}'])
def test_a_result_that_cannot_be_read_is_not_done(result: bytes) -> None:
    assert not says_done(result)


@pytest.mark.parametrize(
    "make",
    [
        lambda: LoopSpec(task="x", directory="relative"),
        lambda: LoopSpec(task="  ", directory="/w"),
        lambda: Stops(phrase="two\nlines"),
        lambda: Stops(result_schema=Raw(b'{"type":"object"}')),
        lambda: Stops(result=True, result_schema=Raw(b'{"type":"object"}')),
        lambda: Stops(result=True, result_schema=Raw(b"{")),
    ],
)
def test_a_loop_that_cannot_work_is_refused_before_it_starts(make: object) -> None:
    assert callable(make)
    with pytest.raises(UsageError):
        make()
