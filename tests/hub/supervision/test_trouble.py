"""What must go on when the journal is full for a while, or the other end of a socket is gone."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest
from msgspec import Raw

from quarterdeck.domain.errors import JournalError
from quarterdeck.hub import inbound_clis
from quarterdeck.hub.cli_tokens import cli_token
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.session_process import ProcessEvents
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.links.websocket.accept import serve_endpoint
from quarterdeck.protocol.commands import CreateSession
from quarterdeck.protocol.events import Said
from quarterdeck.protocol.runner_frames import Lines, Started, Written, frame
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from support import lines
from support.bounds import SECONDS
from support.hub_house import until
from support.hub_machines import hub_with
from support.web_sockets import connect

pytestmark = pytest.mark.anyio
SECRET = b"s" * 32


async def test_the_clock_goes_on_when_what_it_brings_cannot_be_journalled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub, machines = hub_with(MemoryJournal())
    real, failed = ProcessEvents.tick, 0

    async def full(self: ProcessEvents) -> None:
        nonlocal failed
        if failed < 2:
            failed += 1
            raise JournalError("there is no room", code="full")
        await real(self)

    monkeypatch.setattr("quarterdeck.hub.hub.CLOCK_SECONDS", 0.01)
    monkeypatch.setattr(ProcessEvents, "tick", full)
    async with hub.run():
        spec = SessionSpec(directory="/work", ask_timeout=0.05)
        await hub.submit(CreateSession(spec=spec, prompt=Raw(b'"hello"'), by="ada"))
        (run,) = machines.runs
        await run.greet()
        await run.take_prompt()
        await run.say(lines.asks_permission("q1"))
        with anyio.fail_after(SECONDS):
            await run.wait_for_write()
        (answer,) = run.read()
        assert answer["response"]["response"]["behavior"] == "deny"
        assert failed == 2


class FullJournal(MemoryJournal):
    """A journal whose disk is full for some appends."""

    full = 0

    async def append(
        self, session: str, events: Any, *, snapshot: bytes | None = None, **conditions: Any
    ) -> Any:
        if self.full and events:
            self.full -= 1
            raise JournalError("there is no room", code="full")
        return await super().append(session, events, snapshot=snapshot, **conditions)


async def test_what_a_cli_that_dialled_said_is_journalled_when_there_is_room_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inbound_clis, "RETRY_SECONDS", 0.01)
    journal = FullJournal()
    hub = Hub(journal, lambda token: None, cli_secret=SECRET)
    bearer = {"Authorization": f"Bearer {cli_token(SECRET, '/')}"}
    async with hub.run(), serve_endpoint(hub.inbound) as port:
        url = f"ws://127.0.0.1:{port}/"
        async with connect(url, additional_headers=bearer, proxy=None) as cli:
            with anyio.fail_after(SECONDS):
                await cli.recv()  # initialize
                (view,) = await hub.sessions()
                journal.full = 3
                await cli.send((lines.init() + lines.assistant("kept", "a1")).decode())
                view = await until(hub, view.session, lambda view: view.said == 2)
        assert journal.full == 0
        said = [e.event for e in await hub.events(view.session) if isinstance(e.event, Said)]
        assert [event.number for event in said] == [1, 2]


async def test_a_runner_that_cannot_be_told_anything_any_more_is_heard_to_its_last_word() -> None:
    """A server says `OSError` to whoever sends to a socket that is gone."""
    hub = Hub(MemoryJournal(), lambda token: "local")
    said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def send(message: Any) -> None:
        if message["type"] != "websocket.accept":
            raise OSError("the client is gone")

    def says(header: Any, *words: bytes) -> None:
        said.put_nowait({"type": "websocket.receive", "bytes": frame(header, words)})

    scope = {"type": "websocket", "headers": [(b"authorization", b"Bearer x")]}
    async with hub.run():
        create = CreateSession(spec=SessionSpec(directory="/work"), by="ada")
        session = (await hub.submit(create)).session
        run = (await hub.session(session)).run
        said.put_nowait({"type": "websocket.connect"})
        says(Started(pid=7, version="2.1.325"))
        says(Written(upto=0))
        says(Lines(first=1), lines.init().rstrip())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hub.runners, {**scope, "path": f"/runner/runs/{run}"}, said.get, send)
            with anyio.fail_after(SECONDS):
                view = await until(hub, session, lambda view: view.said == 1)
            said.put_nowait({"type": "websocket.disconnect"})
        assert view.pid == 7
        assert (await hub.session(session)).state is SessionState.DISCONNECTED
