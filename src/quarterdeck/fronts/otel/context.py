"""The ids of traces and spans: made from what they are about, and not by chance.

So the hub and a CLI that it starts agree on them without a word, and a span that is exported a
second time after a crash is the same span. Pure.
"""

from __future__ import annotations

import hashlib

from quarterdeck.domain.structs import Value


class Ids(Value):
    """A span's place: the trace that it is in, and itself."""

    trace: int
    """128 bits."""
    span: int
    """64 bits."""

    @property
    def traceparent(self) -> str:
        """As the W3C's header has it, sampled."""
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
    """What the environment of a run's CLI has so that its own spans hang below the run's."""
    return {"TRACEPARENT": run_ids(run).traceparent}


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big") or 1  # 0 is no id
