"""Whoever loses access loses what is open, at once, however the access was taken back."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import httpx
import pytest
from anyio.abc import SocketStream

from quarterdeck.fronts.http import Access, Role
from quarterdeck.fronts.http.tokens import TokenFile
from quarterdeck.protocol.commands import SendPrompt
from support.bounds import SECONDS
from support.front import Front, Talk
from support.waiting import until
from support.web_sockets import connect

REVOKED = 4401
Way = Callable[[Front, str], Awaitable[None]]


async def by_an_owner(hub: Front, grant: str) -> None:
    """Over the API."""
    async with hub.client() as owner:
        answer = await owner.delete(f"/api/tokens/{grant}")
    assert answer.status_code == 200


async def by_another_process(hub: Front, grant: str) -> None:
    """As `quarterdeck token revoke` does it: only the file changes."""
    folder = hub.access._tokens._path.parent
    environment = os.environ | {"QUARTERDECK_HOME": str(folder)}
    command = [sys.executable, "-m", "quarterdeck.cli", "token", "revoke", grant]
    with anyio.fail_after(SECONDS):
        await anyio.run_process(command, env=environment)


async def by_losing_the_file(hub: Front, grant: str) -> None:
    """A file that cannot be read lets nobody stay."""
    assert grant
    hub.access._tokens._path.write_text("{")


WAYS = pytest.mark.parametrize("take_back", [by_an_owner, by_another_process, by_losing_the_file])


def grant_of(token: str) -> str:
    return token.split("_")[1]


async def told(answer: httpx.Response) -> list[str]:
    return [line async for line in answer.aiter_lines()]


async def post_without_its_body(hub: Front, token: str, path: str, length: int) -> SocketStream:
    """A request that was let in, and whose body has yet to come."""
    host, _, port = hub.host.partition(":")
    stream = await anyio.connect_tcp(host, int(port))
    await stream.send(
        f"POST {path} HTTP/1.1\r\nHost: {hub.host}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n".encode()
    )
    return stream


@WAYS
@pytest.mark.process
async def test_a_stream_ends_with_the_access_of_its_client(hub: Front, take_back: Way) -> None:
    async with hub.stream(Role.VIEWER) as talk, hub.stream(Role.OWNER) as other:
        viewer = next(grant for grant in hub.access.grants() if grant.role is Role.VIEWER)
        await take_back(hub, viewer.id)
        assert await talk.closed() == REVOKED
        if take_back is not by_losing_the_file:
            assert (await other.follow(all=True))["all"] is True


@WAYS
@pytest.mark.process
async def test_server_sent_events_end_with_the_access_of_their_client(
    hub: Front, take_back: Way
) -> None:
    session = await hub.deck.have_session()
    token = hub.access.make_token("reader", Role.VIEWER)
    headers = {"authorization": f"Bearer {token}", "accept": "text/event-stream"}
    async with (
        httpx.AsyncClient(base_url=hub.url, headers=headers, timeout=SECONDS) as client,
        client.stream("GET", f"/api/sessions/{session}/events") as answer,
    ):
        assert answer.status_code == 200
        await take_back(hub, grant_of(token))
        with anyio.fail_after(SECONDS):
            lines = await told(answer)  # it ends: nobody says anything
        await hub.deck.say(session, "not for you")
        assert not any("not for you" in line for line in lines)
        again = await client.get(f"/api/sessions/{session}/events")
    assert again.status_code == 401


async def test_a_token_that_expires_ends_what_is_open(hub: Front) -> None:
    session = await hub.deck.have_session()
    token = hub.access.make_token("for a while", Role.VIEWER, seconds=2)
    headers = {"authorization": f"Bearer {token}"}
    url = f"ws://{hub.host}/api/stream"
    async with (
        httpx.AsyncClient(base_url=hub.url, headers=headers, timeout=SECONDS) as client,
        client.stream(
            "GET", f"/api/sessions/{session}/events", headers={"accept": "text/event-stream"}
        ) as answer,
        connect(url, additional_headers=headers, proxy=None) as socket,
    ):
        assert answer.status_code == 200
        assert await Talk(socket).closed() == REVOKED
        with anyio.fail_after(SECONDS):
            await told(answer)


async def test_a_logout_ends_what_the_browser_has_open(hub: Front) -> None:
    async with hub.client(None) as client:
        code = hub.access.make_code()
        login = await client.post("/login", json={"code": code}, headers={"origin": hub.url})
        cookie = login.headers["set-cookie"].partition(";")[0]
    key = login.json()["page_key"]
    page = {"cookie": cookie, "origin": hub.url, "x-quarterdeck-page-key": key}
    url = f"ws://{hub.host}/api/stream"
    async with connect(url, additional_headers=page, proxy=None) as socket:
        async with hub.client(None, **page) as client:
            assert (await client.post("/api/logout")).status_code == 200
        assert await Talk(socket).closed() == REVOKED


@pytest.mark.parametrize("take_back", [by_an_owner, by_another_process])
@pytest.mark.process
async def test_no_command_is_carried_out_after_the_revocation_was_answered(
    hub: Front, take_back: Way
) -> None:
    session = await hub.deck.have_session()
    async with hub.stream(Role.OPERATOR) as talk:
        operator = next(grant for grant in hub.access.grants() if grant.role is Role.OPERATOR)
        await take_back(hub, operator.id)
        before = len(hub.deck.submitted)
        for number in range(20):
            command = {"command": "prompt.send", "session": session, "prompt": f"p{number}"}
            frame = {"t": "command", "id": str(number), "command": command | {"content": "do"}}
            try:
                await talk.say(**frame)
            except Exception:  # noqa: BLE001 - it may be closed by now, which is right
                break
        assert await talk.closed() == REVOKED
    assert len(hub.deck.submitted) == before


@pytest.mark.parametrize("take_back", [by_an_owner, by_another_process])
@pytest.mark.process
async def test_a_request_whose_body_comes_after_the_revocation_is_refused(
    hub: Front, take_back: Way
) -> None:
    session = await hub.deck.have_session()
    token = hub.access.make_token("slow", Role.OPERATOR)
    body = b'{"prompt":"p","content":"do"}'
    stream = await post_without_its_body(hub, token, f"/api/sessions/{session}/prompts", len(body))
    async with stream:
        await stream.send(body[:5])
        with anyio.fail_after(SECONDS):
            await until(lambda: bool(hub.access.connections._watchers))
        await take_back(hub, grant_of(token))
        before = len(hub.deck.submitted)
        await stream.send(body[5:])
        with anyio.fail_after(SECONDS):
            answer = await stream.receive()
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert len(hub.deck.submitted) == before


async def test_a_long_answer_is_cut_off_and_does_not_look_whole(hub: Front) -> None:
    session = await hub.deck.have_session()
    for _ in range(40):
        await hub.deck.say(session, "x" * 1_000_000)
    token = hub.access.make_token("reader", Role.VIEWER)
    headers = {"authorization": f"Bearer {token}"}
    async with (
        httpx.AsyncClient(base_url=hub.url, headers=headers, timeout=SECONDS) as client,
        client.stream("GET", f"/api/sessions/{session}/export?format=json") as answer,
    ):
        assert answer.status_code == 200
        pieces = answer.aiter_raw()
        await anext(pieces)
        await by_an_owner(hub, grant_of(token))
        with pytest.raises(httpx.RemoteProtocolError):
            async for _ in pieces:
                pass


async def test_a_client_is_told_at_once_although_its_command_takes_long(hub: Front) -> None:
    session = await hub.deck.have_session()
    hub.deck.hold = anyio.Event()
    async with hub.stream(Role.OPERATOR) as talk:
        command = {"command": "prompt.send", "session": session, "prompt": "p", "content": "do"}
        await talk.say(t="command", id="1", command=command)
        with anyio.fail_after(SECONDS):
            await until(lambda: isinstance(hub.deck.submitted[-1], SendPrompt))
        operator = next(grant for grant in hub.access.grants() if grant.role is Role.OPERATOR)
        await by_an_owner(hub, operator.id)
        assert await talk.closed() == REVOKED
        hub.deck.hold.set()


async def test_nothing_is_looked_at_while_nobody_is_connected(hub: Front) -> None:
    async with hub.stream() as talk:
        await talk.follow(all=True)
    connections = hub.access.connections
    with anyio.fail_after(SECONDS):
        await until(lambda: not connections._watchers and connections._timer is None)


def test_a_revocation_without_a_server_is_only_written(tmp_path: Path) -> None:
    access = Access(tmp_path)
    token = access.make_token("me", Role.OWNER)
    access.revoke(grant_of(token))
    assert TokenFile(tmp_path).grants() == []
