"""The whole service behind a network that can be cut, and that can itself be stopped and started.

For a browser nothing changes but what is at fault: the address stays, the data folder stays, and
so do the agents, which a runner of its own keeps.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import httpx
import pytest
from msgspec.structs import replace

from quarterdeck.fronts.http import Listen, Role
from quarterdeck.service.local_hub import RUNNER
from quarterdeck.service.service import ServeOptions, Service, run_service
from quarterdeck.testing import RealCli, ScriptedModel, isolated_env
from quarterdeck.testing.script import Said, play
from support.api_client import Json, be_at_home, runner_pid, stop_runner
from support.bounds import SECONDS
from support.processes import Processes
from support.relay import Relay, relay_to


class Plug:
    """What a test pulls."""

    def __init__(self, cli: RealCli, model: ScriptedModel, folder: Path, relay: Relay) -> None:
        self.relay = relay
        self.work = folder / "work"
        self._cli, self._model, self._folder = cli, model, folder
        self._port = 0
        self._service = contextlib.AsyncExitStack()
        self._token = ""
        self._deck: Service | None = None

    @property
    def deck(self) -> Service:
        """The service, by the address that a browser has."""
        assert self._deck is not None
        return replace(self._deck, address=f"http://127.0.0.1:{self.relay.port}")

    async def start(self) -> None:
        """Start the hub, where it was before."""
        serving = ServeOptions(listen=Listen(port=self._port))
        deck = await self._service.enter_async_context(run_service(self._folder / "data", serving))
        self._port = self.relay.target = int(deck.address.rpartition(":")[2])
        self._token = self._token or deck.access.make_token("ada", Role.OWNER)
        self._deck = deck

    async def stop(self) -> None:
        """Stop the hub. The agents work on."""
        await self._service.aclose()

    async def create(self) -> str:
        """A session that nothing was said in."""
        env = isolated_env(self._folder / "home", self._model.url)
        spec = {"directory": str(self.work), "claude": self._cli.command[-1], "env": env}
        return str((await self._post("sessions", {"spec": spec}))["session"])

    async def send(self, session: str, *replies: Said) -> None:
        """Have the agent say something, with nobody at the browser."""
        await self._post(f"sessions/{session}/prompts", {"content": play(*replies)})

    async def turns(self, session: str, count: int) -> list[Json]:
        """Wait for the end of so many turns; gives the whole history."""
        with anyio.fail_after(SECONDS):
            while True:
                events = await self.events(session)
                if sum(one["kind"] == "turn.ended" for one in events) >= count:
                    return events
                await anyio.sleep(0.05)

    async def events(self, session: str) -> list[Json]:
        """The history, from the journal."""
        found = await self._ask("GET", f"sessions/{session}/events?limit=1000")
        return [row["event"] for row in found["events"]]

    async def _post(self, path: str, body: Json) -> Json:
        return await self._ask("POST", path, body)

    async def _ask(self, method: str, path: str, body: Json | None = None) -> Json:
        headers = {"authorization": f"Bearer {self._token}"}
        base = f"http://127.0.0.1:{self._port}/api/"
        async with httpx.AsyncClient(headers=headers, timeout=SECONDS, trust_env=False) as client:
            answer = await client.request(method, base + path, json=body)
        answer.raise_for_status()
        found: Json = answer.json()
        return found


@contextlib.asynccontextmanager
async def plugged(
    cli: RealCli,
    model: ScriptedModel,
    folder: Path,
    processes: Processes,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Plug]:
    """The service, with its plug in."""
    for made in ("data", "home", "work"):
        (folder / made).mkdir(mode=0o700)
    be_at_home(cli, folder / "home", model, monkeypatch)
    async with relay_to() as relay:
        plug = Plug(cli, model, folder, relay)
        await plug.start()
        try:
            processes.started(await runner_pid(plug.deck))
            yield plug
        finally:
            await plug.stop()
            await stop_runner(folder / "data" / RUNNER)
