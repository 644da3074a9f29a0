"""Both sides of the WebSocket against each other, over real sockets, with a network at fault."""

from __future__ import annotations

import http.client
import json
from collections.abc import AsyncIterator

import anyio
import anyio.to_thread
import pytest
import websockets
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.asyncio.server import ServerConnection, serve

from quarterdeck.domain.errors import LinkClosed, LinkRefused, UsageError
from quarterdeck.links.base import Dropped, Link, Resumed
from quarterdeck.links.websocket import (
    CliEndpoint,
    DialLink,
    LinkAccess,
    WebSocketLink,
    accept,
    serve_endpoint,
)
from quarterdeck.links.websocket.accept import event_lines, socket_paths
from quarterdeck.links.websocket.dial import Redial
from quarterdeck.runtime.asgi import Message
from support.bounds import SECONDS
from support.examples import examples
from support.relay import Relay, relay_to
from support.waiting import until
from support.web_sockets import connect

TOKEN = "a-token-for-one-session"
PATH = "/v1/ws/one"
QUICK = Redial(base=0.02, cap=0.1, budget=5, first=1)


class Site:
    """An endpoint with one session, served, behind a relay that can be at fault."""

    def __init__(self, link: WebSocketLink, port: int, relay: Relay) -> None:
        self.link = link
        self.port = port
        self.relay = relay
        self.url = f"ws://127.0.0.1:{relay.port}{PATH}"

    async def dial(self, redial: Redial = QUICK, last: str | None = None) -> DialLink:
        return await DialLink.connect(self.url, TOKEN, redial=redial, last_request_id=lambda: last)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    link = WebSocketLink(first=5, grace=5)
    doors = {PATH: LinkAccess(link, TOKEN)}
    with anyio.fail_after(SECONDS):
        async with (
            serve_endpoint(CliEndpoint(doors.get)) as port,
            relay_to(port) as relay,
        ):
            try:
                yield Site(link, port, relay)
            finally:
                await link.close()


async def read(link: Link, size: int) -> bytes:
    """So many bytes, with no resume between them."""
    data = bytearray()
    while len(data) < size:
        item = await link.receive()
        assert isinstance(item, bytes)
        data += item
    return bytes(data)


async def until_resumed(link: Link) -> tuple[bytes, Resumed]:
    """The bytes before the drop, and what came right behind it."""
    data = b""
    while isinstance(item := await link.receive(), bytes):
        data += item
    assert isinstance(item, Dropped)
    item = await link.receive()
    assert isinstance(item, Resumed)
    return data, item


async def test_lines_pass_both_ways(site: Site) -> None:
    async with await site.dial() as dialled:
        await dialled.send(b'{"n":1}\n{"n":2}\n')
        assert await read(site.link, 16) == b'{"n":1}\n{"n":2}\n'
        await site.link.send(b'{"answer":"\xc3\xa9"}\n')
        assert await read(dialled, 16) == b'{"answer":"\xc3\xa9"}\n'
        assert site.link.resumable
        assert dialled.resumable
        assert site.link.connected
        assert dialled.connected


async def test_a_line_of_twenty_megabytes_passes_both_ways(site: Site) -> None:
    line = b"x" * 20_000_000 + b"\n"
    async with await site.dial() as dialled:
        for sender, receiver in ((dialled, site.link), (site.link, dialled)):
            async with anyio.create_task_group() as group:
                group.start_soon(sender.send, line)
                assert await read(receiver, len(line)) == line


@pytest.mark.parametrize("data", [b"half", b"a\n\n", b"\xff\n"])
async def test_only_whole_lines_of_text_can_be_sent(site: Site, data: bytes) -> None:
    async with await site.dial() as dialled:
        for link in (dialled, site.link):
            with pytest.raises(UsageError):
                await link.send(data)


# --- who gets in ---


