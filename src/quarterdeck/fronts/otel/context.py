"""The ids of traces and spans, derived from their subject instead of random.

So the hub and a CLI that it starts agree on them, and a span that is exported a second time after a
crash is the same span. Pure.
"""

from __future__ import annotations

import hashlib

from quarterdeck.domain.structs import Value


class Ids(Value):
    """The ids of a span: its trace and itself."""

    trace: int
    """128 bits."""
    span: int
    """64 bits."""

    @property
    def traceparent(self) -> str:
        """The value of the W3C header `traceparent`, sampled."""
        return f"00-{self.trace:032x}-{self.span:016x}-01"


def run_ids(run: str) -> Ids:
    """The span of a run, in a trace of its own."""
    digest = hashlib.sha256(f"quarterdeck run {run}".encode()).digest()
    return Ids(trace=_number(digest[:16]), span=_number(digest[16:24]))


def turn_ids(epoch: str, position: int, number: int = 0) -> Ids:
    """A span of the turn that began at a position of a journal. 0 is the turn itself."""
    trace = hashlib.sha256(f"quarterdeck turn {epoch} {position}".encode()).digest()
    span = hashlib.sha256(trace + number.to_bytes(8, "big")).digest()
    return Ids(trace=_number(trace[:16]), span=_number(span[:8]))


def run_environment(run: str) -> dict[str, str]:
    """The variables with which a run's CLI attaches its spans to the run's."""
    return {"TRACEPARENT": run_ids(run).traceparent}


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big") or 1  # 0 is not a valid id
