"""Which kinds of sandbox work on this machine: each is really tried.

`doctor` and the runner are above; the kinds are below.
"""

from __future__ import annotations

from quarterdeck.domain.structs import Value
from quarterdeck.sandbox.spec import Kind, SandboxSpec


class Probe(Value):
    """Whether a kind works here. `why` is for a person: what is missing, or what it cannot do."""

    kind: Kind
    works: bool
    why: str = ""


def probe(*, again: bool = False) -> tuple[Probe, ...]:
    """Try each kind of this platform, the best first. Blocks for some milliseconds.

    The result is kept for the life of the process, unless `again`.
    """
    raise NotImplementedError


def choose(spec: SandboxSpec | None = None) -> Kind | None:
    """The best kind that works here, and that can enforce `spec`; None if there is none. Blocks."""
    raise NotImplementedError
