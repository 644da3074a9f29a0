"""The connection to a CLI process: through a runner, or of a CLI that connected to the hub itself.

`RunPort` is what a session may do with its process; `RunOwner` is what the process does to its
session. Everything is numbered on both ways, so that either side may be cut off, killed and
restarted at any byte, and nothing is lost or doubled.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Raw

from quarterdeck.domain.coded import CodedText
from quarterdeck.domain.exits import Exit
from quarterdeck.protocol.runner_frames import Connection, ProgramAct, TranscriptQuery
from quarterdeck.protocol.sandbox import SandboxReport
from quarterdeck.protocol.sessions import Origin, SessionSpec


class RunEnd(Exit):
    """How a process ended. `number` is that of its last line, if it has one.

    `unheard`: it may have written more, and its machine can read that in the CLI's transcript.
    """

    number: int | None = None
    unheard: bool = False


class RunPort(Protocol):
    """A session's connection to its process. No call waits: frames may be sent later."""

    def write(self, number: int, line: bytes) -> None:
        """Have a line written, once and in the order of its number."""

    def acknowledge(self, upto: int) -> None:
        """The journal has all lines up to this number: they need not be kept any more."""

    def stop(self, *, force: bool = False) -> None:
        """End the process."""

    def forget(self) -> None:
        """The run is over and journalled: nothing of it is needed any more."""

    def unwritten(self) -> dict[int, bytes]:
        """The lines, by number, of which it is not known that the CLI has them."""

    def read_transcript(self, wanted: TranscriptQuery) -> None:
        """Read the transcript of an ended run, for the messages that the hub does not have.

        Or (`earlier`) of a run that resumed a conversation, for what was written before it.
        """


class RunOwner(Protocol):
    """Receives what a process does."""

    async def run_started(
        self,
        run: str,
        pid: int | None,
        version: str | None,
        directory: str | None,
        sandbox: SandboxReport | None = None,
    ) -> None:
        """Its process runs, in this sandbox. None: nobody knows."""

    async def run_connected(self, run: str, connection: Connection) -> None:
        """It connected to a host through its sandbox's proxy, or was refused."""

    async def run_said(self, run: str, first: int, lines: list[bytes]) -> None:
        """Its CLI wrote lines; the first has the number `first`."""

    async def run_ended(self, run: str, ending: RunEnd) -> None:
        """Its process has ended, or did not start."""

    async def run_transcript(
        self, run: str, cli_session: str | None, lines: list[bytes], *, last: bool
    ) -> None:
        """Messages of its transcript; `last`: there are no more."""

    async def run_earlier(self, run: str, lines: list[bytes]) -> None:
        """Messages of its transcript that are older than its first prompt."""

    async def run_lost(self, run: str, why: CodedText) -> None:
        """The link to it is lost. It may still run."""

    async def run_found(self, run: str) -> None:
        """The link to it is back, and no line was lost."""

    async def run_acted(self, run: str, act: ProgramAct, by: str) -> None:
        """Its program has asked something of it, or a hook of the program has decided something."""

    async def run_answered(self, run: str, request_id: str, response: Raw, by: str) -> bool:
        """Its program has answered a permission request. False: it is not open yet."""

    async def run_resumed(self, run: str, last: str | None) -> None:
        """Its CLI connected again. Lines may be lost: `last` is the last message that it sent."""


class Machines(Protocol):
    """Where processes are started."""

    def start(self, run: str, session: str, spec: SessionSpec, origin: Origin) -> RunPort:
        """Have a CLI started; the run's owner is called with what it does.

        Raises `NotFound` for an unknown machine, and `LaunchError` if it cannot start this.
        """

    def attach(self, run: str, session: str, machine: str, *, said: int) -> RunPort:
        """Take hold again of a run that an earlier hub started, of which we have `said` lines."""
