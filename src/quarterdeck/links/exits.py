"""How a process ended, in words that a person understands.

Pure. `SubprocessLink` is above it; it knows exit codes and signals, and no process.
"""

from __future__ import annotations

import signal as signals

import msgspec

_CODES = {
    0: "it ended normally",
    1: "it gave up with an error",
    126: "the command was found but could not be executed",
    127: "the command was not found",
}
_MEANINGS = {
    signals.SIGHUP: "its terminal or its parent went away",
    signals.SIGINT: "it was interrupted, as by Ctrl-C",
    signals.SIGTERM: "it was asked to stop",
    signals.SIGKILL: "it was killed, by somebody or for want of memory",
    signals.SIGSEGV: "it crashed",
    signals.SIGABRT: "it crashed",
    signals.SIGPIPE: "nobody read what it wrote",
}


class Exit(msgspec.Struct, frozen=True):
    """The end of a process. `code` is as Python says it: negative for a signal."""

    code: int

    @property
    def signal(self) -> int | None:
        """The signal that ended it, also when it caught it and says so with 128 + its number."""
        number = -self.code if self.code < 0 else self.code - 128
        return number if number in _NUMBERS else None

    @property
    def description(self) -> str:
        """One clause for a person: what happened, with the code."""
        if self.signal is None:
            said = _CODES.get(self.code, "it gave up with an error")
            return f"{said} (exit code {self.code})"
        name = signals.Signals(self.signal).name
        said = _MEANINGS.get(signals.Signals(self.signal), "a signal ended it")
        return f"{said} ({name})" if self.code < 0 else f"{said} ({name}, exit code {self.code})"


_NUMBERS = frozenset(int(number) for number in signals.Signals)
