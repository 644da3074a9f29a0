"""The limits and timeouts of a runner: every number in one place, with its reason.

Owns defaults, and no behaviour. All can be passed to the `Runner`; tests pass small ones.
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
    """What is kept of one run until the hub has acknowledged it."""

    memory: int = 4 * MIB
    """Lines in memory: enough for a connected hub. Older lines are read from the disk."""
    disk: int = 256 * MIB
    """The spool: hours of an agent's work without deltas. When it is full, the CLI has to wait."""
    segment: int = 1 * MIB
    """One file of it, and the most that is read or rewritten at once, in a few milliseconds."""
    batch: int = 512 * KIB
    """Lines in one frame, unless a single line is longer."""


class Limits(Value):
    """The limits of a runner."""

    runs: int = 32
    """The most CLI processes at a time."""
    memory_floor: int = 512 * MIB
    """No CLI is started with less memory available than this; one needs 200 to 400 MiB."""
    line: int = 128 * MIB
    """The longest line of a CLI that is passed on whole; it must fit into a frame."""
    unwritten: int = 32 * MIB
    """Lines that wait for a CLI that does not read. Beyond it the hub is disconnected."""
    claude: str | None = None
    """The path of the only CLI that may be started; None: any that a session names."""
    kept_ended: int = 1 * GIB
    """Spools of ended runs that no hub fetched; beyond it the oldest run is deleted first."""
    bounds: Bounds = Bounds()


class Times(Value):
    """The timeouts of a runner, in seconds."""

    idle: float = 60.0
    """The runner exits after so long without a run and without a hub."""
    vitals: float = 30.0
    greeting: float = 15.0
    """For the hub's first frame; a hub that has just started may have to read its journal first."""
    retry: float = 1.0
    """Until a failed write to the disk is tried again."""
    farewell: float = 3.0
    """When the runner exits: for the hub to fetch the last lines of the runs."""
    git: float = 120.0
    """For one git command: the checkout of a large repository."""
    kept_ended: float = 7 * 24 * 3600.0
    """For the spool of an ended run that no hub fetched."""
    stop: StopSteps = StopSteps()
