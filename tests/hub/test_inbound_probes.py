"""Who only looks whether the hub is there makes no session, also with the token of a CLI."""

from __future__ import annotations

import json
import secrets

import anyio
import pytest
from websockets.exceptions import ConnectionClosed

from quarterdeck.hub import inbound_clis
from quarterdeck.hub.cli_tokens import cli_token
from quarterdeck.hub.hub import Hub
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.links.websocket.accept import serve_endpoint
from quarterdeck.links.websocket.held_socket import TRY_AGAIN
from quarterdeck.protocol.events import Said
from support.bounds import SECONDS
from support.web_sockets import connect

pytestmark = pytest.mark.anyio
SECRET = secrets.token_bytes(32)
TOKEN = {"Authorization": f"Bearer {cli_token(SECRET, '/')}"}


async def begun(hub: Hub) -> str:
    """The session that begins next."""
    with anyio.fail_after(SECONDS):
        async for batch in hub.follow(after=0):
            return batch[0].session
    raise AssertionError("the journal was closed")


async def test_a_connection_that_is_closed_at_once_makes_no_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inbound_clis, "PROBE_SECONDS", SECONDS)
    hub = Hub(MemoryJournal(), lambda token: None, cli_secret=SECRET)
    async with hub.run(), serve_endpoint(hub.inbound) as port:
        for _ in range(3):
            async with connect(f"ws://127.0.0.1:{port}/", additional_headers=TOKEN):
                pass
        # Whoever speaks is taken for a CLI at once, and what it said is kept.
        async with connect(f"ws://127.0.0.1:{port}/", additional_headers=TOKEN) as cli:
            await cli.send('{"type":"keep_alive"}\n')
            session = await begun(hub)
            with anyio.fail_after(SECONDS):
                async for batch in hub.follow({session: 0}):
                    if any(isinstance(stored.event, Said) for stored in batch):
                        break
        assert [view.session for view in await hub.sessions()] == [session]


async def test_one_that_stays_and_says_nothing_is_asked_as_a_cli_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inbound_clis, "PROBE_SECONDS", 0.01)
    hub = Hub(MemoryJournal(), lambda token: None, cli_secret=SECRET)
    async with hub.run(), serve_endpoint(hub.inbound) as port:
        async with connect(f"ws://127.0.0.1:{port}/", additional_headers=TOKEN) as cli:
            kinds = [json.loads(await cli.recv())["type"] for _ in range(2)]
            assert kinds == ["update_environment_variables", "control_request"]
        assert len(await hub.sessions()) == 1


async def test_one_for_which_there_is_no_room_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbound_clis, "PROBE_SECONDS", 0.01)
    hub = Hub(MemoryJournal(), lambda token: None, cli_secret=SECRET)
    monkeypatch.setattr(hub.inbound, "_may_begin", lambda: False)
    async with hub.run(), serve_endpoint(hub.inbound) as port:
        async with connect(f"ws://127.0.0.1:{port}/", additional_headers=TOKEN) as cli:
            with anyio.fail_after(SECONDS), pytest.raises(ConnectionClosed):
                await cli.recv()
            assert cli.close_code == TRY_AGAIN
        assert await hub.sessions() == []
