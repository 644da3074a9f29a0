"""How a process ended: the one struct for it, from the pipe to the journal."""

from __future__ import annotations

import signal as signals

from quarterdeck.domain.coded import CodedText
from quarterdeck.domain.errors import LinkClosed
from quarterdeck.domain.structs import Value

RUNNER_KILLED = "runner_killed"
"""The fault of a run whose runner died, and its machine perhaps."""


class Exit(Value):
    """How a CLI process ended. Frames and events that report it have these members too."""

    reason: str
    """One sentence for a person. A hub that knows `coded` does not store it."""
    clean: bool = False
    """Whether it ended by itself and without an error."""
    exit_code: int | None = None
    signal: int | None = None
    stderr: tuple[str, ...] = ()
    """The last lines that it wrote to stderr."""
    fault: str = ""
    """What its machine had to do about it: `output_closed` (it closed its output and kept running),
    `no_exit` (it did not exit when its input ended) or `runner_killed` (the runner died)."""
    coded: CodedText | None = None
    """The reason as a code; None in frames of older runners."""

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
            coded=closed.coded,
        )


_CODES = {
    0: "it exited normally",
    126: "the command was found but could not be executed",
    127: "the command was not found",
}
_SIGNALS = {
    signals.SIGHUP: "its terminal or parent process ended",
    signals.SIGINT: "it was interrupted (Ctrl-C)",
    signals.SIGTERM: "it was asked to stop",
    signals.SIGKILL: "it was killed, possibly for lack of memory",
    signals.SIGSEGV: "it crashed",
    signals.SIGABRT: "it crashed",
    signals.SIGPIPE: "its output was not read",
}
_KNOWN = frozenset(int(number) for number in signals.Signals)


def signal_in(exit_code: int) -> int | None:
    """The signal that ended a process, by its exit code as Python says it: negative for a signal,
    or 128 and its number if the process caught the signal.
    """
    number = -exit_code if exit_code < 0 else exit_code - 128
    return number if number in _KNOWN else None


def exit_text(exit_code: int) -> str:
    """How a process ended, as one clause for people."""
    number = signal_in(exit_code)
    if number is None:
        return f"{_CODES.get(exit_code, 'it exited with an error')} (exit code {exit_code})"
    name = signals.Signals(number).name
    said = _SIGNALS.get(signals.Signals(number), "a signal ended it")
    return f"{said} ({name})" if exit_code < 0 else f"{said} ({name}, exit code {exit_code})"
