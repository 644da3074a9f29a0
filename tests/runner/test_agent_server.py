"""The hub's MCP server in the launch of a CLI whose agent may direct others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.claude.launch import ArgumentFiles, to_argv
from quarterdeck.protocol.runner_frames import Start
from quarterdeck.protocol.sandbox import Network, SandboxMode, SandboxOptions, SandboxRequest
from quarterdeck.protocol.sessions import Origin, SessionSpec
from quarterdeck.runner.agent_server import CA_VARIABLE, SERVER, with_agent_server
from quarterdeck.runner.launch import launch_of

SPEC = SessionSpec(
    directory="/work",
    agents=True,
    mcp_servers={"files": Raw(b'{"command": "files"}'), SERVER: Raw(b'{"command": "mine"}')},
    env={"A": "1"},
)
TOKEN = "qd_0123456789ab_c2VjcmV0"


def start(token: str = TOKEN) -> Start:
    return Start(run="r1", session="s1", spec=SPEC, agent_token=token)


@pytest.mark.parametrize(
    ("hub", "url"),
    [
        ("ws://127.0.0.1:8765", "http://127.0.0.1:8765/mcp"),
        ("wss://hub.example/deck", "https://hub.example/deck/mcp"),
    ],
)
def test_the_server_is_where_the_runner_reaches_the_hub(hub: str, url: str) -> None:
    spec = with_agent_server(start(), hub).spec
    assert json.loads(bytes(spec.mcp_servers[SERVER])) == {
        "type": "http",
        "url": url,
        "headers": {"Authorization": f"Bearer {TOKEN}"},
    }
    assert bytes(spec.mcp_servers["files"]) == b'{"command": "files"}'


def test_a_run_without_a_token_is_started_as_it_is() -> None:
    assert with_agent_server(start(""), "ws://127.0.0.1:1") == start("")


def test_the_token_is_no_argument_of_a_process() -> None:
    launch = launch_of(with_agent_server(start(), "ws://127.0.0.1:8765").spec, Origin())
    with ArgumentFiles() as files:
        argv = to_argv(launch, files)
        assert not any(TOKEN in argument for argument in argv)
        (path,) = [each.partition("=")[2] for each in argv if each.startswith("--mcp-config=")]
        assert TOKEN in Path(path).read_text()


def test_the_authority_of_the_hub_is_trusted_by_the_cli_too() -> None:
    ca = Path("/data/tls/ca.pem")
    assert with_agent_server(start(), "wss://hub", ca).spec.env == {"A": "1", CA_VARIABLE: str(ca)}
    assert with_agent_server(start(), "ws://127.0.0.1:1", ca).spec.env == {"A": "1"}


@pytest.mark.parametrize(
    ("mode", "network", "expected"),
    [
        ("strict", None, ("127.0.0.1:8765",)),
        ("strict", "model", ("127.0.0.1:8765",)),
        ("strict", ("a.example",), ("a.example", "127.0.0.1:8765")),
        ("protect", None, None),
        ("protect", "model", ("127.0.0.1:8765",)),
        ("strict", "all", "all"),
        ("off", None, None),
    ],
)
def test_a_limited_network_reaches_the_hub_and_nothing_more(
    mode: SandboxMode, network: Network | None, expected: object
) -> None:
    request = SandboxRequest(mode=mode, options=SandboxOptions(network=network))
    made = with_agent_server(replace(start(), sandbox=request), "ws://127.0.0.1:8765").sandbox
    assert made is not None
    assert made.options.network == expected
    assert replace(made, options=request.options) == request
    without = with_agent_server(replace(start(""), sandbox=request), "ws://127.0.0.1:8765")
    assert without.sandbox == request


@pytest.mark.parametrize(
    ("hub", "host"),
    [("wss://hub.example", "hub.example:443"), ("ws://[::1]:80", "[::1]:80")],
)
def test_the_hub_is_named_with_its_port(hub: str, host: str) -> None:
    request = SandboxRequest(mode="strict")
    made = with_agent_server(replace(start(), sandbox=request), hub).sandbox
    assert made is not None
    assert made.options.network == (host,)