@pytest.mark.parametrize("token", ["wrong", TOKEN + "x", TOKEN[:-1], "Bearer"])
async def test_a_wrong_token_is_refused_with_401(site: Site, token: str) -> None:
    with pytest.raises(LinkRefused, match="HTTP 401"):
        await DialLink.connect(site.url, token, redial=QUICK)
    assert not site.link.connected


async def test_no_token_and_no_session_look_the_same_from_outside(site: Site) -> None:
    answers = []
    for url, headers in (
        (site.url, {}),
        (site.url, {"Authorization": f"Basic {TOKEN}"}),
        (site.url.replace("/one", "/two"), {"Authorization": f"Bearer {TOKEN}"}),
    ):
        with pytest.raises(websockets.InvalidStatus) as caught:
            await connect(url, additional_headers=headers)
        response = caught.value.response
        answers.append((response.status_code, response.headers["WWW-Authenticate"], response.body))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][:2] == (401, "Bearer")


async def test_a_browser_is_refused_even_with_the_token(site: Site) -> None:
    with pytest.raises(websockets.InvalidStatus, match="403"):
        await connect(
            site.url,
            origin=websockets.Origin("http://evil.example"),
            additional_headers={"Authorization": f"Bearer {TOKEN}"},
        )


async def test_a_door_and_a_dial_need_a_token() -> None:
    for token in ("", "ä"):
        with pytest.raises(UsageError, match="token"):
            LinkAccess(WebSocketLink(), token)
        with pytest.raises(UsageError, match="token"):
            await DialLink.connect("ws://127.0.0.1:9/", token)


# --- drops ---


async def test_after_a_drop_both_ends_resume_and_nothing_that_was_sent_is_lost(site: Site) -> None:
    async with await site.dial(last="the-last") as dialled:
        await dialled.send(b"before\n")
        assert await read(site.link, 7) == b"before\n"
        site.relay.refusing = True
        site.relay.cut()
        async with anyio.create_task_group() as group:

            async def come_back() -> None:
                seen, _ = await until_resumed(dialled)
                assert seen == b""
                # «early» was written before the drop was noticed or waited: either way it comes.
                assert sorted((await read(dialled, 11)).splitlines()) == [b"early", b"later"]

            group.start_soon(come_back)
            await site.link.send(b"early\n")
            await until(lambda: not site.link.connected)
            await site.link.send(b"later\n")
            site.relay.refusing = False
            assert await until_resumed(site.link) == (b"", Resumed("the-last"))
        await dialled.send(b"after\n")
        # «before» was never proven to have arrived, so it comes again: the layer above knows it.
        assert (await read(site.link, 13)).endswith(b"after\n")


async def test_lines_sent_by_the_dialler_while_it_is_down_arrive_after_the_reconnect(
    site: Site,
) -> None:
    async with await site.dial() as dialled:
        site.relay.refusing = True
        site.relay.cut()
        assert isinstance(await dialled.receive(), Dropped)
        assert not dialled.connected
        await dialled.send(b"one\n")
        await dialled.send(b"two\n")
        site.relay.refusing = False
        async with anyio.create_task_group() as group:
            group.start_soon(dialled.receive)  # which dials again, and gives Resumed
            assert (await until_resumed(site.link))[1] == Resumed(None)
        async with anyio.create_task_group() as group:
            group.start_soon(dialled.receive)
            assert await read(site.link, 8) == b"one\ntwo\n"
            group.cancel_scope.cancel()


