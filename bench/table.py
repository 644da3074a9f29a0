"""What was measured, as data and as a table. Pure: measures nothing, prints nothing.

A `Measure` is one line of the table: what we took, what the peer and the limit took beside us, and
the bar that was set before. A figure is the median over the rounds, with the smallest and largest
beside it. A ratio is made within one round, of two figures that were measured next to each other:
machines are shared, and their speed changes from one minute to the next.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from enum import StrEnum

import msgspec


class Kind(StrEnum):
    """How a bar is meant. Those of the ratio decide whether the run has failed."""

    RATIO_AT_LEAST = "ratio at least"
    RATIO_AT_MOST = "ratio at most"
    AT_LEAST = "at least"
    AT_MOST = "at most"
    NONE = "none"


class Bar(msgspec.Struct, frozen=True):
    """What was wanted before anything was measured."""

    kind: Kind = Kind.NONE
    value: float = 0.0

    @property
    def is_ratio(self) -> bool:
        """Whether it holds on every machine, fast or slow."""
        return self.kind in {Kind.RATIO_AT_LEAST, Kind.RATIO_AT_MOST}


class Sample(msgspec.Struct, frozen=True):
    """One figure, measured once a round."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """What counts."""
        return statistics.median(self.values)

    def text(self, unit: str) -> str:
        """The median and the range."""
        if len(self.values) == 1:
            return f"{number(self.median)} {unit}".strip()
        low, high = min(self.values), max(self.values)
        return f"{number(self.median)} {unit} ({number(low)} to {number(high)})".replace("  ", " ")


class Peer(msgspec.Struct, frozen=True):
    """Somebody who does the same work, or the least that this machine needs for it."""

    name: str
    sample: Sample


class Measure(msgspec.Struct, frozen=True):
    """One line of the table."""

    row: int
    work: str
    unit: str
    ours: Sample
    peer: Peer | None = None
    limit: Peer | None = None
    ratio: Sample | None = None
    bar: Bar = Bar()
    note: str = ""

    @property
    def reached(self) -> bool | None:
        """Whether the bar is reached at the median; None when there is no bar."""
        judged = self.ratio if self.bar.is_ratio else self.ours
        if judged is None or self.bar.kind is Kind.NONE:
            return None
        if self.bar.kind in {Kind.RATIO_AT_LEAST, Kind.AT_LEAST}:
            return judged.median >= self.bar.value
        return judged.median <= self.bar.value

    @property
    def failed(self) -> bool:
        """Whether the whole run fails for it."""
        return self.bar.is_ratio and self.reached is not True


class Machine(msgspec.Struct, frozen=True):
    """Where and when it was measured."""

    when: str
    python: str
    processors: int
    load_before: float
    load_after: float
    versions: dict[str, str]


class Results(msgspec.Struct, frozen=True):
    """A whole run, as `bench/results.json` keeps it."""

    machine: Machine
    rounds: int
    seconds: float
    measures: tuple[Measure, ...]


def paired(over: Sequence[float], under: Sequence[float]) -> Sample:
    """The ratios of two figures, round by round."""
    return Sample(tuple(a / b for a, b in zip(over, under, strict=True)))


def exit_code(measures: Sequence[Measure]) -> int:
    """1 when a bar that is a ratio is not reached. A bar in seconds depends on the machine."""
    return int(any(measure.failed for measure in measures))


def number(value: float) -> str:
    """Three digits that mean something, and thousands apart."""
    if abs(value) >= 1000:
        digits = 10 ** (len(str(int(abs(value)))) - 3)
        return f"{round(value / digits) * digits:,}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3g}"


HEAD = ("#", "work", "ours", "the peer", "the limit", "ratio", "the bar", "")


def cells(measure: Measure) -> tuple[str, ...]:
    """The columns of one line."""
    unit, bar = measure.unit, measure.bar
    wanted = f"{bar.kind} {number(bar.value)} {'×' if bar.is_ratio else unit}".strip()
    return (
        str(measure.row),
        measure.work,
        measure.ours.text(unit),
        _peer(measure.peer, unit),
        _peer(measure.limit, unit),
        "" if measure.ratio is None else measure.ratio.text("×"),
        "" if bar.kind is Kind.NONE else wanted,
        {None: "", True: "reached", False: "MISSED"}[measure.reached],
    )


def _peer(peer: Peer | None, unit: str) -> str:
    return "" if peer is None else f"{peer.name}: {peer.sample.text(unit)}"


def plain(measures: Sequence[Measure]) -> str:
    """The table for a terminal: two lines for each measure, since the columns are wide."""
    lines = []
    for measure in measures:
        row, work, ours, peer, limit, ratio, bar, reached = cells(measure)
        lines.append(f"{row:>2}  {work}")
        parts = [f"ours {ours}", peer, limit and f"limit, {limit}", ratio and f"ratio {ratio}"]
        lines.append("      " + "; ".join(part for part in parts if part))
        if bar or measure.note:
            wanted = f"{bar}: {reached}" if bar else ""
            lines.append("      " + ". ".join(part for part in (wanted, measure.note) if part))
    return "\n".join(lines)


def markdown(measures: Sequence[Measure]) -> str:
    """The table for a page."""
    rows = [HEAD, tuple("---" for _ in HEAD), *(cells(measure) for measure in measures)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    notes = [f"- {each.row}, {each.work}: {each.note}" for each in measures if each.note]
    return table + ("\n\n" + "\n".join(notes) if notes else "")
