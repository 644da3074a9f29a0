"""Tokens of CLIs that dial the hub: they can be revoked, and make no countless sessions (M7)."""

from __future__ import annotations

import json
import os
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest
from websockets.asyncio import client
from websockets.exceptions import InvalidStatus
from websockets.protocol import State

from quarterdeck.cli.hub.tokens import run_token_list, run_token_revoke
from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import NotFound
from quarterdeck.domain.ids import new_id
from quarterdeck.fronts.http import Role
from quarterdeck.hub import cli_tokens
from quarterdeck.hub.cli_tokens import CliTokens, cli_token
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.inbound_clis import MOST_NEW, OWN_PATH
from quarterdeck.journal import MemoryJournal
from quarterdeck.links.websocket import serve_endpoint
from quarterdeck.protocol.coded_texts import with_texts
from quarterdeck.protocol.events import Noted
from quarterdeck.service.service import cli_secret
from support.bounds import SECONDS
from support.front import front
from support.web_sockets import connect

SECRET = b"s" * 32


def dial(port: int, secret: bytes) -> client.connect:
    headers = {"authorization": f"Bearer {cli_token(secret, '/')}"}
    return connect(f"ws://127.0.0.1:{port}/", additional_headers=headers)


async def test_m7_a_revoked_token_opens_nothing_and_ends_what_is_open() -> None:
    hub = Hub(MemoryJournal(), lambda token: None, cli_secret=SECRET)
    async with hub.run(), serve_endpoint(hub.inbound) as port:
        async with dial(port, SECRET) as there:
            hub.inbound.change_secret(os.urandom(32))
            with anyio.fail_after(SECONDS):
                await there.wait_closed()
        with pytest.raises(InvalidStatus):
            await dial(port, SECRET)


async def test_m7_the_token_of_the_root_begins_a_limited_number_of_sessions() -> None:
    hub = Hub(MemoryJournal(), lambda token: None, cli_secret=SECRET)
    async with (
        hub.run(),
        serve_endpoint(hub.inbound) as port,
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


def at_its_path(port: int, tokens: CliTokens, session: str) -> client.connect:
    headers = {"authorization": f"Bearer {tokens.token(session)}"}
    return connect(f"ws://127.0.0.1:{port}{OWN_PATH}{session}", additional_headers=headers)


async def test_m7_one_token_is_revoked_at_once_and_the_others_stay(tmp_path: Path) -> None:
    tokens = CliTokens(SECRET, tmp_path / "cli-tokens.json")
    hub = Hub(MemoryJournal(), lambda token: None, cli_secret=SECRET, cli_tokens=tokens)
    one, other = new_id(), new_id()
    async with hub.run(), serve_endpoint(hub.inbound) as port:
        async with at_its_path(port, tokens, one) as cut, at_its_path(port, tokens, other) as stays:
            listed = await hub.cli_access.tokens()
            assert [each.id for each in listed] == [f"cli.{one}", f"cli.{other}"]
            old = at_its_path(port, tokens, one)
            await hub.cli_access.revoke(one, "ada")
            with anyio.fail_after(SECONDS):
                await cut.wait_closed()
            assert cut.close_code == 4001
            with pytest.raises(InvalidStatus):
                await old
            assert [each.id for each in await hub.cli_access.tokens()] == [f"cli.{other}"]
            assert stays.state is State.OPEN
            (entry,) = await hub.audit(session=one)
            coded = CodedText(code=TextCode.CLI_ACCESS_REVOKED, name="ada")
            assert entry.event == Noted(level="access", text="", coded=coded)
            with pytest.raises(NotFound):
                await hub.cli_access.revoke(new_id(), "ada")
        # The next token of the session is another one, also for a hub that was restarted.
        assert CliTokens(SECRET, tmp_path / "cli-tokens.json").token(one) == tokens.token(one)
        async with at_its_path(port, tokens, one):
            pass


async def test_m7_the_token_for_new_sessions_is_revoked_without_those_that_began_with_it() -> None:
    tokens = CliTokens(SECRET)
    hub = Hub(MemoryJournal(), lambda token: None, cli_secret=SECRET, cli_tokens=tokens)
    async with hub.run(), serve_endpoint(hub.inbound) as port, dial(port, SECRET) as first:
        with anyio.fail_after(SECONDS):
            told = json.loads(await first.recv())
            own = told["variables"]["CLAUDE_CODE_SESSION_ACCESS_TOKEN"]
            session = own.partition(".")[0]
            await first.close()
            headers = {"authorization": f"Bearer {own}", "x-last-request-id": "x"}
            async with connect(f"ws://127.0.0.1:{port}/", additional_headers=headers) as back:
                names = {each.id for each in await hub.cli_access.tokens()}
                assert names == {"cli.new", f"cli.{session}"}
                await hub.cli_access.revoke("/", "ada")
                with pytest.raises(InvalidStatus):
                    await dial(port, SECRET)
                assert back.state is State.OPEN


@pytest.mark.parametrize("broken", [b"", b"[]", b'{"tokens": 1}'])
def test_m7_nobody_gets_in_if_it_is_unknown_who_may(tmp_path: Path, broken: bytes) -> None:
    path = tmp_path / "cli-tokens.json"
    path.write_bytes(broken)
    assert CliTokens(SECRET, path).token("s") != cli_token(SECRET, "s")


def test_m7_a_revoked_token_stays_so_however_many_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli_tokens, "MOST_USED", 3)
    tokens = CliTokens(SECRET, tmp_path / "cli-tokens.json")
    first = tokens.token("s0")
    tokens.note_used("s0")
    tokens.revoke("s0")
    for number in range(1, 10):
        tokens.note_used(f"s{number}")
    assert set(tokens.used_tokens()) == {"s7", "s8", "s9"}
    assert tokens.token("s0") != first
    again = tokens.token("s0")
    tokens.revoke("s0")
    assert tokens.token("s0") not in {first, again}
    assert (tmp_path / "cli-tokens.json").stat().st_mode & 0o077 == 0


