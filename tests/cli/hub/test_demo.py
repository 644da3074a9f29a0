"""`quarterdeck demo`: the deck with scripted agents, and nothing of it left."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest
from msgspec import Raw

from quarterdeck.client import BlockingClient
from quarterdeck.client.calls import HubAddress
from quarterdeck.protocol.commands import CreateSession
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from quarterdeck.runner import live_runner
from quarterdeck.service.local_hub import live_hub, own_token
from support.command_line import Quarterdeck, Terminal
from support.processes import Processes, running
from support.served_deck import until_true

pytestmark = pytest.mark.anyio
WAITING, ENDED = SessionState.WAITING, SessionState.ENDED


@asynccontextmanager
async def demo_in(
    quarterdeck: Quarterdeck, processes: Processes
) -> AsyncIterator[tuple[Terminal, Path]]:
    """A running demo and its data folder; ended by Ctrl-C, with nothing left of it."""
    terminal = quarterdeck.at_terminal("demo")
    said = await terminal.expect("Ctrl-C ends the demo.")
    found = re.search(r"export QUARTERDECK_HOME=(\S+)", said)
    assert found is not None
    home = Path(found[1])
    attach = re.search(r"^ +(\S+)(?: -m quarterdeck\.cli)? attach checkout", said, re.MULTILINE)
    assert attach is not None
    # It can be typed as it is, also where `quarterdeck` is not on the PATH.
    assert shutil.which(attach[1], path="/nowhere") is not None, attach[1]
    runner = live_runner(home / "runner")
    assert runner is not None
    processes.started(runner.pid)
    yield terminal, home
    terminal.interrupt()
    await terminal.expect("The demo has ended, and its data is deleted.")
    assert await terminal.end() == 0
    await until_true(lambda: not running(runner.pid))
    assert not await anyio.Path(home.parent).exists()


def client_of(home: Path) -> BlockingClient:
    state = live_hub(home)
    assert state is not None
    return BlockingClient(HubAddress(address=state.address, token=own_token(home)))


async def test_the_demo_shows_six_states_takes_an_answer_and_leaves_nothing_behind(
    quarterdeck: Quarterdeck, processes: Processes
) -> None:
    async with demo_in(quarterdeck, processes) as (_, home):
        hub = client_of(home)
        shown = {shape.name: shape for shape in hub.sessions()}
        assert {name: shape.state for name, shape in shown.items()} == {
            "checkout": WAITING,
            "rate limits": WAITING,
            "onboarding": WAITING,
            "dead links": SessionState.WORKING,
            "decimal prices": SessionState.IDLE,
            "nightly report": SessionState.IDLE,
        }
        failed = shown["nightly report"].last_turn
        assert failed is not None
        assert failed.failed
        assert [todo.status for todo in shown["dead links"].holds.todos][:2] == ["completed"] * 2
        plan = msgspec.json.encode([e.event for e in hub.events(shown["rate limits"].session)])
        assert b"Customers must not notice" in plan  # the comments on the first plan
        kinds = {ask.opened.ask_kind for ask in hub.asks()}
        assert kinds == {"tool", "plan", "questions"}
        changed = Path(shown["decimal prices"].spec.directory) / "prices" / "group_1.py"
        await until_true(lambda: "Decimal" in changed.read_text())

        person = quarterdeck.at_terminal("attach", "checkout", QUARTERDECK_HOME=str(home))
        await person.expect("> The tax is wrong for customers outside Germany. Fix it.")
        await person.expect("│ command: npm test -- checkout")
        await person.expect("\n? ")
        person.press("y\n")
        await person.expect("done · $")
        shape = next(each for each in hub.sessions() if each.name == "checkout")
        person.press("\x04")
        assert await person.end() == 0
    agent = shape.pid
    assert agent is not None
    await until_true(lambda: not running(agent))


async def test_the_demo_never_starts_a_cli_that_is_installed_or_named(
    quarterdeck: Quarterdeck, processes: Processes, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    real = tmp_path / "bin" / "claude"
    real.parent.mkdir()
    real.write_text(f"#!/bin/sh\necho \"$@\" >> '{started}'\n")
    real.chmod(0o755)
    quarterdeck.env["PATH"] = f"{real.parent}:{quarterdeck.env['PATH']}"
    quarterdeck.env["QUARTERDECK_CLAUDE"] = str(real)
    async with demo_in(quarterdeck, processes) as (_, home):
        hub = client_of(home)
        for name, claude in (("own", None), ("named", str(real)), ("bare", "claude")):
            spec = SessionSpec(directory=str(tmp_path), name=name, claude=claude)
            await anyio.to_thread.run_sync(
                hub.submit, CreateSession(spec=spec, prompt=Raw(b'"hello"'))
            )

        def settled() -> bool:
            states = {each.name: each.state for each in hub.sessions()}
            return states["own"] == WAITING and {states["named"], states["bare"]} == {ENDED}

        await until_true(settled)
        own, named = (next(s for s in hub.sessions() if s.name == n) for n in ("own", "named"))
        assert any(ask.session == own.session for ask in hub.asks())
        events = msgspec.json.encode([event.event for event in hub.events(named.session)])
        assert b"this machine starts only" in events
    assert not started.exists()
