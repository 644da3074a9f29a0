"""Listening for CLIs: the command line that makes one dial, and one that is started here."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from quarterdeck import LinkClosed, McpStdioServer, Options, UsageError, listen
from quarterdeck.claude import Launch
from quarterdeck.testing import fake, fake_cli_command
from support.bounds import SECONDS

pytestmark = pytest.mark.anyio


async def test_the_command_line_carries_all_that_flags_can_say() -> None:
    servers = {"files": McpStdioServer(command="serve")}
    async with listen() as listener:
        command = listener.command(Options(model="sonnet", mcp_servers=servers))
        assert listener.command(Launch(model="sonnet"))[:3] == command[:3]
        assert command[2:3] == ["claude"]
        assert f"--sdk-url={listener.url}" in command
    assert "--model=sonnet" in command
    (config,) = [part for part in command if part.startswith("--mcp-config=")]
    assert '"files"' in config


async def test_the_command_line_leaves_nothing_out_in_silence() -> None:
    async with listen() as listener:
        with pytest.raises(UsageError, match=r"cwd, env, skills"):
            listener.command(Options(cwd=".", env={"A": "b"}, skills=("x",)))


@pytest.mark.process
async def test_what_a_process_says_on_stderr_is_passed_on(tmp_path: Path) -> None:
    heard: list[str] = []
    script = [fake.Complain("one\ntwo\n"), fake.Exit(3, "three")]
    command = fake_cli_command(script, folder=tmp_path, version="2.1.120")
    async with listen() as listener:
        with anyio.fail_after(SECONDS), pytest.raises(LinkClosed) as closed:
            await listener.launch(Options(claude=command, cwd=tmp_path), stderr=heard.append)
    assert closed.value.exit_code == 3
    assert heard == ["one", "two", "three"]
