"""CLIs that dial the hub themselves: adopted, asked, and found again by the next hub."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest
from msgspec import Raw
from websockets.exceptions import InvalidStatus

from quarterdeck.claude.launch import Launch, to_argv
from quarterdeck.domain.errors import LinkClosed
from quarterdeck.domain.ids import new_id
from quarterdeck.hub.cli_tokens import cli_token
from quarterdeck.hub.hub import Hub
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.links.subprocess import SubprocessLink
from quarterdeck.links.websocket.accept import serve_endpoint
from quarterdeck.protocol.commands import AllowAnswer, AnswerAsk, SendPrompt, StopSession
from quarterdeck.protocol.events import Said
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.testing import RealCli, ScriptedModel, isolated_env
from quarterdeck.testing.script import Text, ToolUse, play
from support.bounds import SECONDS
from support.clis import DIALLING
from support.hub_house import until
from support.web_sockets import connect

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]
SECRET = secrets.token_bytes(32)


@asynccontextmanager
async def dialling(
    cli: RealCli,
    model: ScriptedModel,
    folder: Path,
    url: str,
    token: str,
    resume: str | None = None,
    **more: str,
) -> AsyncIterator[SubprocessLink]:
    """A CLI that somebody started to dial."""
    (folder / "home").mkdir(exist_ok=True)
    more |= {"CLAUDE_CODE_SESSION_ACCESS_TOKEN": token}
    env = isolated_env(folder / "home", model.url, **more)
    argv = to_argv(Launch(sdk_url=url, resume=resume))
    async with await SubprocessLink.start(cli.command, argv, cwd=folder, env=env) as process:
        yield process


async def gone(process: SubprocessLink) -> None:
    """Wait until a CLI has ended by itself."""
    with anyio.fail_after(SECONDS), suppress(LinkClosed):
        while True:
            await process.receive()


async def adopted(hub: Hub) -> str:
    """The session that a CLI was adopted as."""
    with anyio.fail_after(SECONDS):
        async for batch in hub.follow():
            return batch[0].session
    raise AssertionError("the journal was closed")


@pytest.mark.parametrize("version", DIALLING)
async def test_a_cli_at_the_root_is_adopted_and_steered_like_any_other(
    version: str, clis: dict[str, RealCli], model: ScriptedModel, tmp_path: Path
) -> None:
    hub = Hub(MemoryJournal(), lambda token: None, cli_secret=SECRET)
    async with hub.run(), serve_endpoint(hub.inbound) as port:
        url = f"ws://127.0.0.1:{port}/"
        cli = dialling(clis[version], model, tmp_path, url, cli_token(SECRET, "/"))
        async with cli as process:
            session = await adopted(hub)
            script = play(ToolUse("Bash", {"command": "touch made.txt"}), Text("done"))
            content = Raw(json.dumps(script).encode())
            await hub.submit(SendPrompt(session=session, prompt="p", content=content))
            view = await until(hub, session, lambda view: bool(view.asks))
            (card,) = view.asks.values()
            await hub.submit(AnswerAsk(ask=card.opened.ask, answer=AllowAnswer(), by="ada"))
            await until(hub, session, lambda view: view.turns == 1)
            assert (tmp_path / "made.txt").exists()
            await hub.submit(StopSession(session=session))
            await until(hub, session, lambda view: view.state is SessionState.ENDED)
            await gone(process)  # 2.1.37 has connected again before, and was not let in
            assert [view.session for view in await hub.sessions()] == [session]


@pytest.mark.parametrize("own_path", [False, True])
async def test_a_cli_that_posts_what_it_says_is_adopted_too(
    own_path: bool, clis: dict[str, RealCli], model: ScriptedModel, tmp_path: Path
) -> None:
    hub = Hub(MemoryJournal(), lambda token: None, cli_secret=SECRET)
    mine = new_id()
    place, named = (f"/v1/ws/{mine}", mine) if own_path else ("/", "/")
    async with hub.run(), serve_endpoint(hub.inbound) as port:
        hybrid = {"CLAUDE_CODE_POST_FOR_SESSION_INGRESS_V2": "1"}
        token = cli_token(SECRET, named)
        url = f"ws://127.0.0.1:{port}{place}"
        async with dialling(clis["2.1.120"], model, tmp_path, url, token, **hybrid):
            session = await adopted(hub)
            content = Raw(json.dumps(play(Text("posted"))).encode())
            await hub.submit(SendPrompt(session=session, prompt="p", content=content))
            await until(hub, session, lambda view: view.turns == 1)
            said = [e.event for e in await hub.events(session) if isinstance(e.event, Said)]
            assert any(b"posted" in bytes(event.line) for event in said)


@pytest.mark.parametrize("version", ["2.1.62", "2.1.120"])
async def test_the_next_hub_finds_a_cli_with_its_question_still_open(
    version: str, clis: dict[str, RealCli], model: ScriptedModel, tmp_path: Path
) -> None:
    journal = MemoryJournal()
    session = new_id()
    script = play(ToolUse("Bash", {"command": "touch made.txt"}), Text("done"))
    first = Hub(journal, lambda token: None, cli_secret=SECRET)
    async with AsyncExitStack() as stack:
        async with first.run(), serve_endpoint(first.inbound) as port:
            url = f"ws://127.0.0.1:{port}/v1/ws/{session}"
            cli = dialling(clis[version], model, tmp_path, url, cli_token(SECRET, session))
            await stack.enter_async_context(cli)
            await adopted(first)
            content = Raw(json.dumps(script).encode())
            await first.submit(SendPrompt(session=session, prompt="p", content=content))
            await until(first, session, lambda view: bool(view.asks))
        second = Hub(journal, lambda token: None, cli_secret=SECRET)
        async with second.run(), serve_endpoint(second.inbound, port=port):
            view = await until(second, session, lambda view: bool(view.asks))
            (card,) = view.asks.values()
            await second.submit(AnswerAsk(ask=card.opened.ask, answer=AllowAnswer(), by="ada"))
            await until(second, session, lambda view: view.turns == 1)
            assert (tmp_path / "made.txt").exists()


@pytest.mark.parametrize("version", ["2.1.37", "2.1.120"])
async def test_an_ended_session_goes_on_with_a_cli_that_dials_its_path_again(
    version: str, clis: dict[str, RealCli], model: ScriptedModel, tmp_path: Path
) -> None:
    hub = Hub(MemoryJournal(), lambda token: None, cli_secret=SECRET)
    session = new_id()
    token = cli_token(SECRET, session)
    async with hub.run(), serve_endpoint(hub.inbound) as port:
        url = f"ws://127.0.0.1:{port}/v1/ws/{session}"
        async with dialling(clis[version], model, tmp_path, url, token) as process:
            await adopted(hub)
            await hub.submit(SendPrompt(session=session, prompt="p", content=Raw(b'"remember me"')))
            first = await until(hub, session, lambda view: view.turns == 1)
            # Only the CLI knew where it works, and what it is.
            assert first.spec.directory == first.directory == str(tmp_path)
            assert first.version == version
            await hub.submit(StopSession(session=session))
            await until(hub, session, lambda view: view.state is SessionState.ENDED)
            await gone(process)
            assert (await hub.session(session)).state is SessionState.ENDED
        again = dialling(clis[version], model, tmp_path, url, token, resume=first.cli_session)
        async with again:
            await until(hub, session, lambda view: view.state is SessionState.IDLE)
            await hub.submit(SendPrompt(session=session, prompt="q", content=Raw(b'"more"')))
            second = await until(hub, session, lambda view: view.turns == 2)
            assert second.run != first.run
            assert second.created == first.created
            assert "remember me" in model.turns[-1].body.decode()
            await hub.submit(StopSession(session=session))
            await until(hub, session, lambda view: view.state is SessionState.ENDED)


async def test_a_wrong_token_opens_nothing(
    clis: dict[str, RealCli], model: ScriptedModel, tmp_path: Path
) -> None:
    hub = Hub(MemoryJournal(), lambda token: None, cli_secret=SECRET)
    async with hub.run(), serve_endpoint(hub.inbound) as port:
        other = cli_token(SECRET, new_id())
        url = f"ws://127.0.0.1:{port}/v1/ws/{new_id()}"
        async with dialling(clis["2.1.120"], model, tmp_path, url, other) as process:
            with anyio.fail_after(SECONDS), pytest.raises(LinkClosed):
                await process.receive()  # 2.1.120 gives up at once, and says nothing
    assert await hub.sessions() == []


async def test_one_that_was_sent_away_does_not_take_the_place_of_the_next() -> None:
    """2.1.37 comes back whatever it is told; it would be given the next one's prompts."""
    hub = Hub(MemoryJournal(), lambda token: None, cli_secret=SECRET)
    session = new_id()
    token = {"Authorization": f"Bearer {cli_token(SECRET, session)}"}
    async with hub.run(), serve_endpoint(hub.inbound) as port:
        url = f"ws://127.0.0.1:{port}/v1/ws/{session}"
        async with connect(url, additional_headers=token) as first:
            await first.send('{"type":"system","subtype":"status","uuid":"last-words"}\n')
            await until(hub, session, lambda view: view.said == 1)
            await hub.submit(StopSession(session=session))
            await until(hub, session, lambda view: view.state is SessionState.ENDED)
        async with connect(url, additional_headers=token) as second:
            again = {**token, "X-Last-Request-Id": "last-words"}
            with pytest.raises(InvalidStatus, match="401"):
                await connect(url, additional_headers=again)
            view = await until(hub, session, lambda view: view.run is not None)
            await second.send('{"type":"system","subtype":"status","uuid":"mine"}\n')
            view = await until(hub, session, lambda view: view.said == 1)
            assert view.link_lost is None