@pytest.mark.no_cover
async def test_many_drops_lose_no_line(site: Site) -> None:
    """Lines are numbered; what comes twice is known by its number."""
    count = 60
    got: dict[str, list[int]] = {"here": [], "there": []}

    async def collect(link: Link, name: str) -> None:
        rest = b""
        while len(set(got[name])) < count:
            item = await link.receive()
            if not isinstance(item, bytes):
                rest = b""
                continue
            *lines, rest = (rest + item).split(b"\n")
            got[name] += [int(line) for line in lines]

    async def push(link: Link) -> None:
        for number in range(count):
            await link.send(b"%d\n" % number)
            await anyio.sleep(0.005)

    async def disturb() -> None:
        for _ in range(6):
            await anyio.sleep(0.06)
            site.relay.cut()

    async with await site.dial() as dialled:
        await site.link.wait_connected()
        async with anyio.create_task_group() as group:
            for link, name in ((site.link, "here"), (dialled, "there")):
                group.start_soon(collect, link, name)
                group.start_soon(push, link)
            group.start_soon(disturb)
    for name in got:
        firsts = list(dict.fromkeys(got[name]))
        assert firsts == list(range(count))


async def test_the_newest_connection_wins(site: Site) -> None:
    async with await site.dial() as first:
        await first.send(b"first\n")
        assert await read(site.link, 6) == b"first\n"
        async with await site.dial() as second:
            assert (await until_resumed(site.link))[1] == Resumed(None)
            with pytest.raises(LinkClosed, match="took its place") as closed:
                await first.receive()
            assert closed.value.close_code == 4000
            await site.link.send(b"to the second\n")
            assert await read(second, 14) == b"to the second\n"
            await second.send(b"from the second\n")
            assert await read(site.link, 16) == b"from the second\n"


async def test_a_cli_that_does_not_come_back_ends_the_link_after_the_grace(site: Site) -> None:
    link = WebSocketLink(first=0.1, grace=0.1)
    with pytest.raises(LinkClosed, match=r"No CLI connected within 0\.1 s"):
        await link.receive()
    with pytest.raises(LinkClosed, match="No CLI connected"):
        await link.send(b"x\n")
    site.link._grace = 0.1
    dialled = await site.dial()
    await site.link.wait_connected()
    await dialled.close()
    assert isinstance(await site.link.receive(), Dropped)
    with pytest.raises(LinkClosed, match=r"did not reconnect .* \(close code 1000\)") as closed:
        await site.link.receive()
    assert closed.value.clean


async def test_the_owner_can_end_a_link_with_a_reason_of_its_own(site: Site) -> None:
    dialled = await site.dial()
    await dialled.send(b"last words\n")
    await site.link.wait_connected()
    await anyio.sleep(0.05)
    site.link.fail(LinkClosed("The CLI crashed.", exit_code=1, stderr=("why",)))
    assert await site.link.receive() == b"last words\n"
    with pytest.raises(LinkClosed, match="crashed") as closed:
        await site.link.receive()
    assert (closed.value.exit_code, closed.value.stderr) == (1, ("why",))
    await dialled.close()


async def test_kept_lines_are_bounded_and_the_sender_waits_for_the_reconnect(site: Site) -> None:
    async with await site.dial() as dialled:
        await site.link.wait_connected()
        site.relay.refusing = True
        site.relay.cut()
        await until(lambda: not site.link.connected)
        sent = 0
        block = b"x" * 1_000_000 + b"\n"
        with anyio.move_on_after(0.5) as patience:
            while True:
                await site.link.send(block)
                sent += 1
        assert patience.cancelled_caught
        assert 10 < sent < 20
        site.relay.refusing = False
        async with anyio.create_task_group() as group:
            group.start_soon(site.link.send, b"last\n")
            assert (await until_resumed(dialled))[0] == b""
            assert await read(dialled, sent * len(block) + 5) == block * sent + b"last\n"


# --- the end ---


async def test_closing_ends_the_dialler_for_good(site: Site) -> None:
    async with await site.dial() as dialled:
        await site.link.wait_connected()
        await site.link.close()
        await site.link.close()
        with pytest.raises(LinkClosed, match="session is over") as closed:
            await dialled.receive()
        assert closed.value.close_code == 4001
        for link in (site.link, dialled):
            with pytest.raises(LinkClosed):
                await link.send(b"x\n")
            with pytest.raises(LinkClosed):
                await link.receive()


