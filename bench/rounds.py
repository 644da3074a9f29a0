"""Rounds: each measures everybody once, in an order that changes from round to round."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping

ROUNDS = 5
"""Fewer than that say little on a machine that others use too."""


def interleaved(measures: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """What each of them took in each round."""
    found: dict[str, list[float]] = {name: [] for name in measures}
    for names in _orders(list(measures), rounds):
        for name in names:
            found[name].append(measures[name]())
    return found


async def interleaved_async(
    measures: Mapping[str, Callable[[], Awaitable[float]]], rounds: int
) -> dict[str, list[float]]:
    """The same, for what is measured on an event loop."""
    found: dict[str, list[float]] = {name: [] for name in measures}
    for names in _orders(list(measures), rounds):
        for name in names:
            found[name].append(await measures[name]())
    return found


def _orders(names: list[str], rounds: int) -> list[list[str]]:
    return [random.Random(number).sample(names, len(names)) for number in range(rounds)]


def percentile(values: list[float], share: float) -> float:
    """The value that this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
