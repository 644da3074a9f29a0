"""Tokens, a hub reached by its address, a runner as on another machine, and a CLI that dials."""

from __future__ import annotations

import os
import shlex
import signal

import anyio
import pytest
from anyio.abc import Process

from quarterdeck.protocol.sessions import SessionState
from quarterdeck.testing import RealCli, fake
from support.bounds import SECONDS
from support.processes import Processes, running
from support.served_deck import ServedDeck, until_true

pytestmark = pytest.mark.anyio


async def test_tokens_are_made_listed_used_from_elsewhere_and_revoked(deck: ServedDeck) -> None:
    await deck.serve("--no-runner", "--allow-origin", "https://deck.example")
    token = deck.command.home / "viewer.token"
    token.write_text((await deck("token", "--role", "viewer", "--name", "grace")).out)
    there = ("--hub", deck.address, "--token-file", str(token))
    assert (await deck("ps", *there)).err == "no sessions\n"
    refused = await deck("new", "/tmp", "hello", *there, code=1)
    assert refused.err == "quarterdeck: grace is a viewer and may not manage\n"
    listed = (await deck("token", "list")).out
    (line,) = [line for line in listed.splitlines() if "grace" in line]
    assert "viewer" in line
    assert token.read_text().strip().split("_", 2)[2] not in listed
    await deck("token", "revoke", line.split()[0])
    gone = await deck("ps", *there, code=1)
    assert gone.err == "quarterdeck: the token or login is not valid\n"
    link = (await deck("token", "--login", "--role", "operator")).out
    assert link.startswith(f"{deck.address}/login#qd_")
    assert link.count("\n") == 1, "a QR code is for a terminal"
    here = deck.command.at_terminal("token", "--login")
    await here.expect(f"{deck.address}/login#qd_")
    await here.expect("Or on another device: https://deck.example/login#qd_")
    await here.expect("▄")
    assert await here.end() == 0
    assert (
        "one of owner, operator, viewer, runner"
        in (await deck("token", "--role", "king", code=2)).err
    )
    await deck("stop")
    assert await deck.ends() == 0


async def test_a_runner_brings_another_machine_and_its_agents_end_with_it(
    deck: ServedDeck,
) -> None:
    deck.command.play_fake(fake.Initialize(), fake.Serve())
    await deck.serve("--no-runner")
    token = deck.command.home / "box.token"
    token.write_text((await deck("token", "--role", "runner", "--name", "box")).out)
    where = ("--hub", deck.address, "--token-file", str(token))
    runner = await deck.command.start("runner", *where, "--machine", "box")
    await until_true(lambda: any(machine.connected for machine in deck.client.machines()))
    assert "machine  box, 0 agents" in (await deck("status")).out

    relative = await deck("new", "--machine", "box", "work", code=2)
    assert "on another machine the path must be absolute" in relative.err
    made = await deck("new", "--machine", "box", "--name", "far", str(deck.command.work), "hello")
    shape = await deck.until(made.out.strip(), lambda shape: shape.turns == 1)
    assert shape.machine == "box"
    pid = shape.pid
    assert pid is not None
    assert "echo: hello" in (await deck("log", "far")).out

    runner.send_signal(signal.SIGINT)
    assert await runner.wait() == 0
    await deck.until_state(shape.session, "ended")
    await until_true(lambda: not running(pid))
    await deck("stop")
    assert await deck.ends() == 0


@pytest.mark.real_cli
@pytest.mark.parametrize("version", ["2.1.52", "2.1.92"])
async def test_a_cli_dials_the_hub_with_the_command_line_that_token_prints(
    version: str, deck: ServedDeck, extra_clis: dict[str, RealCli], processes: Processes
) -> None:
    """R13: the line for one session goes on with its conversation."""
    await deck.serve("--no-runner")
    claude = deck.command.home / "claude"
    claude.write_text(f'#!/bin/sh\nexec {shlex.join(extra_clis[version].command)} "$@"\n')
    claude.chmod(0o755)
    env = deck.command.env

    async def dial(line: str) -> Process:
        process = await anyio.open_process(
            line.strip(),
            env=env | {"PATH": f"{deck.command.home}{os.pathsep}{env['PATH']}"},
            cwd=deck.command.work,
            start_new_session=True,
            stdin=None,
            stdout=None,
            stderr=None,
        )
        processes.started(process.pid)
        return process

    async def turn(session: str, text: str, count: int) -> None:
        await deck("send", session, text)
        await deck.until(session, lambda shape: shape.turns == count)
        assert f"echo: {text}" in (await deck("log", session)).out
        await deck("stop", session)

    dialled = await dial((await deck("token", "--cli")).out)
    await until_true(lambda: any(True for _ in deck.client.sessions()))
    (shape,) = deck.client.sessions()
    await turn(shape.session, "who is there?", 1)
    with anyio.fail_after(SECONDS):
        await dialled.wait()
    own = await deck("token", "--cli", "--session", shape.session)
    assert f"/v1/ws/{shape.session}" in own.out
    conversation = deck.client.session(shape.session).cli_session
    assert conversation is not None
    assert f"--resume={conversation}" in own.out
    again = await dial(own.out)
    await deck.until(shape.session, lambda shape: shape.state is SessionState.IDLE)
    await turn(shape.session, "and now?", 2)
    assert deck.client.session(shape.session).cli_session == conversation
    with anyio.fail_after(SECONDS):
        await again.wait()
    await deck("stop")
    assert await deck.ends() == 0
