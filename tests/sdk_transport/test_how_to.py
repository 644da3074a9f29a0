"""The how-to page about programs of the official SDK: its examples run as they are written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage

from quarterdeck.claude.launch import Launch, to_argv
from quarterdeck.links.subprocess import SubprocessLink
from quarterdeck.sdk_transport import uninstall
from quarterdeck.testing.clis import RealCli, isolated_env
from quarterdeck.testing.model import ScriptedModel
from support.bounds import SECONDS
from support.clis import PROJECT

PAGE = (PROJECT / "docs" / "how-to" / "run-official-sdk-programs.md").read_text()
QUERY, CLIENT, WEBSOCKET = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


def run(example: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(example, "example", "exec", dont_inherit=True), names)
    return names


async def test_the_query_runs(
    clis: dict[str, RealCli],
    tmp_path: Path,
    model: ScriptedModel,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model.enqueue("Hello!")
    options = ClaudeAgentOptions(
        cli_path=clis["2.1.325"].command[0], cwd=tmp_path, env=isolated_env(tmp_path, model.url)
    )
    with anyio.fail_after(SECONDS):
        names = run(QUERY)
        names["install"]()
        try:
            await names["main"](options)
        finally:
            uninstall()
    assert capsys.readouterr().out == "Hello!\n"
    model.enqueue("Hello again!")
    with anyio.fail_after(SECONDS):
        async with run(CLIENT)["client_for"](options) as client:
            await client.query("hi")
            said = [message async for message in client.receive_response()]
    assert isinstance(said[-1], ResultMessage)
    assert said[-1].result == "Hello again!"


async def test_the_websocket_is_dialled(
    clis: dict[str, RealCli], tmp_path: Path, model: ScriptedModel, free_tcp_port: int
) -> None:
    url = f"ws://127.0.0.1:{free_tcp_port}/v1/ws/one"
    env = isolated_env(tmp_path, model.url, CLAUDE_CODE_SESSION_ACCESS_TOKEN="secret")
    argv = to_argv(Launch(sdk_url=url))
    ask_whoever_dials = run(WEBSOCKET)["ask_whoever_dials"]
    with anyio.fail_after(SECONDS):
        # A CLI that finds nobody dials again, so it does not matter which of the two is first.
        command = clis["2.1.120"].command
        async with await SubprocessLink.start(command, argv, cwd=tmp_path, env=env):
            messages = await ask_whoever_dials("hi", free_tcp_port, "secret")
    assert isinstance(messages[-1], ResultMessage)
    assert messages[-1].result == "echo: hi"
