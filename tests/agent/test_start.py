"""How an agent starts: what goes by flag, what goes in the greeting, and both together."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from quarterdeck import Agent, LaunchError, McpStdioServer, Options, State, ToolServer, UsageError
from quarterdeck.testing import fake, fake_cli_command
from support.bounds import SECONDS

pytestmark = pytest.mark.anyio
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "add", "arguments": {"a": 1, "b": 2}},
}
SERVERS = {"files": McpStdioServer(command="serve", args=("--here",))}


def add(a: int, b: int) -> int:
    return a + b


@pytest.mark.process
async def test_servers_of_the_cli_and_tools_of_this_process_work_together(tmp_path: Path) -> None:
    record = tmp_path / "record"
    script = [
        fake.Initialize(),
        fake.Expect("user"),
        fake.say(
            fake.control_request("m1", subtype="mcp_message", server_name="here", message=CALL)
        ),
        fake.Expect("control_response"),
        fake.say(fake.assistant("3"), fake.result("3")),
        fake.Serve(),
    ]
    command = fake_cli_command(script, folder=tmp_path, record=record)
    options = Options(claude=command, cwd=tmp_path, mcp_servers=SERVERS)
    with anyio.fail_after(SECONDS):
        async with Agent(options, tools=[ToolServer("here", [add])]) as agent:
            assert await agent.query("add").text() == "3"
            flags = json.loads(record.read_bytes().splitlines()[0])
            (config,) = [flag for flag in flags if flag.startswith("--mcp-config=")]
            # A file, since servers may have secrets; it is removed at the end.
            servers = json.loads(await anyio.Path(config.partition("=")[2]).read_bytes())
    _, *received = [json.loads(line) for line in record.read_bytes().splitlines()]
    server = {"type": "stdio", "command": "serve", "args": ["--here"]}
    assert servers == {"mcpServers": {"files": server}}
    assert received[0]["request"]["sdkMcpServers"] == ["here"]
    (answer,) = [line["response"] for line in received if line["type"] == "control_response"]
    assert answer["request_id"] == "m1"
    assert "3" in json.dumps(answer["response"]["mcp_response"]["result"])


def test_a_name_that_both_have_is_refused() -> None:
    with pytest.raises(UsageError, match="files"):
        Agent(Options(mcp_servers=SERVERS), tools=[ToolServer("files", [add])])


@pytest.mark.process
async def test_an_agent_can_be_looked_at_before_its_start_and_after_its_end(tmp_path: Path) -> None:
    command = fake_cli_command([fake.Initialize(), fake.Serve()], folder=tmp_path)
    agent = Agent(Options(claude=command, cwd=tmp_path))
    assert agent.state.name == "NEW"
    assert (agent.version, agent.session_id, agent.init, agent.info) == (None, None, None, None)
    assert agent.asks == ()
    with anyio.fail_after(SECONDS):
        async with agent:
            await agent.query("hi").finish()
    assert agent.state is State.CLOSED
    assert str(agent.version) == "2.1.325"
    assert agent.session_id
    assert agent.init is not None
    assert agent.asks == ()


async def test_an_agent_that_did_not_start_is_closed(tmp_path: Path) -> None:
    agent = Agent(Options(claude=tmp_path / "nowhere"))
    with pytest.raises(LaunchError):
        await agent.__aenter__()
    assert agent.state is State.CLOSED
    assert agent.version is None