async def test_who_comes_back_to_a_closed_session_is_told_once_and_then_refused(
    site: Site,
) -> None:
    await site.link.close()
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with connect(site.url, additional_headers=headers) as socket:
        with pytest.raises(websockets.ConnectionClosed):
            await socket.recv()
        assert socket.close_code == 4001
    with pytest.raises(websockets.InvalidStatus, match="410"):
        await connect(site.url, additional_headers=headers)


async def test_ending_the_input_only_refuses_to_send(site: Site) -> None:
    async with await site.dial() as dialled:
        for link in (dialled, site.link):
            await link.end_input()
            with pytest.raises(LinkClosed, match="input has ended"):
                await link.send(b"x\n")
        assert dialled.connected


async def test_the_server_ends_in_bounded_time_with_connections_open() -> None:
    doors = {PATH: LinkAccess(WebSocketLink(), TOKEN)}
    with anyio.fail_after(SECONDS):
        async with serve_endpoint(CliEndpoint(doors.get)) as port:
            url = f"ws://127.0.0.1:{port}{PATH}"
            dialled = await DialLink.connect(url, TOKEN, redial=Redial(base=0.02, budget=0.3))
        dropped = await dialled.receive()
        assert isinstance(dropped, Dropped)
        assert dropped.close_code == 1012
        with pytest.raises(LinkClosed, match="No connection"):
            await dialled.receive()


async def test_an_error_in_the_block_comes_out_of_the_server_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        async with serve_endpoint(CliEndpoint(lambda _: None)):
            raise ZeroDivisionError


async def test_a_port_that_is_taken_is_refused() -> None:
    async with serve_endpoint(CliEndpoint(lambda _: None)) as port:
        with pytest.raises(LinkRefused, match=r"cannot listen .* port 0 picks a free one"):
            async with serve_endpoint(CliEndpoint(lambda _: None), port=port):
                pass


# --- dead peers ---


async def test_a_ping_is_answered_and_a_peer_that_vanished_is_noticed_by_both() -> None:
    link = WebSocketLink(grace=5)
    doors = {PATH: LinkAccess(link, TOKEN)}
    with anyio.fail_after(SECONDS):
        async with (
            serve_endpoint(CliEndpoint(doors.get), ping_seconds=0.2) as port,
            relay_to(port) as relay,
        ):
            url = f"ws://127.0.0.1:{relay.port}{PATH}"
            redial = Redial(base=0.02, cap=0.05, ping=0.2, first=1, attempt=0.5)
            async with await DialLink.connect(url, TOKEN, redial=redial) as dialled:
                with anyio.move_on_after(1.0) as quiet:
                    await dialled.receive()
                assert quiet.cancelled_caught  # five pings each way, and the link stands
                assert relay.connections == 1
                relay.stall()
                await until(lambda: not link.connected)
                assert isinstance(await dialled.receive(), Dropped)
                assert not dialled.connected
                relay.cut()
                relay.flow()
                assert isinstance(await dialled.receive(), Resumed)
            await link.close()


# --- dialling ---


@pytest.mark.parametrize("code", [1002, 4001, 4003, 4000])
async def test_permanent_close_codes_end_the_link(code: int) -> None:
    link = await _closed_with(code)
    with pytest.raises(LinkClosed, match=f"close code {code}") as closed:
        await link.receive()
    assert closed.value.close_code == code
    await link.close()


@pytest.mark.parametrize("code", [1000, 1001, 1008, 1011, 1012, 4004])
async def test_every_other_close_code_makes_it_dial_again(code: int) -> None:
    link = await _closed_with(code)
    dropped = await link.receive()
    assert isinstance(dropped, Dropped)
    assert dropped.close_code == code
    with pytest.raises(LinkClosed, match=r"No connection to .* within 0\.2 s"):
        await link.receive()
    await link.close()


