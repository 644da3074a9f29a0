"""What others count, as the metrics take it: plain numbers, asked for when a page is made.

The fronts do not know each other; whoever composes the service makes these out of what they have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from quarterdeck.domain.structs import Value


class Deliveries(Value):
    """What became of a webhook's deliveries since the hub started."""

    delivered: int
    failed: int
    given_up: int
    waiting: int


class Commits(Value):
    """How long the journal's commits took since the hub started.

    `buckets` has an upper bound in seconds and the number of commits up to it; `seconds` is all of
    their time.
    """

    buckets: Sequence[tuple[float, int]]
    count: int
    seconds: float


class Sources(NamedTuple):
    """Where the numbers of others come from. Each is quick and does not raise."""

    requests: Callable[[], Mapping[tuple[str, str, int], int]] = dict
    """HTTP requests by method, route and status."""
    streams: Callable[[], int] = int
    """How many clients follow the stream now."""
    deliveries: Callable[[], Mapping[str, Deliveries]] = dict
    """By the name of the webhook."""
    journal_bytes: Callable[[], int | None] = lambda: None
    commits: Callable[[], Commits | None] = lambda: None
