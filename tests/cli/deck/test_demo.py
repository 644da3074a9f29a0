"""`quarterdeck demo`: the whole deck, and nothing of it left."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quarterdeck.cli.deck.client import HubClient
from quarterdeck.cli.deck.place import living_hub, own_token
from quarterdeck.runner import living_runner
from support.command_line import Quarterdeck
from support.processes import Processes, running
from support.served_deck import until_true

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


@pytest.mark.parametrize("which", ["real", "fake"])
async def test_the_demo_asks_for_a_permission_and_leaves_nothing_behind(
    which: str, quarterdeck: Quarterdeck, processes: Processes
) -> None:
    terminal = quarterdeck.at_terminal("demo", *(["--fake"] if which == "fake" else []))
    said = await terminal.expect("Ctrl-C ends all of it.")
    found = re.search(r"export QUARTERDECK_HOME=(\S+)", said)
    assert found is not None
    home = Path(found[1])
    runner = living_runner(home / "runner")
    assert runner is not None
    processes.started(runner.pid)
    assert ("a fake CLI" in said) == (which == "fake")

    person = quarterdeck.at_terminal("attach", "demo", QUARTERDECK_HOME=str(home))
    await person.expect("> Write a greeting into hello.txt.")
    await person.expect("│ command: echo 'Hello from the quarterdeck.' > hello.txt")
    await person.expect("\n? ")
    person.press("y\n")
    await person.expect("done · $")
    state = living_hub(home)
    assert state is not None
    (shape,) = HubClient(state.address, own_token(home)).sessions()
    assert (home.parent / "work" / "hello.txt").exists() == (which == "real")
    person.press("\x04")
    assert await person.end() == 0

    terminal.interrupt()
    await terminal.expect("The demo has ended, and all that it made is gone.")
    assert await terminal.end() == 0
    agent = shape.pid
    assert agent is not None
    await until_true(lambda: not running(agent) and not running(runner.pid))
    assert not home.parent.exists()
