"""CLIs that connected to the hub, and come back to it or do not: each to its own session."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import pytest
from msgspec import Raw
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus

from quarterdeck.claude.launch import Launch, to_argv
from quarterdeck.domain.ids import new_id
from quarterdeck.domain.secrets import mask_tokens
from quarterdeck.hub import inbound_clis, session_requests
from quarterdeck.hub.cli_tokens import cli_token, root_token
from quarterdeck.hub.hub import Hub
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.links.subprocess import SubprocessLink
from quarterdeck.links.websocket.accept import serve_endpoint
from quarterdeck.protocol.coded_texts import end_text
from quarterdeck.protocol.commands import (
    AllowAnswer,
    AnswerAsk,
    DeleteSession,
    Interrupt,
    ResumeSession,
    SendPrompt,
    StopSession,
)
from quarterdeck.protocol.events import LinkLost, RunEnded, RunStarting, Said, Sent, TurnEnded
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.testing import RealCli, ScriptedModel, isolated_env
from quarterdeck.testing.script import Text, ToolUse, play
from support.bounds import SECONDS
from support.hub_house import until
from support.waiting import until as condition
from support.web_sockets import connect

pytestmark = pytest.mark.anyio
SECRET = secrets.token_bytes(32)
HYBRID = {"CLAUDE_CODE_POST_FOR_SESSION_INGRESS_V2": "1"}


def new_hub(journal: MemoryJournal) -> Hub:
    return Hub(journal, lambda token: None, cli_secret=SECRET)


def bearer(token: str, last: str | None = None) -> dict[str, str]:
    headers = {"Authorization": f"Bearer {token}"}
    return headers if last is None else headers | {"X-Last-Request-Id": last}


async def sessions_of(hub: Hub, count: int) -> list[str]:
    """Wait until there are so many sessions; oldest first."""
    with anyio.fail_after(SECONDS):
        while True:
            if len(found := await hub.sessions()) >= count:
                return [view.session for view in reversed(found)]
            await anyio.sleep(0.05)


async def prompt(hub: Hub, session: str, text: str) -> None:
    content = Raw(json.dumps(play(Text(text))).encode())
    await hub.submit(SendPrompt(session=session, prompt=new_id(), content=content))


def has_turns(count: int) -> Callable[[SessionView], bool]:
    return lambda view: view.turns == count


async def said(hub: Hub, session: str) -> bytes:
    """All that the CLI of a session said."""
    events = [stored.event for stored in await hub.events(session)]
    return b"\n".join(bytes(event.line) for event in events if isinstance(event, Said))


async def ending(hub: Hub, session: str) -> str:
    """Why the last run of a session ended."""
    events = [stored.event for stored in await hub.events(session)]
    return [end_text(event) for event in events if isinstance(event, RunEnded)][-1]


@asynccontextmanager
async def real_cli(
    cli: RealCli, model: ScriptedModel, folder: Path, url: str, **more: str
) -> AsyncIterator[SubprocessLink]:
    """A CLI that somebody started in a folder to dial `/`."""
    (folder / "home").mkdir(parents=True)
    more |= {"CLAUDE_CODE_SESSION_ACCESS_TOKEN": cli_token(SECRET, "/")}
    env = isolated_env(folder / "home", model.url, **more)
    argv = to_argv(Launch(sdk_url=url))
    async with await SubprocessLink.start(cli.command, argv, cwd=folder, env=env) as process:
        yield process


# --- real CLIs ------------------------------------------------------------------------------------


@pytest.mark.real_cli
@pytest.mark.parametrize("version", ["2.1.92", "2.1.120"])
async def test_clis_at_the_root_keep_their_own_sessions_over_restarts_of_the_hub(
    version: str, extra_clis: dict[str, RealCli], model: ScriptedModel, tmp_path: Path
) -> None:
    """R3, R5. Two CLIs that post what they say, two that do not, and two restarts.

    Who is given any session that is free would be found out.
    """
    journal = MemoryJournal()
    kinds: dict[str, dict[str, str]] = {"a": {}, "b": HYBRID, "c": HYBRID, "d": {}}
    names = tuple(kinds)
    async with AsyncExitStack() as stack:
        hub = new_hub(journal)
        async with hub.run(), serve_endpoint(hub.inbound) as port:
            url = f"ws://127.0.0.1:{port}/"
            for name in names:
                folder = tmp_path / name
                cli = real_cli(extra_clis[version], model, folder, url, **kinds[name])
                await stack.enter_async_context(cli)
                *_, session = await sessions_of(hub, names.index(name) + 1)
                await prompt(hub, session, f"I am {name}")
                await until(hub, session, lambda view: view.turns == 1)
            sessions = await sessions_of(hub, len(names))
        for restart in (1, 2):
            hub = new_hub(journal)
            async with hub.run(), serve_endpoint(hub.inbound, port=port):
                for session in sessions:
                    await until(hub, session, lambda view: view.state is SessionState.IDLE)
                for name, session in zip(names, sessions, strict=True):
                    await prompt(hub, session, f"still {name} after {restart}")
                    view = await until(hub, session, has_turns(restart + 1))
                    assert view.directory == str(tmp_path / name)
                    assert f'"cwd":"{tmp_path / name}"'.encode() in await said(hub, session)
                assert await sessions_of(hub, len(names)) == sessions
        for name, session in zip(names, sessions, strict=True):
            lines = await said(hub, session)
            others = set(names) - {name}
            assert f"still {name} after 2".encode() in lines
            assert not any(f"still {other} after".encode() in lines for other in others)
            assert not any(str(tmp_path / other).encode() in lines for other in others)
            events = [stored.event for stored in await hub.events(session)]
            assert len([event for event in events if isinstance(event, RunStarting)]) == 1
            sent = b"\n".join(bytes(event.line) for event in events if isinstance(event, Sent))
            assert cli_token(SECRET, session).encode() not in sent + lines


@pytest.mark.real_cli
@pytest.mark.parametrize("version", ["2.1.52", "2.1.92"])
async def test_a_real_cli_that_is_gone_after_a_restart_of_the_hub_ends_its_session(
    version: str,
    extra_clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """R4. The hub and the CLI end, and only the hub comes back."""
    journal = MemoryJournal()
    hub = new_hub(journal)
    async with AsyncExitStack() as stack, hub.run(), serve_endpoint(hub.inbound) as port:
        cli = real_cli(extra_clis[version], model, tmp_path / "a", f"ws://127.0.0.1:{port}/")
        await stack.enter_async_context(cli)
        (session,) = await sessions_of(hub, 1)
        await prompt(hub, session, "here")
        await until(hub, session, has_turns(1))
    monkeypatch.setattr(inbound_clis, "RETURN_SECONDS", 1.5)
    hub = new_hub(journal)
    async with hub.run():
        await until(hub, session, lambda view: view.state is SessionState.DISCONNECTED)
        await hub.submit(SendPrompt(session=session, prompt="p", content=Raw(b'"go on"')))
        view = await until(hub, session, lambda view: view.run is None)
        assert [queued.prompt for queued in view.unsent] == ["p"]
        assert not view.account.alarms
        await hub.submit(DeleteSession(session=session))
        assert await hub.sessions() == []


@pytest.mark.real_cli
async def test_an_interrupt_ends_a_turn_whose_end_was_lost_while_the_hub_was_away(
    extra_clis: dict[str, RealCli], model: ScriptedModel, tmp_path: Path
) -> None:
    """R6. 2.1.92 forgets what it says then. The next prompt must not wait for that turn."""
    journal = MemoryJournal()
    hub = new_hub(journal)
    async with AsyncExitStack() as stack:
        async with hub.run(), serve_endpoint(hub.inbound) as port:
            url = f"ws://127.0.0.1:{port}/"
            cli = real_cli(extra_clis["2.1.92"], model, tmp_path / "a", url)
            await stack.enter_async_context(cli)
            (session,) = await sessions_of(hub, 1)
            tool = ToolUse("Bash", {"command": "touch begun; until test -e go; do sleep 0.1; done"})
            content = Raw(json.dumps(play(tool, Text("nobody hears this"))).encode())
            await hub.submit(SendPrompt(session=session, prompt="p", content=content))
            view = await until(hub, session, lambda view: bool(view.asks))
            (card,) = view.asks.values()
            allow = AnswerAsk(ask=card.opened.ask, answer=AllowAnswer(), by="ada")
            await hub.submit(allow)
            with anyio.fail_after(SECONDS):
                await condition((tmp_path / "a" / "begun").exists)
        (tmp_path / "a" / "go").touch()
        home = tmp_path / "a" / "home"

        def has_gone_on_alone() -> bool:
            transcripts = home.rglob("*.jsonl")
            return any('"text":"nobody hears' in each.read_text() for each in transcripts)

        with anyio.fail_after(SECONDS):
            await condition(has_gone_on_alone)
        hub = new_hub(journal)
        async with hub.run(), serve_endpoint(hub.inbound, port=port):
            view = await until(hub, session, lambda view: view.link_lost is None)
            assert view.state is SessionState.WORKING
            await prompt(hub, session, "after the gap")
            assert len((await hub.session(session)).queued) == 1
            await hub.submit(Interrupt(session=session))
            await until(hub, session, has_turns(2))
            assert b"after the gap" in await said(hub, session)
            events = [stored.event for stored in await hub.events(session)]
            ended = [event for event in events if isinstance(event, TurnEnded)]
            assert [(event.prompts[0] == "p", event.outcome) for event in ended] == [
                (True, "no result"),
                (False, "completed"),
            ]
        again = new_hub(journal)
        async with again.run():
            run = again._sessions[session].run
            assert run is not None
            assert not run.busy


# --- clients in the hand of the test --------------------------------------------------------------


@asynccontextmanager
async def dial(
    port: int, token: str, last: str | None = None, path: str = "/"
) -> AsyncIterator[ClientConnection]:
    url = f"ws://127.0.0.1:{port}{path}"
    async with connect(url, additional_headers=bearer(token, last), proxy=None) as socket:
        yield socket


async def heard(socket: ClientConnection, wanted: str) -> str:
    """The next frame with this text in it."""
    with anyio.fail_after(SECONDS):
        while True:
            text = str(await socket.recv())
            if wanted in text:
                return text


def message(uuid: str) -> str:
    return json.dumps({"type": "system", "subtype": "status", "uuid": uuid}) + "\n"


async def one_that_dialled(hub: Hub) -> str:
    """A session whose CLI has connected to `/`, with a hub that is no more."""
    async with (
        hub.run(),
        serve_endpoint(hub.inbound) as port,
        dial(port, cli_token(SECRET, "/")) as cli,
    ):
        (session,) = await sessions_of(hub, 1)
        await cli.send(message("one"))
        await until(hub, session, lambda view: view.said == 1)
    return session


async def test_a_cli_at_the_root_is_told_its_own_token_first_and_nobody_reads_it() -> None:
    hub = new_hub(MemoryJournal())
    async with hub.run(), serve_endpoint(hub.inbound) as port:
        async with dial(port, cli_token(SECRET, "/")) as cli:
            (session,) = await sessions_of(hub, 1)
            first = json.loads(str(await cli.recv()).splitlines()[0])
            assert first["type"] == "update_environment_variables"
            own = first["variables"]["CLAUDE_CODE_SESSION_ACCESS_TOKEN"]
            assert own == root_token(SECRET, session)
            await cli.send(message("one"))
            await until(hub, session, lambda view: view.said == 1)
        events = "".join(str(stored.event) for stored in await hub.events(session))
        assert cli_token(SECRET, session) not in events
        async with dial(port, own):
            view = await until(hub, session, lambda view: view.link_lost is None)
            assert view.said == 1
        assert await sessions_of(hub, 1) == [session]


async def test_tokens_from_before_they_had_the_form_of_the_others_are_still_accepted() -> None:
    hub = new_hub(MemoryJournal())
    older = cli_token(SECRET, "/").rpartition("_")[2]
    async with hub.run(), serve_endpoint(hub.inbound) as port:
        async with dial(port, older):
            (session,) = await sessions_of(hub, 1)
        own = cli_token(SECRET, session).rpartition("_")[2]
        for wrong in (own, f"{session}.{older}", f"{session}.", f"{session}.qd_"):
            with pytest.raises(InvalidStatus):
                async with dial(port, wrong):
                    pass
        async with dial(port, f"{session}.{own}"):
            await until(hub, session, lambda view: view.link_lost is None)
        assert await sessions_of(hub, 1) == [session]


def test_a_token_that_an_agent_prints_is_masked() -> None:
    for token in (cli_token(SECRET, "/"), root_token(SECRET, "0" * 26, 1)):
        shown = mask_tokens(f"TOKEN={token}\n")
        assert "redacted" in shown
        assert token[-20:] not in shown


async def test_the_token_of_the_root_opens_no_session_with_a_path_of_its_own() -> None:
    hub = new_hub(MemoryJournal())
    victim = new_id()
    async with hub.run(), serve_endpoint(hub.inbound) as port:
        own = cli_token(SECRET, victim)
        async with dial(port, own, path=f"/v1/ws/{victim}") as cli:
            await until(hub, victim, lambda view: view.run is not None)
            await cli.send(message("last-words"))
            await until(hub, victim, lambda view: view.said == 1)
        await until(hub, victim, lambda view: view.link_lost is not None)
        await hub.submit(SendPrompt(session=victim, prompt="p", content=Raw(b'"the secret plan"')))
        for last in ("last-words", "anything", None):
            async with dial(port, cli_token(SECRET, "/"), last) as stranger:
                await stranger.send(message(f"by a stranger {last}"))
                await heard(stranger, '"initialize"')
        sessions = await sessions_of(hub, 4)
        assert sessions[0] == victim
        assert (await hub.session(victim)).link_lost is not None
        assert b"stranger" not in await said(hub, victim)
        for other in sessions[1:]:
            events = "".join(str(stored.event) for stored in await hub.events(other))
            assert "secret plan" not in events
        for token in (f"{victim}.wrong", f"{victim}.", f"{new_id()}.{own}", own, f"/.{own}"):
            with pytest.raises(InvalidStatus, match="401"):
                await connect(f"ws://127.0.0.1:{port}/", additional_headers=bearer(token))


async def test_a_cli_without_a_token_of_its_own_gets_the_session_that_heard_it() -> None:
    journal = MemoryJournal()
    first = new_hub(journal)
    root = cli_token(SECRET, "/")
    names = ("a", "b", "c")
    async with first.run(), serve_endpoint(first.inbound) as port:
        for name in names:
            async with dial(port, root) as cli:
                *_, session = await sessions_of(first, names.index(name) + 1)
                await cli.send(message(f"{name}-1") + message(f"{name}-2"))
                await until(first, session, lambda view: view.said == 2)
        sessions = await sessions_of(first, 3)
    hub = new_hub(journal)
    async with hub.run(), serve_endpoint(hub.inbound) as port:
        for name, session in reversed(list(zip(names, sessions, strict=True))):
            async with dial(port, root, f"{name}-2") as cli:
                await cli.send(message(f"{name}-3"))
                await until(hub, session, lambda view: view.said == 3)
        # What nobody heard, or a message of no session at the root, is nobody's proof.
        async with dial(port, root, "never-heard"):
            assert len(await sessions_of(hub, 4)) == 4
    for name, session in zip(names, sessions, strict=True):
        assert f"{name}-3".encode() in await said(hub, session)


async def test_a_session_whose_cli_does_not_come_back_ends_and_keeps_what_is_queued(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    journal = MemoryJournal()
    first = new_hub(journal)
    session = await one_that_dialled(first)
    monkeypatch.setattr(inbound_clis, "RETURN_SECONDS", 1.5)
    hub = new_hub(journal)
    async with hub.run():
        view = await until(hub, session, lambda view: view.state is SessionState.DISCONNECTED)
        await hub.submit(SendPrompt(session=session, prompt="p", content=Raw(b'"go on"')))
        view = await until(hub, session, lambda view: view.run is None)
        assert "did not reconnect within 1.5 s" in await ending(hub, session)
        assert [queued.prompt for queued in view.unsent] == ["p"]
        events = [stored.event for stored in await hub.events(session)]
        lost = [event.coded for event in events if isinstance(event, LinkLost)]
        assert lost[-1] == inbound_clis.RESTARTED
        assert not view.account.alarms
        resumed = await hub.submit(ResumeSession(session=session))
        assert resumed.session == session
        assert (await hub.session(session)).run is not None


async def test_a_session_whose_cli_is_away_is_stopped_at_once_and_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_requests, "LEAVE_SECONDS", 10 * SECONDS)  # nobody is asked to leave
    journal = MemoryJournal()
    first = new_hub(journal)
    session = await one_that_dialled(first)
    hub = new_hub(journal)
    async with hub.run(), serve_endpoint(hub.inbound) as port:
        await until(hub, session, lambda view: view.state is SessionState.DISCONNECTED)
        with anyio.fail_after(SECONDS):
            await hub.submit(StopSession(session=session))
            await until(hub, session, lambda view: view.run is None)
        # Its CLI comes back after all: it was stopped, and stays so.
        own = root_token(SECRET, session)
        with pytest.raises(InvalidStatus, match="401"):
            await connect(f"ws://127.0.0.1:{port}/", additional_headers=bearer(own, "one"))
        await hub.submit(DeleteSession(session=session))
        assert await hub.sessions() == []