async def _closed_with(code: int) -> DialLink:
    async def close(socket: ServerConnection) -> None:
        await socket.close(code)

    async with serve(close, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        redial = Redial(base=0.01, cap=0.05, budget=0.2)
        return await DialLink.connect(f"ws://127.0.0.1:{port}/", TOKEN, redial=redial)


async def test_nobody_there_and_no_websocket_are_refused_with_the_reason(site: Site) -> None:
    site.relay.refusing = True
    for url, words in (
        ("http://127.0.0.1:9/", "not the address of a WebSocket"),
        (site.url, r"No connection to .* within 0\.2 s"),
    ):
        with pytest.raises(LinkRefused, match=words):
            await DialLink.connect(url, TOKEN, redial=Redial(base=0.01, cap=0.05, first=0.2))
    assert site.relay.connections > 2


async def test_a_token_that_is_revoked_ends_the_link_at_the_reconnect() -> None:
    link = WebSocketLink(grace=5)
    doors = {PATH: LinkAccess(link, TOKEN)}
    with anyio.fail_after(SECONDS):
        async with serve_endpoint(CliEndpoint(doors.get)) as port, relay_to(port) as relay:
            url = f"ws://127.0.0.1:{relay.port}{PATH}"
            async with await DialLink.connect(url, TOKEN, redial=QUICK) as dialled:
                doors.clear()
                relay.cut()
                assert isinstance(await dialled.receive(), Dropped)
                with pytest.raises(LinkClosed, match="HTTP 401"):
                    await dialled.receive()
            await link.close()


async def test_closing_ends_a_pause_between_attempts(site: Site) -> None:
    dialled = await site.dial(Redial(base=60, cap=60))
    site.relay.refusing = True
    site.relay.cut()
    async with anyio.create_task_group() as group:

        async def wait() -> None:
            assert isinstance(await dialled.receive(), Dropped)
            with pytest.raises(LinkClosed, match="was closed"):
                await dialled.receive()

        group.start_soon(wait)
        await until(lambda: not dialled.connected)
        await dialled.close()


@given(st.integers(0, 10_000))
def test_pauses_double_up_to_the_cap_with_jitter(number: int) -> None:
    expected = min(2.0**number if number < 100 else 30.0, 30.0)
    assert 0.75 * expected <= Redial().pause(number) <= 1.25 * expected


# --- frames ---


@settings(max_examples=examples(50))
@given(st.lists(st.one_of(st.binary(max_size=20), st.text(max_size=20)), max_size=10))
async def test_any_cut_into_frames_of_any_kind_gives_the_same_bytes(
    frames: list[bytes | str],
) -> None:
    link = WebSocketLink(grace=0)
    incoming: list[Message] = [{"type": "websocket.connect"}]
    for frame in frames:
        kind = "text" if isinstance(frame, str) else "bytes"
        incoming.append({"type": "websocket.receive", kind: frame})
    incoming.append({"type": "websocket.disconnect", "code": 1000})

    async def receive() -> Message:
        return incoming.pop(0)

    async def send(message: dict[str, object]) -> None:
        assert message == {"type": "websocket.accept"}

    headers = [(b"authorization", f"Bearer {TOKEN}".encode())]
    scope = {"type": "websocket", "path": PATH, "headers": headers}
    await CliEndpoint({PATH: LinkAccess(link, TOKEN)}.get)(scope, receive, send)
    data = b""
    while True:
        try:
            item = await link.receive()
        except LinkClosed:
            break
        if isinstance(item, Dropped):
            assert item.close_code == 1000
            continue
        assert isinstance(item, bytes)
        data += item
    whole = b"".join(frame.encode() if isinstance(frame, str) else frame for frame in frames)
    assert data == whole


# --- the hybrid way: events by POST ---

EVENTS = PATH.replace("/ws/", "/session/") + "/events"


async def post(
    site: Site, body: bytes, *, token: str = TOKEN, path: str = EVENTS, method: str = "POST"
) -> tuple[int, dict[str, str]]:
    def ask() -> tuple[int, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=10)
        try:
            connection.request(method, path, body, {"Authorization": f"Bearer {token}"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    return await anyio.to_thread.run_sync(ask)


async def test_posted_events_become_lines_in_their_order(site: Site) -> None:
    async with await site.dial():
        status, _ = await post(site, b'{"events":[{"b":1,"a":"\\n"},{"c":\n [1,\n2]}]}')
        assert status == 200
        status, _ = await post(site, b'{"events":[{"d":2}]}')
        assert status == 200
        assert await read(site.link, 36) == b'{"b":1,"a":"\\n"}\n{"c":[1,2]}\n{"d":2}\n'


async def test_the_same_post_again_is_acknowledged_and_not_taken_twice(site: Site) -> None:
    body = b'{"events":[{"uuid":"u"}]}'
    assert await post(site, body) == (200, {"ok": "1 accepted"})
    assert await post(site, body) == (200, {"ok": "duplicate"})
    assert await post(site, b'{"events":[]}') == (200, {"ok": "0 accepted"})
    assert await site.link.receive() == b'{"uuid":"u"}\n'


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"events":[1]}', b'{"events":{}}', b"\xff"])
async def test_a_body_that_is_no_list_of_events_is_refused_with_400(
    site: Site, body: bytes
) -> None:
    status, answer = await post(site, body)
    assert status == 400
    assert "not a list of events" in answer["error"]


async def test_posts_are_checked_as_connections_are(site: Site) -> None:
    good = b'{"events":[]}'
    assert (await post(site, good, token="wrong"))[0] == 401
    assert (await post(site, good, path="/v1/session/two/events"))[0] == 401
    assert (await post(site, good, path="/elsewhere"))[0] == 401
    assert (await post(site, good, method="PUT"))[0] == 405
    await site.link.close()
    assert (await post(site, good))[0] == 410


async def test_a_body_that_is_too_large_is_refused_with_413() -> None:
    link = WebSocketLink()
    endpoint = CliEndpoint({PATH: LinkAccess(link, TOKEN)}.get, body_limit=100)
    async with serve_endpoint(endpoint) as port, relay_to(port) as relay:
        site = Site(link, port, relay)
        assert (await post(site, b'{"events":[{"x":"' + b"x" * 100 + b'"}]}'))[0] == 413
        assert (await post(site, b'{"events":[]}'))[0] == 200


async def test_a_post_that_finds_no_room_is_told_to_try_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accept, "ROOM_SECONDS", 0.1)
    link = WebSocketLink(high_water=5)
    async with (
        serve_endpoint(CliEndpoint({PATH: LinkAccess(link, TOKEN)}.get)) as port,
        relay_to(port) as relay,
    ):
        site = Site(link, port, relay)
        assert (await post(site, b'{"events":[{"n":1}]}'))[0] == 200
        assert (await post(site, b'{"events":[{"n":2}]}'))[0] == 503
        assert await link.receive() == b'{"n":1}\n'
        assert (await post(site, b'{"events":[{"n":2}]}'))[0] == 200
        assert await link.receive() == b'{"n":2}\n'


@pytest.mark.parametrize("path", ["/v1/ws/ID", "/ws/session/ID", "/a/session/b/ws/c", "/plain"])
@pytest.mark.parametrize("ending", ["", "/", "/events"])
def test_the_path_of_the_socket_is_found_from_the_path_of_its_posts(path: str, ending: str) -> None:
    socket_path = path + ending
    made = socket_path.replace("/ws/", "/session/", 1)
    if not made.endswith("/events"):
        made = made + "events" if made.endswith("/") else made + "/events"
    assert socket_path in list(socket_paths(made))


def test_a_path_that_no_cli_posts_to_leads_nowhere() -> None:
    assert list(socket_paths("/v1/session/x")) == []


def test_an_event_that_is_one_line_already_is_kept_byte_for_byte() -> None:
    assert event_lines(b'{"events": [ {"b" : 1.0,"a":1e3} ]}') == [b'{"b" : 1.0,"a":1e3}']
