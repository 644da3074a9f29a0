"""What a turn used, out of the totals of a process."""

from __future__ import annotations

from quarterdeck.wire.codec import from_cli
from quarterdeck.wire.messages import Result
from quarterdeck.wire.reports import ModelUsage
from quarterdeck.wire.turns import Totals
from support import lines


def result(cost: float, **models: dict[str, float]) -> Result:
    message = from_cli(lines.result("r", cost=cost, modelUsage=models).rstrip())
    assert isinstance(message, Result)
    return message


def test_each_turn_gets_what_came_to_the_totals_since_the_last_one() -> None:
    totals = Totals()
    totals.take(result(0.5, opus={"inputTokens": 100, "outputTokens": 10, "costUSD": 0.5}))
    cost, models = totals.take(
        result(
            0.75,
            opus={"inputTokens": 150, "outputTokens": 20, "costUSD": 0.625},
            haiku={"inputTokens": 7, "cacheReadInputTokens": 9, "costUSD": 0.125},
        )
    )
    assert cost == 0.25
    assert models == {
        "opus": ModelUsage(input_tokens=50, output_tokens=10, cost_usd=0.125),
        "haiku": ModelUsage(input_tokens=7, cache_read_input_tokens=9, cost_usd=0.125),
    }


def test_a_model_that_did_nothing_in_a_turn_is_not_among_it() -> None:
    totals = Totals()
    same = result(0.5, opus={"inputTokens": 100, "outputTokens": 10, "costUSD": 0.5})
    totals.take(same)
    assert totals.take(same) == (0.0, {})


def test_totals_below_the_last_ones_are_counted_from_nothing() -> None:
    totals = Totals()
    totals.take(result(0.5, opus={"outputTokens": 10, "costUSD": 0.5}))
    cost, models = totals.take(result(0.25, opus={"outputTokens": 4, "costUSD": 0.25}))
    assert (cost, models) == (0.25, {"opus": ModelUsage(output_tokens=4, cost_usd=0.25)})


def test_after_a_reset_everything_is_new() -> None:
    totals = Totals()
    totals.take(result(0.5, opus={"outputTokens": 10, "costUSD": 0.5}))
    totals.reset()
    cost, models = totals.take(result(0.75, opus={"outputTokens": 12, "costUSD": 0.75}))
    assert (cost, models["opus"].output_tokens) == (0.75, 12)


def test_totals_that_nobody_can_have_meant_count_for_nothing() -> None:
    cost, models = Totals().take(result(-3.0, opus={"outputTokens": -5, "costUSD": -1.0}))
    assert (cost, models) == (0.0, {})
