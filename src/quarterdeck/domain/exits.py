"""How a process ended: the one struct for it, from the pipe to the journal."""

from __future__ import annotations

from quarterdeck.domain.errors import LinkClosed
from quarterdeck.domain.structs import Value

RUNNER_KILLED = "runner_killed"
"""The fault of a run whose runner died, and its machine perhaps."""


class Exit(Value):
    """How a CLI process ended. Frames and events that report it have these members too."""

    reason: str
    """One sentence for a person."""
    clean: bool = False
    """Whether it ended by itself and without an error."""
    exit_code: int | None = None
    signal: int | None = None
    stderr: tuple[str, ...] = ()
    """The last lines that it wrote to stderr."""
    fault: str = ""
    """What its machine had to do about it: `output_closed` (it closed its output and kept running),
    `no_exit` (it did not exit when its input ended) or `runner_killed` (the runner died)."""

    @classmethod
    def of(cls, closed: LinkClosed) -> Exit:
        """The exit of the process at the other end of a pipe."""
        return Exit(
            reason=closed.reason,
            clean=closed.clean,
            exit_code=closed.exit_code,
            signal=closed.signal,
            stderr=closed.stderr,
            fault=closed.fault,
        )
