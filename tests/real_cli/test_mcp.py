"""MCP servers: Python functions of this process, and programs that the CLI starts."""

from __future__ import annotations

import sys

import anyio
import pytest

from quarterdeck import Agent, Allow, ToolServer, tool
from quarterdeck.agent.asks import AnyAsk
from quarterdeck.domain.errors import RequestRefused
from quarterdeck.testing import ToolUse, play
from quarterdeck.wire.commands import SendMcpMessage
from quarterdeck.wire.info import McpServerState, McpStdioServer
from quarterdeck.wire.rawjson import dump
from quarterdeck.wire.versions import release
from support.meddling import Meddler
from support.scenes import SECONDS
from support.seats import Seat
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

PROGRAM = """
from mcp.server import MCPServer

server = MCPServer("far")


@server.tool()
def greet(name: str) -> str:
    return f"Greetings from afar, {name}."


server.run("stdio")
"""


@tool(always_load=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(always_load=True)
def fail() -> str:
    """Never work."""
    raise RuntimeError("out of order")


async def states(agent: Agent) -> set[McpServerState]:
    """The states of the server far, which 2.1.37 and 2.1.62 list twice."""
    return {server.status for server in await agent.mcp_status() if server.name == "far"}


async def becomes(agent: Agent, state: McpServerState) -> None:
    """Wait until the server far has come to this state."""
    while state not in await states(agent):  # noqa: ASYNC110 (the CLI announces nothing)
        await anyio.sleep(0.05)


async def test_servers_of_this_process_and_of_others_serve_the_agent(seat: Seat) -> None:
    asked: list[str] = []

    def decide(ask: AnyAsk) -> Allow:
        asked.append(ask.tool_name)
        return Allow()

    calc = ToolServer("calc", [add, fail])
    async with seat.agent(decide=decide, tools=[calc]) as agent:
        with anyio.fail_after(2 * SECONDS):
            await python_functions_are_tools_of_the_agent(seat, agent)
            assert asked == ["mcp__calc__add", "mcp__calc__fail", "mcp__calc__add"]
            await servers_come_and_go_while_the_agent_runs(seat, agent)


async def python_functions_are_tools_of_the_agent(seat: Seat, agent: Agent) -> None:
    script = play(
        ToolUse("mcp__calc__add", {"a": 2, "b": 40}),
        ToolUse("mcp__calc__fail"),
        ToolUse("mcp__calc__add", {"a": "two"}),
        "counted",
    )
    assert await agent.query(script).text() == "counted"
    (status,) = await agent.mcp_status()
    assert (status.name, status.status) == ("calc", McpServerState.CONNECTED)
    assert "mcp__calc__add" in seat.model.turns[0].tools
    first, second, third = (request.last_message.blocks[0] for request in seat.model.turns[1:])
    assert (first.plain, first.is_error) == ("42", False)
    assert second.is_error
    assert "out of order" in second.plain
    assert third.is_error
    seat.found("MCP tools in this process")

    # What a server says of its own accord is always taken, whoever it says it is.
    said = dump({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    await agent.request(SendMcpMessage(server_name="nobody", message=said))
    seat.found("A message of a server that is not there", "taken, without a word")


async def servers_come_and_go_while_the_agent_runs(seat: Seat, agent: Agent) -> None:
    program = seat.cwd / "far.py"
    await anyio.Path(program).write_text(PROGRAM)
    far = McpStdioServer(command=sys.executable, args=(str(program),))
    greet = play(ToolUse("mcp__far__greet", {"name": "deck"}), "greeted")
    assert (await agent.mcp_set_servers({"far": far})).added == ("far",)
    await becomes(agent, McpServerState.CONNECTED)
    await agent.query(greet).finish()
    assert "Greetings from afar, deck." in seat.model.turns[-1].last_text
    seat.found("Add and remove MCP servers")

    with pytest.raises(RequestRefused, match="Server not found"):
        await agent.mcp_reconnect("nope")
    if seat.version >= release(62):
        await agent.mcp_toggle("far", enabled=False)
        await becomes(agent, McpServerState.DISABLED)
        await agent.mcp_toggle("far", enabled=True)
        await becomes(agent, McpServerState.CONNECTED)
        await agent.mcp_reconnect("far")
        seat.found("Switch MCP servers off and on")
    else:
        with pytest.raises(RequestRefused, match="Server not found"):
            await agent.mcp_toggle("far", enabled=False)
        seat.found("Switch MCP servers off and on", "not those added later")

    assert (await agent.mcp_set_servers({})).removed == ("far",)
    assert await states(agent) == set()


async def test_a_server_that_says_nothing_holds_up_the_first_turn(seat: Seat) -> None:
    gives_up = seat.version >= release(325)
    meddler = Meddler()
    # What the server says is kept back: all of it, or where that is enough, its first word.
    meddler.change("answer", *[meddler.keep] * (99 if gives_up else 1))
    async with seat.agent(
        tools=[ToolServer("calc", [add])], meddler=meddler, env={"MCP_TIMEOUT": "1000"}
    ) as agent:
        with anyio.fail_after(2 * SECONDS):
            query = await agent.prompt(play("at last"))
            await until(lambda: bool(meddler.kept))
            if gives_up:
                assert await query.text() == "at last"
                (status,) = await agent.mcp_status()
                assert status.status is McpServerState.FAILED
                seat.found("A tool server that does not answer", "is given up after a while")
                return
            # A second longer than it would wait for any other server.
            with anyio.move_on_after(2):
                await query.finish()
            assert not seat.model.turns
            await meddler.say(meddler.kept[0])
            assert await query.text() == "at last"
    seat.found("A tool server that does not answer", "holds up the first turn for ever")
