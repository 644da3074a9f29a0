"""A loop on the newest real CLI and the scripted model, without a hub."""

from __future__ import annotations

from pathlib import Path

import anyio
from msgspec.structs import replace

from quarterdeck.agent.options import Options
from quarterdeck.agent.service import Decide
from quarterdeck.loop import AgentWorker, LoopSpec, LoopState, LoopStore, Stops, new_loop, run_loop
from quarterdeck.runtime.clock import Clock
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.testing import RealCli, ScriptedModel, isolated_env
from support.bounds import SECONDS
from support.repositories import make_repository


class StoppedClock(Clock):
    """Time that goes on only when a test moves it."""

    def __init__(self) -> None:
        super().__init__()
        self._now = super().now()
        self._moved = anyio.Event()

    def now(self) -> float:
        return self._now

    def move(self, seconds: float) -> None:
        """Let time go on, for all that wait."""
        self._now += seconds
        self._moved.set()
        self._moved = anyio.Event()

    async def wait(self, event: anyio.Event, seconds: float | None = None) -> bool:
        until = None if seconds is None else self._now + seconds
        while not event.is_set() and (until is None or self._now < until):
            async with background_tasks() as tasks:
                either = anyio.Event()
                for each in (event, self._moved):
                    tasks.start_soon(_ring, each, either)
                await either.wait()
        return event.is_set()


async def _ring(first: anyio.Event, then: anyio.Event) -> None:
    await first.wait()
    then.set()


class Bench:
    """What a test of a loop gets."""

    def __init__(self, cli: RealCli, model: ScriptedModel, folder: Path) -> None:
        self.cli = cli
        self.model = model
        self.home = folder / "home"
        self.home.mkdir()
        self.work = make_repository(folder / "work")
        self.store = LoopStore(folder / "data")
        self.told: list[str] = []

    def options(self, **changes: object) -> Options:
        """Options for the CLI in a home of its own."""
        env = isolated_env(self.home, self.model.url, CLAUDE_CODE_MAX_RETRIES="1")
        return replace(Options(claude=self.cli.command, env=env), **changes)

    def loop(self, stops: Stops, **more: object) -> LoopState:
        """A loop that has not begun."""
        spec = LoopSpec(task="Mend the parser.", directory=str(self.work), stops=stops)
        return new_loop(replace(spec, **more))

    async def run(
        self,
        loop: LoopState,
        *,
        decide: Decide | None = None,
        clock: Clock | None = None,
        **options: object,
    ) -> LoopState:
        """Run it to its end."""
        worker = AgentWorker(self.options(**options), decide=decide)
        told = self.told.append
        with anyio.fail_after(SECONDS):
            return await run_loop(loop, worker, self.store, report=told, clock=clock)
