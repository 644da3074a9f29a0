"""Sessions of CLIs that connected: where they can continue when the CLI is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from msgspec import Raw

from quarterdeck.domain.errors import Conflict
from quarterdeck.domain.ids import new_id
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.ports import RunEnd
from quarterdeck.hub.session_process import ProcessEvents
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.commands import ForkSession, ResumeSession, SendPrompt
from quarterdeck.protocol.events import CliSession
from quarterdeck.protocol.runner_frames import PROTOCOL, Hello, frame
from quarterdeck.protocol.sessions import INBOUND, SessionState
from support.bounds import SECONDS

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def machine(hub: Hub, name: str, address: str) -> AsyncIterator[None]:
    """A runner at an address, as far as the hub can see."""
    said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    hello = Hello(machine=name, runner="r", protocol=PROTOCOL, version="1", pid=1)
    said.put_nowait({"type": "websocket.connect"})
    said.put_nowait({"type": "websocket.receive", "bytes": frame(hello)})
    scope = {
        "type": "websocket",
        "path": "/runner",
        "client": (address, 7),
        "headers": [(b"authorization", f"Bearer {name}".encode())],
    }
    welcome = anyio.Event()

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "websocket.send":
            welcome.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hub.runners, scope, said.get, send)
        with anyio.fail_after(SECONDS):
            await welcome.wait()
        yield
        said.put_nowait({"type": "websocket.disconnect"})


async def end(hub: Hub, session: str) -> None:
    """The CLI has had its turn, and is gone."""
    view = await hub.session(session)
    assert view.run is not None
    mine = hub._sessions[session]
    mine.note(CliSession(cli_session=new_id()), None, mine.supervisor.now)
    await mine.append()
    await ProcessEvents(mine).run_ended(view.run, RunEnd(reason="It went."))


async def test_a_cli_that_dialled_goes_on_where_its_machine_has_a_runner() -> None:
    hub = Hub(MemoryJournal(), lambda token: token, cli_secret=b"x" * 32)
    places = {"near": "127.0.0.1", "far": "10.0.0.7", "lost": "10.0.0.8", "odd": "a socket"}
    async with hub.run(), machine(hub, "workshop", "10.0.0.7"):
        for name, address in places.items():
            await hub._adopt(name, False, address)
            await end(hub, name)
        machines = {name: (await hub.session(name)).spec.machine for name in places}
        assert machines == {"near": None, "far": "workshop", "lost": INBOUND, "odd": INBOUND}
        for name in ("near", "far"):
            await hub.submit(ForkSession(session=name))
            await hub.submit(ResumeSession(session=name))
            assert (await hub.session(name)).state is SessionState.STARTING
        for command in (
            ResumeSession(session="lost"),
            ForkSession(session="lost"),
            SendPrompt(session="lost", prompt="p", content=Raw(b'"go on"')),
        ):
            with pytest.raises(Conflict, match="token --cli --session lost") as caught:
                await hub.submit(command)
            assert caught.value.code == "dial_again"
        # It dials again, at its own path.
        await hub._adopt("lost", False, "10.0.0.8")
        assert (await hub.session("lost")).run is not None
