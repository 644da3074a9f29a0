"""MCP servers: Python functions of this process, and programs that the CLI starts."""

from __future__ import annotations

import json
import sys

import anyio
import pytest

from quarterdeck import Agent, Allow, Query, ToolServer, tool
from quarterdeck.agent.asks import AnyAsk
from quarterdeck.domain.errors import RequestRefused
from quarterdeck.testing import ToolUse, play
from quarterdeck.wire.commands import SendMcpMessage
from quarterdeck.wire.info import McpServerState, McpStdioServer
from quarterdeck.wire.rawjson import dump
from quarterdeck.wire.versions import release
from support.bounds import SECONDS
from support.meddling import Line, Meddler, refusing
from support.scenes import tool_results, turn
from support.seats import Seat
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

PROGRAM = """
import json, sys

text = {"type": "object", "properties": {"name": {"type": "string"}}}
TOOLS = [{"name": name, "inputSchema": text} for name in ("greet", "refuse")]

for line in sys.stdin:
    asked = json.loads(line)
    match asked["method"]:
        case "initialize":
            version = asked["params"]["protocolVersion"]
            info = {"name": "far", "version": "1"}
            said = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            said = {"tools": TOOLS}
        case "tools/call" if asked["params"]["name"] == "greet":
            name = asked["params"]["arguments"]["name"]
            said = {"content": [{"type": "text", "text": f"Greetings from afar, {name}."}]}
        case "tools/call":
            said = None
        case _:
            said = {}
    if "id" not in asked:
        continue
    wrong = {"code": -32000, "message": "the far end refuses"}
    answer = {"error": wrong} if said is None else {"result": said}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""
# Plain, because the CLI starts it three times, and a library would take a second to load each time.


@tool(always_load=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(always_load=True)
def fail() -> str:
    """Never work."""
    raise RuntimeError("out of order")


@tool
def sub(a: int, b: int) -> int:
    """Take one number from another."""
    return a - b


def spoil(line: Line) -> list[Line]:
    """A change: an error for whatever the server named broken says of itself."""
    return refusing("out of order")(line) if '"name": "broken"' in json.dumps(line) else [line]


def unnamed(line: Line) -> list[Line]:
    """A change: initialize names the first two servers only, and says what nobody knows."""
    request = line["request"]
    assert isinstance(request, dict)
    first = request["sdkMcpServers"][:2]
    odd = {"protocolVersion": "1.0", "features": ["none"]}
    return [{**line, "request": {**request, **odd, "sdkMcpServers": first}}]


async def states(agent: Agent) -> set[McpServerState]:
    """The states of the server far, which 2.1.37 and 2.1.62 list twice."""
    return {server.status for server in await agent.mcp_status() if server.name == "far"}


async def becomes(agent: Agent, state: McpServerState) -> None:
    """Wait until the server far has come to this state."""
    while state not in await states(agent):  # noqa: ASYNC110 (the CLI announces nothing)
        await anyio.sleep(0.05)


async def test_servers_of_this_process_and_of_others_serve_the_agent(seat: Seat) -> None:
    asks: list[AnyAsk] = []

    def decide(ask: AnyAsk) -> Allow:
        asks.append(ask)
        return Allow()

    servers = [
        ToolServer("calc", [add, fail, sub]),
        ToolServer("broken", [add]),
        ToolServer("flagged", [add]),
    ]
    by_flag = json.dumps({"mcpServers": {"flagged": {"type": "sdk", "name": "flagged"}}})
    meddler = Meddler()
    meddler.change("initialize", unnamed)
    meddler.change("answer", *[spoil] * 99)
    async with seat.agent(
        decide=decide, tools=servers, mcp_config=(by_flag,), meddler=meddler
    ) as agent:
        with anyio.fail_after(SECONDS):
            await servers_are_asked_early_or_late(seat, agent, meddler)
            await python_functions_are_tools_of_the_agent(seat, agent)
            assert [ask.tool_name.rpartition("mcp__")[2] for ask in asks] == [
                "calc__add",
                "calc__fail",
                "calc__add",
                "flagged__add",
            ]
            newer, newest = seat.version >= release(120), seat.version >= release(325)
            assert (asks[0].request.display_name or "").lower() == ("add" if newer else "")
            assert (asks[0].request.mcp_server is not None) is newest
            await servers_come_and_go_while_the_agent_runs(seat, agent)


async def servers_are_asked_early_or_late(seat: Seat, agent: Agent, meddler: Meddler) -> None:
    early = seat.version >= release(325)
    if early:
        await until(lambda: b'"server_name":"calc"' in meddler.heard)
    else:
        assert {server.name for server in await agent.mcp_status()} <= {"flagged"}
        assert b'"server_name":"calc"' not in meddler.heard
    seat.found("Asks a tool server what it has", "at the start" if early else "with the first turn")


async def python_functions_are_tools_of_the_agent(seat: Seat, agent: Agent) -> None:
    script = play(
        ToolUse("mcp__calc__add", {"a": 2, "b": 40}),
        ToolUse("mcp__calc__fail"),
        ToolUse("mcp__calc__add", {"a": "two"}),
        ToolUse("mcp__flagged__add", {"a": 3, "b": 4}),
        "counted",
    )
    assert await agent.query(script).text() == "counted"
    newest = seat.version >= release(325)
    status = {server.name: server.status for server in await agent.mcp_status()}
    assert status == {
        "calc": McpServerState.CONNECTED,
        "broken": McpServerState.FAILED,
        "flagged": McpServerState.CONNECTED,
    }
    seat.found("A tool server that fails", "is said to, and the others serve")
    offered = seat.model.turns[0].tools
    assert "mcp__calc__add" in offered
    assert ("mcp__calc__sub" in offered) is not newest
    seat.found("Tools the model must look for", "unless configured otherwise" if newest else "none")
    first, second, third, fourth = (
        request.last_message.blocks[0] for request in seat.model.turns[1:]
    )
    assert (first.plain, first.is_error) == ("42", False)
    assert second.is_error
    assert "out of order" in second.plain
    assert third.is_error
    assert fourth.plain == "7"
    seat.found("MCP tools in this process")

    # What a server says of its own accord is always taken, whoever it says it is.
    said = dump({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    await agent.request(SendMcpMessage(server_name="nobody", message=said))
    seat.found("A message of a server that is not there", "accepted silently")


async def servers_come_and_go_while_the_agent_runs(seat: Seat, agent: Agent) -> None:
    program = seat.cwd / "far.py"
    await anyio.Path(program).write_text(PROGRAM)
    far = McpStdioServer(command=sys.executable, args=("-I", "-S", str(program)))
    calls = (ToolUse("mcp__far__greet", {"name": "deck"}), ToolUse("mcp__far__refuse"))
    assert (await agent.mcp_set_servers({"far": far})).added == ("far",)
    await becomes(agent, McpServerState.CONNECTED)
    greeted, refused = tool_results(await turn(agent, *calls, "called"))
    assert greeted.text == "Greetings from afar, deck."
    assert refused.is_error
    assert refused.text.endswith("the far end refuses")
    assert refused.text.startswith("MCP error -32000") is (seat.version < release(325))
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
        tools=[ToolServer("calc", [add])],
        meddler=meddler,
        env={"MCP_TIMEOUT": "1000"},
    ) as agent:
        with anyio.fail_after(SECONDS):
            query = await agent.prompt(play("at last"))
            await until(lambda: bool(meddler.kept))
            if gives_up:
                # It was asked while our own first question was still open.
                said = bytes(meddler.heard)
                assert said.index(b'"mcp_message"') < said.index(b'"control_response"')
                assert await query.text() == "at last"
                (status,) = await agent.mcp_status()
                assert status.status is McpServerState.FAILED
                seat.found("A tool server that does not answer", "is given up after a while")
                return
            await holds_up(seat, query)
            # A word that needs no answer is waited for no less.
            meddler.change("answer", meddler.keep)
            await meddler.say(meddler.kept[0])
            await until(lambda: len(meddler.kept) == 2)
            await holds_up(seat, query)
            if seat.transport == "stdio":
                await meddler.end_input()
            else:
                await meddler.say(meddler.kept[1])
            assert await query.text() == "at last"
    seat.found("A tool server that does not answer", "holds up the first turn for ever")


async def holds_up(seat: Seat, query: Query) -> None:
    # Half a second longer than it would wait for any other server.
    with anyio.move_on_after(1.5):
        await query.finish()
    assert query.turn is None
    assert not seat.model.turns
