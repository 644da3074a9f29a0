"""A seat: one real CLI of one version on one transport, offline, and an `Agent` to drive it.

The matrix of seats is what `tests/real_cli` runs over, and what the compatibility page shows: each
test tells its seat what it found, and the plugin in `support.compatibility` makes the table.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from quarterdeck import Agent, Hook, Options, ToolServer, listen
from quarterdeck.agent.service import Decide, Elicit
from quarterdeck.agent.start import start_link
from quarterdeck.claude.launch import ArgumentFiles
from quarterdeck.links.base import Link
from quarterdeck.testing import RealCli, ScriptedModel, isolated_env
from quarterdeck.wire.versions import Version
from support.meddling import Meddler

MATRIX = (
    ("2.1.37", "stdio"),
    ("2.1.37", "ws"),
    ("2.1.62", "stdio"),
    ("2.1.62", "ws"),
    ("2.1.120", "stdio"),
    ("2.1.120", "ws"),
    ("2.1.325", "stdio"),
)
"""2.1.120 is the last version that dials a host of one's own; 2.1.325 the newest that we know."""

REPEATING = (("2.1.37", "ws"), ("2.1.62", "ws"), ("2.1.120", "stdio"))
"""Where the transport makes no difference these show what their neighbours show, at a second of
processor time a start. Tests in which it makes one are marked `transports_differ`."""


def children(parent: int) -> list[int]:
    """The processes that one has started itself and that still run."""
    tasks = Path(f"/proc/{parent}/task").iterdir()
    return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]


class Seat:
    """What a test of the real CLI gets."""

    def __init__(
        self,
        cli: RealCli,
        transport: str,
        model: ScriptedModel,
        folder: Path,
        note: Callable[[str, str, str], None],
    ) -> None:
        self.cli = cli
        self.transport = transport
        self.model = model
        self.home = folder / "home"
        self.cwd = folder / "work"
        self.stderr: list[str] = []
        self.theme = ""
        """The heading under which the next findings stand; empty is that of the test's module."""
        self._note = note
        self.home.mkdir()
        self.cwd.mkdir()

    @property
    def version(self) -> Version:
        """The CLI's version, to be compared: `seat.version >= release(120)`."""
        version = Version.parse(self.cli.version)
        assert version is not None
        return version

    @property
    def repeats(self) -> bool:
        """Whether this seat shows only what depends on the transport."""
        return (self.cli.version, self.transport) in REPEATING

    def options(self, **changes: object) -> Options:
        """Options for this CLI in its own empty folder, with what a test wants changed."""
        env = isolated_env(self.home, self.model.url)
        more = changes.pop("env", {})
        assert isinstance(more, dict)
        base = Options(claude=self.cli.command, cwd=self.cwd, env={**env, **more})
        return msgspec.structs.replace(base, **changes)

    @asynccontextmanager
    async def agent(
        self,
        *,
        decide: Decide | None = None,
        hooks: Iterable[Hook] = (),
        tools: Iterable[ToolServer] = (),
        elicit: Elicit | None = None,
        meddler: Meddler | None = None,
        **changes: object,
    ) -> AsyncIterator[Agent]:
        """A running agent: over stdio, or started here to dial a listener of ours."""
        options = self.options(**changes)
        async with (
            self._link(options, meddler) as link,
            Agent(
                options,
                decide=decide,
                hooks=hooks,
                tools=tools,
                elicit=elicit,
                link=link,
                version=self.version if meddler is not None else None,
                stderr=self.stderr.append,
            ) as agent,
        ):
            yield agent

    @asynccontextmanager
    async def _link(self, options: Options, meddler: Meddler | None) -> AsyncIterator[Link | None]:
        """The link that an agent is to use; None where it can make its own."""
        if self.transport == "ws":
            async with listen() as listener:
                link = await listener.launch(options, stderr=self.stderr.append)
                yield link if meddler is None else meddler.over(link)
        elif meddler is None:
            yield None
        else:
            with ArgumentFiles() as spill:
                _, process = await start_link(options, spill, self.stderr.append)
                yield meddler.over(process)

    @property
    def pid(self) -> int:
        """The number of this seat's CLI, while one runs. Old ones change their command line."""
        mine = f"\0HOME={self.home}\0".encode()
        found: list[int] = []
        for pid in children(os.getpid()):
            with suppress(OSError):  # one that has just ended has no environment
                if mine in b"\0" + Path(f"/proc/{pid}/environ").read_bytes():
                    found.append(pid)
        (one,) = found
        return one

    def found(self, capability: str, answer: str = "yes") -> None:
        """Tell the compatibility page what this CLI does: `yes`, `no`, or a few words."""
        self._note(capability, answer, self.theme)
