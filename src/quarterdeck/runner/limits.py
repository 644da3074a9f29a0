"""How much a runner takes on, keeps and waits for: every number in one place, with its reason.

Owns defaults and no behaviour. All of it can be given to the `Runner`; tests give small ones.
"""

from __future__ import annotations

from quarterdeck.domain.structs import Value
from quarterdeck.links.subprocess import StopSteps

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

FRAME_LIMIT = 256 * MIB
"""The largest frame between a runner and the hub. Both sides must allow it."""


class Bounds(Value):
    """What is kept of one run for a hub that does not have it yet."""

    memory: int = 4 * MIB
    """Lines in memory: enough for a hub that is there. What is older is read from the disk."""
    disk: int = 256 * MIB
    """The spool: hours of an agent's work without deltas. Beyond it the CLI has to wait."""
    segment: int = 1 * MIB
    """One file of it; also what is read or rewritten at once, so a matter of milliseconds."""
    batch: int = 512 * KIB
    """Lines in one frame, unless a single line is longer."""


class Limits(Value):
    """What a runner takes on."""

    runs: int = 32
    """CLI processes at a time."""
    memory_floor: int = 512 * MIB
    """No CLI is started when less memory than this is available; one needs 200 to 400 MiB."""
    line: int = 128 * MIB
    """The longest line of a CLI that is passed on whole; it must fit into a frame."""
    unwritten: int = 32 * MIB
    """Lines for one CLI that does not read them. The hub is cut off beyond, and comes back."""
    claude: str | None = None
    """The only CLI that is started, by its path; None: the one that a session names or that is
    found."""
    kept_ended: int = 1 * GIB
    """Spools of ended runs that no hub came for; beyond it the oldest run goes first."""
    bounds: Bounds = Bounds()


class Times(Value):
    """How long a runner waits for what, in seconds."""

    idle: float = 60.0
    """With no run and no hub for so long, the runner ends."""
    vitals: float = 30.0
    greeting: float = 15.0
    """For the hub's first frame; a hub that has just started may fold its journal first."""
    retry: float = 1.0
    """Until a disk that could not be written is tried again."""
    farewell: float = 3.0
    """At the end of the runner, for the hub to take what the runs said last."""
    git: float = 120.0
    """For one git command: the checkout of a large repository."""
    kept_ended: float = 7 * 24 * 3600.0
    """For the spool of an ended run that no hub came for."""
    stop: StopSteps = StopSteps()
