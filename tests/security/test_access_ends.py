"""Access is for one browser page, one machine, and until it ends (H5, L6, M1, M2, M3)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import pytest
from websockets import InvalidStatus
from websockets.asyncio.client import ClientConnection

from quarterdeck.fronts.http import Listen, Role
from quarterdeck.protocol.commands import CreateSession
from quarterdeck.protocol.runner_frames import (
    PROTOCOL,
    Header,
    Hello,
    Refused,
    Start,
    Welcome,
    frame,
    read_hub_frame,
)
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.service.service import ServeOptions, Service, run_service
from support.bounds import SECONDS
from support.front import Front
from support.web_sockets import connect

KEY = "x-quarterdeck-page-key"
REVOKED = 4401


async def log_in(hub: Front) -> dict[str, str]:
    """The cookie and the page key of a browser that has logged in as an owner."""
    async with hub.client(None) as client:
        code = {"code": hub.access.make_code()}
        answer = await client.post("/login", json=code, headers={"origin": hub.url})
    cookie = answer.headers["set-cookie"].partition(";")[0]
    return {"cookie": cookie, KEY: answer.json()["page_key"]}


async def test_h5_a_server_on_another_port_that_gets_the_cookie_can_do_nothing(hub: Front) -> None:
    page = await log_in(hub)
    async with hub.client(None, cookie=page["cookie"], origin=hub.url) as thief:
        assert (await thief.get("/api/whoami")).status_code == 401
        made = await thief.post("/api/tokens", json={"name": "x", "role": "owner"})
        assert made.status_code == 401
    with pytest.raises(InvalidStatus):
        await connect(
            f"ws://{hub.host}/api/stream",
            additional_headers={"cookie": page["cookie"], "origin": hub.url},
        )


async def test_l6_a_planted_cookie_of_our_name_locks_nobody_out(hub: Front) -> None:
    page = await log_in(hub)
    planted = f"{hub.access.cookie}=planted"
    for cookie in (f"{planted}; {page['cookie']}", f"{page['cookie']}; {planted}"):
        async with hub.client(None, **{"cookie": cookie, KEY: page[KEY]}) as client:
            assert (await client.get("/api/whoami")).status_code == 200


@pytest.mark.parametrize("logs_out", [True, False], ids=["logout", "revocation"])
async def test_m1_a_stream_of_events_ends_with_the_access(hub: Front, *, logs_out: bool) -> None:
    session = await hub.deck.have_session()
    page = await log_in(hub)
    accept = {"accept": "text/event-stream"}
    async with (
        hub.client(None, **page, origin=hub.url) as client,
        client.stream("GET", f"/api/sessions/{session}/events", headers=accept) as answer,
    ):
        assert answer.status_code == 200
        if logs_out:
            assert (await client.post("/api/logout")).status_code < 300
        else:
            (grant,) = hub.access.grants()
            hub.access.revoke(grant.id)
        with anyio.fail_after(SECONDS):
            told = [line async for line in answer.aiter_lines()]
        await hub.deck.say(session, "not for you")
    assert not any("not for you" in line for line in told)


async def test_m1_a_stream_of_events_ends_with_the_time_of_its_token(hub: Front) -> None:
    session = await hub.deck.have_session()
    token = hub.access.make_token("reader", Role.VIEWER, seconds=1.5)
    headers = {"authorization": f"Bearer {token}", "accept": "text/event-stream"}
    async with (
        httpx.AsyncClient(base_url=hub.url, headers=headers, timeout=SECONDS) as client,
        client.stream("GET", f"/api/sessions/{session}/events") as answer,
    ):
        assert answer.status_code == 200
        with anyio.fail_after(SECONDS):
            async for _ in answer.aiter_lines():
                pass


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """The whole service, without a runner of its own."""
    options = ServeOptions(listen=Listen(port=0), runner=False)
    async with run_service(tmp_path / "data", options) as running:
        yield running


@asynccontextmanager
async def machine(service: Service, name: str) -> AsyncIterator[tuple[ClientConnection, str]]:
    """The socket of a machine that has said hello, and the id of its token."""
    token = service.access.make_token(name, Role.RUNNER)
    url = "ws" + service.address.removeprefix("http") + "/runner"
    async with connect(url, additional_headers={"Authorization": f"Bearer {token}"}) as socket:
        hello = Hello(machine=name, runner="r", protocol=PROTOCOL, version="0", pid=1, runs=())
        await socket.send(frame(hello))
        assert isinstance(await heard(socket), Welcome)
        yield socket, token.split("_")[1]


async def heard(socket: ClientConnection) -> Header:
    with anyio.fail_after(SECONDS):
        data = await socket.recv()
    assert isinstance(data, bytes)
    return read_hub_frame(data)[0]


async def closing_code(socket: ClientConnection) -> int | None:
    with anyio.fail_after(SECONDS):
        await socket.wait_closed()
    return socket.close_code


def new_session(on: str) -> CreateSession:
    return CreateSession(
        spec=SessionSpec(directory="/", machine=on, env={"SECRET": "for-the-agent"})
    )


async def test_m2_a_revoked_runner_is_disconnected_and_gets_no_new_work(service: Service) -> None:
    async with machine(service, "box") as (socket, grant):
        service.access.revoke(grant)
        assert await closing_code(socket) == REVOKED
        await service.hub.submit(new_session("box"))
        (found,) = [each for each in await service.hub.machines() if each.name == "box"]
        assert not found.connected


async def test_m3_a_runner_of_another_machine_does_not_end_a_run(service: Service) -> None:
    async with machine(service, "box") as (socket, _):
        session = (await service.hub.submit(new_session("box"))).session
        start = await heard(socket)
        assert isinstance(start, Start)
        async with machine(service, "mallory") as (mallory, _):
            await mallory.send(frame(Refused(run=start.run, reason="killed by mallory")))
            assert await closing_code(mallory) == 4400
        assert (await service.hub.session(session)).run == start.run
