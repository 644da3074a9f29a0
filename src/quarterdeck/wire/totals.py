"""What each turn used, out of totals that count from the start of the process.

Owns the difference. `total_cost_usd` and `modelUsage` of a result are sums of the process so far,
subagents and background work among them; they begin anew with the next process, so also after a
resume, and with `/clear`. Above it is the ledger of `turns`.
"""

from __future__ import annotations

import math

from quarterdeck.wire.result import ModelUsage, Result


class Totals:
    """The totals of one process, as its last result told them."""

    def __init__(self) -> None:
        self._cost = 0.0
        self._models: dict[str, ModelUsage] = {}

    def reset(self) -> None:
        """The CLI counts from nothing again."""
        self._cost = 0.0
        self._models = {}

    def take(self, result: Result) -> tuple[float, dict[str, ModelUsage]]:
        """What was used since the last result: its cost, and what each model did."""
        total = _number(result.total_cost_usd)
        cost, self._cost = _since(self._cost, total), total
        used: dict[str, ModelUsage] = {}
        for name, model in result.model_usage.items():
            before = self._models.get(name, _NOTHING)
            if model.output_tokens < before.output_tokens or model.cost_usd < before.cost_usd:
                before = _NOTHING
            if (spent := _difference(before, model)) != _NOTHING:
                used[name] = spent
        if result.model_usage:
            self._models = dict(result.model_usage)
        return cost, used


_NOTHING = ModelUsage()


def _since(before: float, total: float) -> float:
    # A total below the last one means that the CLI began to count anew.
    return total - before if total >= before else total


def _difference(before: ModelUsage, now: ModelUsage) -> ModelUsage:
    return ModelUsage(
        input_tokens=_count(now.input_tokens - before.input_tokens),
        output_tokens=_count(now.output_tokens - before.output_tokens),
        cache_read_input_tokens=_count(
            now.cache_read_input_tokens - before.cache_read_input_tokens
        ),
        cache_creation_input_tokens=_count(
            now.cache_creation_input_tokens - before.cache_creation_input_tokens
        ),
        web_search_requests=_count(now.web_search_requests - before.web_search_requests),
        cost_usd=max(_number(now.cost_usd) - _number(before.cost_usd), 0.0),
    )


def _number(value: float | None) -> float:
    number = float(value or 0)
    return number if math.isfinite(number) and number >= 0 else 0.0


def _count(value: float) -> int:
    return int(value) if math.isfinite(value) and value > 0 else 0
