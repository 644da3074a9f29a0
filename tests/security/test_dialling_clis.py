"""Tokens of CLIs that dial the hub: they can be revoked, and make no countless sessions (M7)."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest
from websockets.asyncio import client
from websockets.exceptions import InvalidStatus

from quarterdeck.cli.hub.tokens import run_token_list, run_token_revoke
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.inbound_clis import MOST_NEW, cli_token
from quarterdeck.journal import MemoryJournal
from quarterdeck.links.websocket import serve_endpoint
from quarterdeck.service.service import cli_secret
from support.bounds import SECONDS
from support.web_sockets import connect

SECRET = b"s" * 32


def dial(port: int, secret: bytes) -> client.connect:
    headers = {"authorization": f"Bearer {cli_token(secret, '/')}"}
    return connect(f"ws://127.0.0.1:{port}/", additional_headers=headers)


async def test_m7_a_revoked_token_opens_nothing_and_ends_what_is_open() -> None:
    hub = Hub(MemoryJournal(), lambda token: None, cli_secret=SECRET)
    async with hub.running(), serve_endpoint(hub.dialled) as port:
        async with dial(port, SECRET) as there:
            hub.dialled.change_secret(os.urandom(32))
            with anyio.fail_after(SECONDS):
                await there.wait_closed()
        with pytest.raises(InvalidStatus):
            await dial(port, SECRET)


async def test_m7_the_token_of_the_root_begins_a_limited_number_of_sessions() -> None:
    hub = Hub(MemoryJournal(), lambda token: None, cli_secret=SECRET)
    async with (
        hub.running(),
        serve_endpoint(hub.dialled) as port,
        AsyncExitStack() as stack,
    ):
        for _ in range(MOST_NEW):
            await stack.enter_async_context(dial(port, SECRET))
        with pytest.raises(InvalidStatus):
            await dial(port, SECRET)


def test_m7_the_tokens_are_listed_and_revoked_by_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path))
    before = cli_secret(tmp_path)
    run_token_list()
    assert "CLIs that dial the hub" in capsys.readouterr().out
    run_token_revoke("cli")
    assert cli_secret(tmp_path) != before
    assert (tmp_path / "cli.secret").stat().st_mode & 0o077 == 0
