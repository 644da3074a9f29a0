"""A hub with its journal on disk, a real runner in a process of its own, and real or fake CLIs."""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from msgspec import Raw

from quarterdeck.hub.hub import Hub
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.journal.sqlite import SqliteJournal
from quarterdeck.links.websocket.accept import serve_endpoint
from quarterdeck.protocol.commands import Answer, AnswerAsk, CreateSession, StopSession
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.views import AskView
from quarterdeck.runner import spawn_runner
from quarterdeck.testing import RealCli, ScriptedModel, isolated_env
from support.apart import apart
from support.bounds import SECONDS
from support.processes import Processes, running

Restart = Callable[[], Awaitable[Hub]]
NO_RULES = 'default = "cli"\n'


async def until(hub: Hub, session: str, holds: Callable[[SessionView], bool]) -> SessionView:
    """Wait until a session is as wanted, going by its events."""
    with anyio.fail_after(SECONDS):
        view = await hub.session(session)
        if holds(view):
            return view
        async for _ in hub.follow({session: view.head}):
            view = await hub.session(session)
            if holds(view):
                return view
    raise AssertionError("the journal was closed")


def real_spec(
    folder: Path, cli: RealCli, model: ScriptedModel, work: str = "work", **more: Any
) -> SessionSpec:
    """A session of a real CLI, offline, with a home and a place to work in below `folder`."""
    for name in ("home", work):
        (folder / name).mkdir(exist_ok=True)
    env = isolated_env(folder / "home", model.url)
    return SessionSpec(directory=str(folder / work), claude=cli.command[-1], env=env, **more)


class House:
    """What a test of the whole gets."""

    def __init__(
        self, hub: Hub, folder: Path, start_runner: Callable[[], int], restart: Restart
    ) -> None:
        self.hub = hub
        self._restart = restart
        self.folder = folder
        self.start_runner = start_runner
        """Starts one where none lives, and gives its pid. Blocks."""
        self.runner = 0

    async def restart_hub(self) -> None:
        """End the hub and start another on its journal, while the runner and its CLIs live on."""
        self.hub = await self._restart()

    async def new(self, spec: SessionSpec, prompt: bytes = b'"hello"') -> str:
        """Make a session with a prompt."""
        command = CreateSession(spec=spec, prompt=Raw(prompt), by="test")
        return (await self.hub.submit(command)).session

    async def until(self, session: str, holds: Callable[[SessionView], bool]) -> SessionView:
        """Wait until the session is as wanted."""
        return await until(self.hub, session, holds)

    async def ask(self, session: str) -> AskView:
        """Wait for an open question of the session."""
        view = await self.until(session, lambda view: bool(view.asks))
        return next(iter(view.asks.values()))

    async def answer(self, ask: AskView, answer: Answer, by: str = "test", role: str = "") -> None:
        """Answer a question."""
        await self.hub.submit(AnswerAsk(ask=ask.opened.ask, answer=answer, by=by, role=role))


class PolicedHouse:
    """A house, and the policy that holds in it."""

    def __init__(self, home: House, policies: Policies) -> None:
        self.home = home
        self._policies = policies

    async def rule(self, text: str) -> None:
        """Have this policy hold from now on."""
        (self.home.folder / "policy.toml").write_text(text)
        await self._policies.refresh()
        (state,) = self._policies.states
        assert state.in_force == "file"
        assert not state.flaws

    async def clear(self) -> None:
        """End what runs, and have no rule and no grant hold."""
        running = [view.session for view in await self.home.hub.sessions() if view.run is not None]
        for session in running:
            await self.home.hub.submit(StopSession(session=session))
        for session in running:
            await self.home.until(session, lambda view: view.run is None)
        await self.rule(NO_RULES)
        for grant in self._policies.grants:
            await self._policies.revoke(grant.id)
        await self.home.hub.workers.end_idle()  # those that wait for the next policy that is tried


async def end_runner(runner: int) -> None:
    """Ask a runner to end, with all its runs, and wait until it is gone."""
    os.kill(runner, signal.SIGTERM)
    with anyio.move_on_after(20):
        # It is no child of ours, so that there is nothing to wait on but its absence.
        await anyio.to_thread.run_sync(_until_gone, runner, abandon_on_cancel=True)


def _until_gone(pid: int) -> None:
    while running(pid):
        time.sleep(0.02)


@asynccontextmanager
async def house(
    folder: Path, processes: Processes, policies: Policies | None = None
) -> AsyncIterator[House]:
    """A hub, its journal and its runner, while the block runs."""
    token = secrets.token_urlsafe(24)
    token_file = folder / "runner-token"
    token_file.write_text(token)
    token_file.chmod(0o600)
    async with AsyncExitStack() as running:

        @asynccontextmanager
        async def serving(port: int) -> AsyncIterator[tuple[Hub, int]]:
            async with await SqliteJournal.open(folder / "journal.db") as journal:
                hub = Hub(
                    journal, lambda given: "local" if given == token else None, policies=policies
                )
                async with hub.run(), serve_endpoint(hub.runners, port=port) as bound:
                    yield hub, bound

        async def restart() -> Hub:
            await running.aclose()
            hub, _ = await running.enter_async_context(apart(serving(port)))
            return hub

        # In a task of its own: a test may restart the hub of a house that is shared.
        hub, port = await running.enter_async_context(apart(serving(0)))
        url = f"ws://127.0.0.1:{port}"
        start = partial(spawn_runner, folder / "runner", url, token_file, machine="local")
        home = House(hub, folder, start, restart)
        home.runner = processes.started(await anyio.to_thread.run_sync(start))
        try:
            yield home
        finally:
            with anyio.CancelScope(shield=True):
                await end_runner(home.runner)
