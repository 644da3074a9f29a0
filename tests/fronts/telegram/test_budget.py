"""Budgets: how many calls a chat and the bot may make, by a clock that the test moves."""

from __future__ import annotations

from quarterdeck.fronts.telegram.budget import ChatBudget, Limits, OverallBudget
from quarterdeck.testing.telegram.flood import FloodControl, FloodLimits

PRIVATE, GROUP = 11, -11
LIMITS = Limits()


def calls(chat: int, seconds: float, *, lazy: bool) -> list[float]:
    """When a chat that always wants to call does so."""
    budget, now, made = ChatBudget(chat, LIMITS), 0.0, []
    while (due := max(budget.due(now, lazy=lazy), now)) < seconds:
        now = due
        made.append(now)
        budget.note_call(now)
    return made


def test_a_private_chat_is_called_once_a_second() -> None:
    assert calls(PRIVATE, 100, lazy=False) == list(range(100))


def test_a_group_is_called_twenty_times_a_minute() -> None:
    made = calls(GROUP, 180, lazy=False)
    assert len(made) == 60
    for at in made:
        assert sum(at - 60 < other <= at for other in made) <= 20


def test_telegram_would_refuse_none_of_these_calls() -> None:
    for chat in (PRIVATE, GROUP):
        flood = FloodControl(FloodLimits())
        for at in calls(chat, 300, lazy=False):
            flood.check(chat, at)


def test_progress_in_a_group_leaves_room_for_messages() -> None:
    budget = ChatBudget(GROUP, LIMITS)
    now = 0.0
    for _ in range(LIMITS.group_per_minute - LIMITS.group_reserve):
        now = max(budget.due(now, lazy=True), now)
        budget.note_call(now)
    assert now < 60
    assert budget.due(now, lazy=True) == 60
    for _ in range(LIMITS.group_reserve):
        now = max(budget.due(now, lazy=False), now)
        budget.note_call(now)
    assert now < 60
    assert budget.due(now, lazy=False) == 60


def test_a_chat_that_must_wait_waits() -> None:
    budget = ChatBudget(PRIVATE, LIMITS)
    budget.blocked_until = 30
    assert budget.due(0, lazy=False) == 30
    assert not budget.idle(29)
    assert budget.idle(31)


def test_the_bot_makes_thirty_calls_a_second_and_counts_those_under_way() -> None:
    budget = OverallBudget(LIMITS)
    for _ in range(10):
        budget.began()
    for _ in range(20):
        budget.began()
        budget.note_end(0.5)
    assert budget.due(0.5) == 1.5
    assert budget.due(1.6) <= 1.6
    budget.note_end(1.6)
    assert budget.in_flight == 9


def test_a_refused_chat_says_nothing_about_others_but_several_in_a_row_do() -> None:
    budget = OverallBudget(LIMITS)
    for chat in (1, 2):
        budget.note_refused(chat, 10, retry_after=60)
    budget.note_accepted()
    for chat in (3, 4):
        budget.note_refused(chat, 10, retry_after=60)
    assert budget.due(10) <= 10
    budget.note_refused(5, 10, retry_after=60)
    assert budget.due(10) == 11
    # One call finds out whether it is over; each that is refused makes the next pause longer.
    budget.began()
    assert budget.full
    budget.note_end(11)
    budget.note_refused(6, 11, retry_after=60)
    assert budget.due(11) == 13
    budget.note_accepted()
    budget.began()
    assert not budget.full


def test_a_pause_of_the_whole_bot_is_no_longer_than_telegram_asks_for() -> None:
    budget = OverallBudget(LIMITS)
    now = 0.0
    for number in range(20):
        budget.note_refused(number, now, retry_after=3)
        assert budget.due(now) <= now + 3
        now = max(budget.due(now), now)
