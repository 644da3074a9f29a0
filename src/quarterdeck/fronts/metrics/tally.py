"""Counters over the journal's events since the hub started. Pure.

It keeps no session and no text: counters, the last state of each rate limit, and the set of changed
sessions. Names from outside (models, limits) are bounded in number and length, since each is a time
series in a database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from quarterdeck.protocol import events as ev
from quarterdeck.protocol.session_view import only_counts
from quarterdeck.protocol.stored_events import Stored

MOST_NAMES = 50
"""The most models or limits that are counted separately; the rest is `other`."""
LONGEST_NAME = 100
OTHER = "other"
_VERDICTS = frozenset({"allow", "deny", "ask"})
_STATUSES = frozenset({"allowed", "allowed_warning", "rejected"})


class Tally:
    """The counters."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.lines: Counter[str] = Counter()
        self.turns: Counter[str] = Counter()
        self.runs_started = 0
        self.runs_ended: Counter[str] = Counter()
        self.decisions: Counter[str] = Counter()
        self.cost: dict[str, float] = {}
        self.tokens: Counter[tuple[str, str]] = Counter()
        self.limits: dict[str, ev.RateLimited] = {}
        self.changed: set[str] = set()
        """The sessions whose view may have changed. The reader empties it."""

    def add(self, stored: Stored) -> None:
        """Count one event."""
        event = stored.event
        self.events[str(type(event).__struct_config__.tag)] += 1
        if not only_counts(event):
            self.changed.add(stored.session)
        match event:
            case ev.Said() | ev.SaidBroken():
                self.lines["in"] += 1
            case ev.Sent():
                self.lines["out"] += 1
            case ev.RunStarting():
                self.runs_started += 1
            case ev.RunEnded(clean=clean):
                self.runs_ended["clean" if clean else "died"] += 1
            case ev.TurnEnded():
                self._turn(event)
            case ev.Decided(verdict=verdict):
                self.decisions[verdict if verdict in _VERDICTS else OTHER] += 1
            case ev.RateLimited(limit=limit):
                self.limits[_name(limit or "unknown", self.limits)] = event
            case _:
                pass

    def _turn(self, ended: ev.TurnEnded) -> None:
        self.turns["failed" if ended.failed else "ok"] += 1
        models = ended.models or (ev.ModelTokens(model="unknown", cost_usd=ended.cost_usd),)
        for used in models:
            model = _name(used.model or "unknown", self.cost)
            # A counter never decreases, whatever a CLI reports.
            self.cost[model] = self.cost.get(model, 0.0) + max(0.0, used.cost_usd)
            for kind in ("input", "output", "cache_read", "cache_write"):
                self.tokens[model, kind] += max(0, getattr(used, kind))


def status_of(limited: ev.RateLimited) -> str:
    """The state of a limit, as one of the known values."""
    return limited.status if limited.status in _STATUSES else OTHER


def _name(given: str, known: Collection[str]) -> str:
    name = given[:LONGEST_NAME].encode("utf-8", "replace").decode()
    return name if name in known or len(known) < MOST_NAMES else OTHER