async def test_m7_a_command_revokes_one_token_beside_a_running_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path))
    tokens = CliTokens(SECRET, tmp_path / "cli-tokens.json")
    hub = Hub(MemoryJournal(), lambda token: None, cli_secret=SECRET, cli_tokens=tokens)
    one, other = new_id(), new_id()
    async with (
        hub.run(),
        serve_endpoint(hub.inbound) as port,
        at_its_path(port, tokens, one) as cut,
        at_its_path(port, tokens, other) as stays,
    ):
        run_token_list()
        assert f"cli.{one}" in capsys.readouterr().out
        assert run_token_revoke(f"cli.{one}") == 0
        await hub.cli_access.reload()
        with anyio.fail_after(SECONDS):
            await cut.wait_closed()
        assert stays.state is State.OPEN
        (entry,) = await hub.audit(session=one)
        assert isinstance(entry.event, Noted)
        assert "by a command" in with_texts(entry.event).text
    with pytest.raises(NotFound):
        run_token_revoke("cli.no such session")


async def test_m7_an_owner_lists_and_revokes_one_over_the_api(tmp_path: Path) -> None:
    tokens = CliTokens(SECRET)
    hub = Hub(MemoryJournal(), lambda token: None, cli_secret=SECRET, cli_tokens=tokens)
    session = new_id()
    async with (
        hub.run(),
        serve_endpoint(hub.inbound) as port,
        front(tmp_path, cli_access=hub.cli_access) as served,
        served.client() as owner,
        served.client(Role.OPERATOR) as operator,
        at_its_path(port, tokens, session) as cut,
    ):
        listed = (await owner.get("/api/tokens")).json()["tokens"]
        (row,) = [each for each in listed if each["id"].startswith("cli.")]
        assert (row["id"], row["label"]) == (f"cli.{session}", f"cli:{session}")
        assert (await operator.delete(f"/api/tokens/{row['id']}")).status_code == 403
        assert (await owner.delete("/api/tokens/cli.nobody")).status_code == 404
        left = (await owner.delete(f"/api/tokens/{row['id']}")).json()["tokens"]
        assert [each["id"] for each in left if each["id"].startswith("cli.")] == []
        with anyio.fail_after(SECONDS):
            await cut.wait_closed()
