"""The exit codes of `quarterdeck`, and the code of each error. Every command loads it first."""

from __future__ import annotations

from enum import IntEnum

from quarterdeck.domain.errors import (
    LaunchError,
    LinkError,
    QuarterdeckError,
    RequestError,
    UsageError,
)
from quarterdeck.runtime.agent_process import AgentRefused


class Exit(IntEnum):
    """The codes, for scripts."""

    SUCCESS = 0
    FAILED = 1
    """The turn failed, `doctor` found a problem, or a recording could not be read."""
    USAGE = 2
    """Wrong usage; nothing was started."""
    NO_CLI = 3
    """The CLI was not found, could not be started, or died."""
    AGENT = 4
    """An agent ran a command that is for people; nothing was done."""
    JOURNAL_MOVED = 75
    """`serve`: the journal's database is another one (`service.JOURNAL_MOVED`)."""
    INTERRUPTED = 130
    """Ctrl-C."""
    OUTPUT_CLOSED = 141
    """The reader of the output has gone, as with `| head`."""
    TERMINATED = 143
    """SIGTERM."""


class OutputClosed(Exception):
    """The reader of our output has gone."""


def exit_code(error: QuarterdeckError) -> Exit:
    """The code for an error that ended the command."""
    if hasattr(error, "problem"):  # `HubRefused`, which is not loaded for every command
        return Exit.FAILED
    match error:
        case AgentRefused():
            return Exit.AGENT
        case UsageError():
            return Exit.USAGE
        case LaunchError() | LinkError() | RequestError():
            return Exit.NO_CLI
        case _:
            return Exit.FAILED
