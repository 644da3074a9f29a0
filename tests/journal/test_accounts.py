"""What a session has used, and what is wrong with it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from quarterdeck.journal import SqliteJournal, fold_all
from quarterdeck.journal.accounts import HEALTHY_MS
from quarterdeck.journal.event_codec import encode
from quarterdeck.journal.usage import shares
from quarterdeck.protocol.events import (
    Alarmed,
    AlarmEnded,
    AnyEvent,
    BudgetFreed,
    BudgetReached,
    Metered,
    ModelTokens,
    RateLimited,
    RunEnded,
    RunStarted,
    RunStarting,
    RunStopping,
    SessionCreated,
    TurnEnded,
)
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import Origin, SessionSpec
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.protocol.usage import UsageBy

CREATED = SessionCreated(spec=SessionSpec(directory="/work"), by="ann")
FIRST = (CREATED, RunStarting(run="r1", machine=""), RunStarted(run="r1", pid=1))


def viewed(*happened: AnyEvent, at: int = 1000, step: int = 0) -> SessionView:
    stored = [
        Stored(
            session="s",
            seq=seq,
            position=seq,
            at=at + seq * step,
            event=event,
            json=encode([event]).lines[0],
        )
        for seq, event in enumerate(happened, 1)
    ]
    view = fold_all(None, stored)
    assert view is not None
    return view


def used(cost: float, output: int = 0, model: str = "opus") -> ModelTokens:
    return ModelTokens(model=model, cost_usd=cost, output=output)


def turn(cost: float, *models: ModelTokens, calls: int = 0) -> TurnEnded:
    return TurnEnded(
        prompts=(),
        failed=False,
        outcome="completed",
        cost_usd=cost,
        models=models,
        tool_calls=calls,
    )


def metered(*models: ModelTokens, run: str = "r1", calls: int = 0) -> Metered:
    return Metered(run=run, models=models, tool_calls=calls)


def test_the_end_of_a_turn_replaces_what_was_metered_of_it() -> None:
    view = viewed(*FIRST, metered(used(0.5, 50), calls=1), metered(used(0.75, 75), calls=2))
    account = view.account
    assert (account.usd, account.estimated_usd, account.tokens) == (0.75, 0.75, 75)
    assert view.cost_usd == 0.75
    view = viewed(*FIRST, metered(used(0.75, 75), calls=2), turn(0.5, used(0.5, 80), calls=2))
    account = view.account
    assert (account.usd, account.estimated_usd, account.tokens) == (0.5, 0.0, 80)
    assert (account.tool_calls, account.run_turns, account.metered) == (2, 1, ())


def test_a_turn_that_nobody_told_the_end_of_keeps_what_was_metered() -> None:
    without = turn(0.0)  # the CLI went idle without a result
    account = viewed(*FIRST, metered(used(0.5, 50)), without).account
    assert (account.usd, account.estimated_usd, account.tokens) == (0.5, 0.5, 50)
    account = viewed(*FIRST, metered(used(0.5, 50)), RunEnded(run="r1", reason="x")).account
    assert (account.usd, account.estimated_usd, account.tokens) == (0.5, 0.5, 50)


def test_a_turn_whose_models_are_not_told_keeps_its_tokens_and_has_its_cost() -> None:
    account = viewed(*FIRST, metered(used(0.5, 50)), turn(0.25)).account
    assert (account.usd, account.estimated_usd, account.tokens) == (0.25, 0.0, 50)


def test_a_run_counts_from_nothing_and_the_session_goes_on() -> None:
    again = (
        RunEnded(run="r1", reason="x", exit_code=0),
        RunStarting(run="r2", machine="", origin=Origin(cli_session="c")),
        metered(used(9.0, 9), run="r1"),  # of the run before: too late
        turn(1.0, used(1.0, 10)),
    )
    account = viewed(*FIRST, turn(2.0, used(2.0, 20)), *again).account
    assert (account.usd, account.tokens) == (3.0, 30)
    assert (account.run_usd, account.run_tokens, account.run_turns) == (1.0, 10, 1)
    assert account.resumed


def test_budgets_alarms_and_limits_are_what_was_told_last() -> None:
    reached = BudgetReached(scope="day", unit="usd", limit=1, spent=2)
    alarm = Alarmed(alarm="no_result", text="Nothing.", action="interrupted")
    limited = RateLimited(status="rejected", limit="five_hour")
    account = viewed(*FIRST, reached, alarm, limited).account
    assert account.budgets == {"day.usd": reached}
    assert account.alarms["no_result"].action == "interrupted"
    assert account.limits == {"five_hour": limited}
    over = (BudgetFreed(scope="day", unit="usd"), AlarmEnded(alarm="no_result"))
    account = viewed(*FIRST, reached, alarm, *over).account
    assert (account.budgets, account.alarms) == ({}, {})
    ended = RunEnded(run="r1", reason="x")
    assert "no_result" in viewed(*FIRST, alarm, ended).account.alarms
    assert viewed(*FIRST, alarm, ended, RunStarting(run="r2", machine="")).account.alarms == {}


def crash(run: str) -> tuple[AnyEvent, ...]:
    started = RunStarted(run=run, pid=1)
    return (RunStarting(run=run, machine=""), started, RunEnded(run=run, reason="x", exit_code=1))


def test_crashes_are_counted_by_how_long_the_cli_was_up() -> None:
    row = (CREATED, *crash("r1"), *crash("r2"), *crash("r3"))
    assert viewed(*row).account.crashes == 3
    assert viewed(*row, step=HEALTHY_MS).account.crashes == 1
    left = RunEnded(run="r1", reason="x", exit_code=0)
    assert viewed(*FIRST, left).account.crashes == 0
    stopped = (RunStopping(run="r1", by="ann"), RunEnded(run="r1", reason="x", exit_code=143))
    assert viewed(*FIRST, *stopped).account.crashes == 0
    never = (CREATED, RunStarting(run="r1", machine=""), RunEnded(run="r1", reason="no folder"))
    assert viewed(*never).account.crashes == 0


def test_costs_that_nobody_can_have_meant_spoil_no_sum() -> None:
    before = viewed(*FIRST)
    event = turn(1e308, used(1e308, 5))
    stored = Stored(
        session="s", seq=9, position=9, at=1, event=event, json=encode([event]).lines[0]
    )
    after = fold_all(before, [stored])
    assert after is not None
    (share,) = shares(before, after, stored)
    assert (share.used.cost_usd, share.used.output, share.used.turns) == (0.0, 5, 1)


@pytest.mark.anyio
async def test_a_file_from_before_there_were_sums_gets_them_when_it_is_opened(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.db"
    async with await SqliteJournal.open(path) as journal:
        await journal.append("a", [*FIRST, metered(used(0.5, 50)), turn(0.25, used(0.25, 40))])
        await journal.append("b", [*FIRST, turn(1.0, used(1.0, 10))])
        await journal.delete("b", by="ann")
        wanted = await journal.usage(UsageBy.SESSION)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE sessions SET folded = 0")
        connection.execute("UPDATE usage SET output = output + 7 WHERE session = 1")
    connection.close()
    async with await SqliteJournal.open(path) as journal:
        assert await journal.usage(UsageBy.SESSION) == wanted
        assert [row.key for row in wanted] == ["a", "b"]
