"""`quarterdeck usage` and `quarterdeck budget`, with a hub and a fake CLI."""

from __future__ import annotations

import json

import anyio
import pytest

from quarterdeck.cli.hub.usage import bar, duration, limit_text, short
from quarterdeck.protocol.sessions import Budget
from quarterdeck.protocol.usage import LimitState
from quarterdeck.testing import fake
from support.served_deck import ServedDeck, until_true

pytestmark = pytest.mark.anyio

MODELS = {"claude-fake": {"inputTokens": 900, "outputTokens": 100, "costUSD": 1.25}}


async def test_what_was_used_is_shown_and_a_budget_that_is_reached_can_be_raised(
    deck: ServedDeck,
) -> None:
    deck.command.play_fake(
        fake.Initialize(),
        fake.Expect("user"),
        fake.say(fake.assistant("hi"), fake.result("done", total_cost_usd=1.25, modelUsage=MODELS)),
        fake.Serve(),
    )
    await deck.serve()
    session = await deck.new("hello", "--budget-usd", "9", "--restart")
    await until_true(lambda: deck.client.session(session).turns == 1)
    shown = await deck("usage", "--by", "model")
    for part in ("claude-fake", "$1.25", "1.0k", "total", "█"):
        assert part in shown.out
    report = json.loads((await deck("usage", "--json")).out)
    assert report["total"]["cost_usd"] == 1.25
    assert "no usage since 2999" in (await deck("usage", "--since", "2999-01-01")).out

    spec = (await anyio.to_thread.run_sync(deck.client.session, session)).spec
    assert (spec.restart, spec.budget) == (True, Budget(session_usd=9))
    assert "$9.00 for the session" in (await deck("budget", session)).out
    changed = await deck("budget", session, "--session-usd", "1")
    assert "$1.00 for the session" in changed.out
    refused = await deck("send", session, "more", code=1)
    assert "the budget of $1.00 for the session is used up ($1.25)" in refused.err
    more = await deck("budget", session, "--session-usd", "5", "--run-tokens", "5000")
    assert "$5.00 for the session" in more.out
    shape = await anyio.to_thread.run_sync(deck.client.session, session)
    assert shape.spec.budget == Budget(session_usd=5, run_tokens=5000)
    assert "no limit" in (await deck("budget", session, "--lift")).out
    wrong = await deck("budget", session, "--lift", "--run-usd", "3", code=2)
    assert "give no limit with it" in wrong.err


def test_numbers_are_short_and_bars_are_never_nothing() -> None:
    assert [short(number) for number in (950, 12_345, 4_500_000)] == ["950", "12.3k", "4.5M"]
    assert [duration(s) for s in (0, 59, 61, 7200, 90_000)] == [
        "-",
        "59s",
        "1m 1s",
        "2h 0m",
        "1d 1h",
    ]
    assert (bar(1.0, 4), bar(0.5, 4), bar(0.0, 4)) == ("████", "██", "")
    assert bar(0.0001, 4) == "▏"


def test_where_the_account_stands_is_one_line() -> None:
    state = LimitState(
        machine="", limit="five_hour", status="rejected", at=0, resets_at=7_260_000, used=1.0
    )
    text = limit_text(state, 0.0).plain
    assert text.startswith("five hour: rejected, 100% used, resets 1970-01-01 ")
    assert text.endswith("(in 2h 1m)")
