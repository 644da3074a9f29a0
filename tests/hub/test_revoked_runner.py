"""A runner speaks for its own machine, and only while its token is valid."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.fronts.http import Listen, Role
from quarterdeck.protocol.commands import CreateSession
from quarterdeck.protocol.events import LinkLost
from quarterdeck.protocol.runner_frames import (
    PROTOCOL,
    Header,
    Hello,
    Lines,
    Refused,
    RunReport,
    Start,
    Started,
    Stop,
    Welcome,
    frame,
    read_hub_frame,
)
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.service.service import ServeOptions, Service, run_service
from support.bounds import SECONDS
from support.web_sockets import connect

pytestmark = pytest.mark.anyio
REVOKED = 4401


@pytest.fixture
async def deck(tmp_path: Path) -> AsyncIterator[Service]:
    """The whole service, without a runner of its own."""
    serving = ServeOptions(listen=Listen(port=0), runner=False)
    async with run_service(tmp_path / "data", serving) as running:
        yield running


class Machine:
    """A runner in the hand of the test."""

    def __init__(self, deck: Service, name: str, token: str) -> None:
        self.name = name
        self.token = token
        self.url = "ws" + deck.address.removeprefix("http") + "/runner"
        self.socket: ClientConnection

    @property
    def grant(self) -> str:
        """The id of its token."""
        return self.token.split("_")[1]

    @asynccontextmanager
    async def dial(self, path: str = "") -> AsyncIterator[ClientConnection]:
        """A socket of its own."""
        headers = {"Authorization": f"Bearer {self.token}"}
        async with connect(self.url + path, additional_headers=headers, proxy=None) as socket:
            yield socket

    async def hear(self) -> Header:
        """The next frame of the machine's socket."""
        return await heard(self.socket)


async def heard(socket: ClientConnection) -> Header:
    with anyio.fail_after(SECONDS):
        data = await socket.recv()
    assert isinstance(data, bytes)
    return read_hub_frame(data)[0]


async def closed(socket: ClientConnection) -> int | None:
    with anyio.fail_after(SECONDS):
        await socket.wait_closed()
    return socket.close_code


@asynccontextmanager
async def machine(deck: Service, name: str, *runs: str) -> AsyncIterator[Machine]:
    """A machine that has said hello, and which runs it has."""
    token = deck.access.make_token(name, Role.RUNNER)
    one = Machine(deck, name, token)
    async with one.dial() as one.socket:
        reports = tuple(RunReport(run=run, session="s", said=0, written=0) for run in runs)
        hello = Hello(machine=name, runner="r", protocol=PROTOCOL, version="0", pid=1, runs=reports)
        await one.socket.send(frame(hello))
        assert isinstance(await one.hear(), Welcome)
        yield one


async def new_session(deck: Service, on: str) -> str:
    made = await deck.hub.submit(CreateSession(spec=SessionSpec(directory="/", machine=on)))
    return made.session


async def connected(deck: Service, name: str) -> bool:
    return {each.name: each.connected for each in await deck.hub.machines()}[name]


def is_lost(view: SessionView) -> bool:
    return view.link_lost is not None


async def view_when(
    deck: Service, session: str, holds: Callable[[SessionView], bool]
) -> SessionView:
    with anyio.fail_after(SECONDS):
        while True:
            if holds(view := await deck.hub.session(session)):
                return view
            await anyio.sleep(0.02)


async def revoke_elsewhere(deck: Service, grant: str) -> None:
    """By another process, as `quarterdeck token revoke` does it."""
    environment = os.environ | {"QUARTERDECK_HOME": str(deck.home)}
    command = [sys.executable, "-m", "quarterdeck.cli", "token", "revoke", grant]
    with anyio.fail_after(SECONDS):
        await anyio.run_process(command, env=environment)


async def test_the_sockets_of_a_revoked_runner_are_closed_and_its_machine_is_away(
    deck: Service,
) -> None:
    """LINK-5"""
    async with machine(deck, "box") as box, machine(deck, "other"):
        session = await new_session(deck, "box")
        start = await box.hear()
        assert isinstance(start, Start)
        async with box.dial(f"/runs/{start.run}") as run:
            await run.send(frame(Started(pid=1, version="2.1.120", directory="/")))
            await heard(run)
            deck.access.revoke(box.grant)
            assert await closed(box.socket) == REVOKED
            assert await closed(run) == REVOKED
        view = await view_when(deck, session, is_lost)
        assert view.run is not None  # its agent may well go on; nobody here can say
        lost = [e.event for e in await deck.hub.events(session) if isinstance(e.event, LinkLost)]
        assert lost[-1].coded == CodedText(code=TextCode.MACHINE_REVOKED)
        assert not await connected(deck, "box")
        assert await connected(deck, "other")
        with pytest.raises(InvalidStatus):
            async with box.dial():
                pass


