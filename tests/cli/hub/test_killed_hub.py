"""CLIs that dialled a hub which is killed: each goes on in its own session."""

from __future__ import annotations

import json
import shlex
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import anyio.to_thread
import pytest
from websockets.asyncio.client import ClientConnection

from quarterdeck.testing import RealCli
from support.bounds import SECONDS
from support.processes import Processes
from support.served_deck import ServedDeck, until_true
from support.web_sockets import connect

pytestmark = [pytest.mark.anyio, pytest.mark.process]

REAL = ("a", "b")
FAKE = ("c", "d")


def root_token(line: str) -> str:
    """The token of `/` in the line that `quarterdeck token --cli` prints."""
    name = "CLAUDE_CODE_SESSION_ACCESS_TOKEN="
    (found,) = [word for word in shlex.split(line) if word.startswith(name)]
    return found.removeprefix(name)


@asynccontextmanager
async def dial(
    deck: ServedDeck, token: str, last: str | None = None
) -> AsyncIterator[ClientConnection]:
    """A CLI as the oldest are: it keeps the token of `/`, and names its last message."""
    headers = {"Authorization": f"Bearer {token}"}
    if last is not None:
        headers |= {"X-Last-Request-Id": last}
    async with connect(f"ws://127.0.0.1:{deck.port}/", additional_headers=headers) as cli:
        yield cli


def message(uuid: str) -> str:
    said = {"type": "system", "subtype": "status", "status": None, "uuid": uuid}
    return json.dumps(said) + "\n"


async def heard(deck: ServedDeck, session: str, text: str) -> str:
    """Wait until the journal of a session has a text; gives all of it."""
    with anyio.fail_after(SECONDS):
        while True:
            if text in (events := (await deck("log", session, "--json")).out):
                return events
            await anyio.sleep(0.05)


async def new_session(deck: ServedDeck, known: dict[str, str]) -> str:
    """Wait for one more session; gives its id."""

    def found() -> set[str]:
        return {shape.session for shape in deck.client.sessions()} - set(known.values())

    await until_true(lambda: bool(found()))
    (session,) = await anyio.to_thread.run_sync(found)
    return session


@pytest.mark.real_cli
async def test_each_goes_on_in_its_own_session_when_the_hub_was_killed(
    deck: ServedDeck, clis: dict[str, RealCli], processes: Processes
) -> None:
    await deck.serve("--no-runner")
    line = (await deck("token", "--cli")).out
    claude = deck.command.home / "claude"
    claude.write_text(f'#!/bin/sh\nexec {shlex.join(clis["2.1.120"].command)} "$@"\n')
    claude.chmod(0o755)
    path = f"{deck.command.home}:{deck.command.env['PATH']}"
    sessions: dict[str, str] = {}
    for name in REAL:
        folder = anyio.Path(deck.command.work, name)
        await folder.mkdir()
        process = await anyio.open_process(
            line.strip(),
            env=deck.command.env | {"PATH": path},
            cwd=folder,
            start_new_session=True,
            stdin=None,
            stdout=None,
            stderr=None,
        )
        processes.started(process.pid)
        sessions[name] = await new_session(deck, sessions)
        await deck("send", sessions[name], f"I am {name}")
        await deck.until(sessions[name], lambda shape: shape.turns == 1)
    token = root_token(line)
    async with AsyncExitStack() as stack:
        for name in FAKE:
            cli = await stack.enter_async_context(dial(deck, token))
            sessions[name] = await new_session(deck, sessions)
            await cli.send(message(f"first-of-{name}"))
            await heard(deck, sessions[name], f"first-of-{name}")
        assert deck.hub is not None
        deck.hub.send_signal(signal.SIGKILL)
        with anyio.fail_after(SECONDS):
            await deck.hub.wait()
    await deck.serve("--no-runner")
    async with AsyncExitStack() as stack:
        # In another order than before: who gets the first session that is away gets a wrong one.
        for name in reversed(FAKE):
            cli = await stack.enter_async_context(dial(deck, token, f"first-of-{name}"))
            await cli.send(message(f"second-of-{name}"))
        for name in REAL:
            await deck.until_state(sessions[name], "idle")
            await deck("send", sessions[name], f"still {name}")
            await deck.until(sessions[name], lambda shape: shape.turns == 2)
        for name, session in sessions.items():
            own = f"still {name}" if name in REAL else f"second-of-{name}"
            events = await heard(deck, session, own)
            others = {f"still {other}" for other in REAL} | {f"second-of-{other}" for other in FAKE}
            assert not any(other in events for other in others - {own})
        assert {shape.session for shape in deck.client.sessions()} == set(sessions.values())
    await deck("stop")
    assert await deck.ends() == 0
