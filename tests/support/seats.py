"""A seat: one real CLI of one version on one transport, offline, and an `Agent` to drive it.

The matrix of seats is what `tests/real_cli` runs over, and what the compatibility page shows: each
test tells its seat what it found, and the plugin in `support.compatibility` makes the table.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from quarterdeck import Agent, Hook, Options, ToolServer, listen
from quarterdeck.agent.service import Decide, Elicit
from quarterdeck.testing import RealCli, ScriptedModel, isolated_env
from quarterdeck.wire.versions import Version

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


class Seat:
    """What a test of the real CLI gets."""

    def __init__(
        self,
        cli: RealCli,
        transport: str,
        model: ScriptedModel,
        folder: Path,
        note: Callable[[str, str], None],
    ) -> None:
        self.cli = cli
        self.transport = transport
        self.model = model
        self.home = folder / "home"
        self.cwd = folder / "work"
        self.stderr: list[str] = []
        self._note = note
        self.home.mkdir()
        self.cwd.mkdir()

    @property
    def version(self) -> Version:
        """The CLI's version, to be compared: `seat.version >= release(120)`."""
        version = Version.parse(self.cli.version)
        assert version is not None
        return version

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
        **changes: object,
    ) -> AsyncIterator[Agent]:
        """A running agent: over stdio, or started here to dial a listener of ours."""
        options = self.options(**changes)
        if self.transport == "stdio":
            async with Agent(
                options,
                decide=decide,
                hooks=hooks,
                tools=tools,
                elicit=elicit,
                stderr=self.stderr.append,
            ) as agent:
                yield agent
            return
        async with listen() as listener:
            link = await listener.launch(options)
            async with Agent(
                options, decide=decide, hooks=hooks, tools=tools, elicit=elicit, link=link
            ) as agent:
                yield agent

    def found(self, capability: str, answer: str = "yes") -> None:
        """Tell the compatibility page what this CLI does: `yes`, `no`, or a few words."""
        self._note(capability, answer)