@pytest.mark.process
async def test_new_work_is_not_sent_to_a_runner_whose_token_was_revoked_elsewhere(
    deck: Service,
) -> None:
    """LINK-5"""
    async with machine(deck, "box") as box:
        await revoke_elsewhere(deck, box.grant)
        await new_session(deck, "box")  # at once: nobody has looked at the file since
        with pytest.raises(ConnectionClosed):
            await box.hear()
        assert box.socket.close_code == REVOKED


async def test_lines_of_a_run_are_not_taken_from_a_revoked_runner(deck: Service) -> None:
    """LINK-5"""
    async with machine(deck, "box") as box:
        session = await new_session(deck, "box")
        start = await box.hear()
        assert isinstance(start, Start)
        async with box.dial(f"/runs/{start.run}") as run:
            await run.send(frame(Started(pid=1, version="2.1.120", directory="/")))
            await heard(run)
            deck.access.revoke(box.grant)
            with suppress(ConnectionClosed):  # it may be closed by now
                await run.send(frame(Lines(first=1), (b'{"type":"keep_alive"}',)))
            assert await closed(run) == REVOKED
        assert (await view_when(deck, session, is_lost)).said == 0


async def test_a_machine_that_has_a_new_token_finds_its_runs_again(deck: Service) -> None:
    """LINK-5"""
    async with machine(deck, "box") as box:
        session = await new_session(deck, "box")
        start = await box.hear()
        assert isinstance(start, Start)
        async with box.dial(f"/runs/{start.run}") as run:
            await run.send(frame(Started(pid=1, version="2.1.120", directory="/")))
            await heard(run)
            deck.access.revoke(box.grant)
            assert await closed(run) == REVOKED
    await view_when(deck, session, is_lost)
    async with machine(deck, "box", start.run) as box, box.dial(f"/runs/{start.run}") as run:
        await run.send(frame(Started(pid=1, version="2.1.120", directory="/")))
        found = await view_when(deck, session, lambda view: not is_lost(view))
        assert found.run == start.run


async def test_a_runner_refuses_runs_of_its_own_machine_only(deck: Service) -> None:
    """LINK-6"""
    async with machine(deck, "box") as box:
        session = await new_session(deck, "box")
        start = await box.hear()
        assert isinstance(start, Start)
        async with machine(deck, "mallory") as mallory:
            await mallory.socket.send(frame(Refused(run=start.run, reason="killed by mallory")))
            assert await closed(mallory.socket) == 4400
        assert (await deck.hub.session(session)).run == start.run
        # The start is still owed to its own machine: a runner that dials again is told of it.
        async with machine(deck, "box") as new_box:
            again = await new_box.hear()
            assert isinstance(again, Start)
            assert again.run == start.run
            await new_box.socket.send(frame(Refused(run=start.run, reason="no memory")))
            await view_when(deck, session, lambda view: view.run is None)


async def test_a_refusal_of_a_run_that_nobody_waits_for_disturbs_nothing(deck: Service) -> None:
    async with machine(deck, "box") as box:
        await box.socket.send(frame(Refused(run="long-gone", reason="it is over")))
        await new_session(deck, "box")
        assert isinstance(await box.hear(), Start)


async def test_a_hello_with_runs_of_another_machine_changes_nothing_there(deck: Service) -> None:
    """LINK-6"""
    async with machine(deck, "box") as box:
        session = await new_session(deck, "box")
        start = await box.hear()
        assert isinstance(start, Start)
        async with machine(deck, "mallory", start.run) as mallory:
            stop = await mallory.hear()
            assert stop == Stop(run=start.run, force=True)
            async with mallory.dial(f"/runs/{start.run}") as run:
                assert await closed(run) == 4400
        assert (await deck.hub.session(session)).run == start.run
        async with machine(deck, "box") as new_box:
            assert isinstance(await new_box.hear(), Start)
