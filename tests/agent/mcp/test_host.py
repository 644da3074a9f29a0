"""The host: messages in as the CLI sends them, answers out, whatever happens in between."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.from_thread
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.server import MCPServer, Server
from mcp.server.mcpserver import Context
from mcp_types import TextContent

from quarterdeck.agent.mcp import McpHost, ToolContext, ToolServer
from quarterdeck.agent.mcp import session as session_module
from quarterdeck.domain.errors import UsageError
from support.bounds import SECONDS
from support.mcp_client import connected

pytestmark = pytest.mark.anyio

HELLO: dict[str, object] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "claude-code", "version": "2.1.325"},
    },
}
INITIALIZED: dict[str, object] = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class Gate:
    """A tool that waits to be let through, and tells when it began and whether it was cancelled."""

    def __init__(self) -> None:
        self.began = anyio.Event()
        self.open = anyio.Event()
        self.cancelled = anyio.Event()

    async def wait_here(self) -> str:
        self.began.set()
        try:
            await self.open.wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled.set()
            raise
        return "through"


def echo(text: str) -> str:
    return text


def call(request_id: int | str, name: str, **arguments: object) -> dict[str, object]:
    params = {"name": name, "arguments": arguments, "_meta": {"claudecode/toolUseId": "toolu_1"}}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


async def drop(name: str, message: msgspec.Raw) -> None:
    pass


async def say(host: McpHost, message: object, *, to: str = "here") -> Any:
    answer = await host.handle(to, msgspec.Raw(msgspec.json.encode(message)))
    return msgspec.json.decode(answer)


async def into(answers: list[Any], host: McpHost, message: object) -> None:
    answers.append(await say(host, message))


@asynccontextmanager
async def hosting(
    *tools: Callable[..., object], send: Callable[[str, msgspec.Raw], Awaitable[None]] = drop
) -> AsyncIterator[McpHost]:
    with anyio.fail_after(SECONDS):
        async with McpHost([ToolServer("here", tools, version="1.2")], send) as host:
            yield host


async def test_the_handshake_as_the_cli_plays_it() -> None:
    async with hosting(echo) as host:
        hello = await say(host, HELLO)
        assert (hello["jsonrpc"], hello["id"]) == ("2.0", 0)
        assert hello["result"]["protocolVersion"] == "2025-11-25"
        assert hello["result"]["serverInfo"] == {"name": "here", "version": "1.2"}
        assert hello["result"]["capabilities"]["tools"] == {"listChanged": True}
        assert await say(host, INITIALIZED) == {"jsonrpc": "2.0", "result": {}, "id": 0}
        listed = await say(host, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert [each["name"] for each in listed["result"]["tools"]] == ["echo"]
        answer = await say(host, call(2, "echo", text="hi"))
        assert answer["id"] == 2
        assert answer["result"]["content"] == [{"type": "text", "text": "hi"}]


async def test_every_notification_is_acknowledged() -> None:
    acknowledged = {"jsonrpc": "2.0", "result": {}, "id": 0}
    async with hosting() as host:
        for method in ("notifications/roots/list_changed", "notifications/made_up"):
            assert await say(host, {"jsonrpc": "2.0", "method": method}) == acknowledged
        unknown: list[object] = [99, "x", True, None, {}]
        for wanted in unknown:
            cancelled = {"method": "notifications/cancelled", "params": {"requestId": wanted}}
            assert await say(host, {"jsonrpc": "2.0", **cancelled}) == acknowledged


async def test_a_call_without_a_handshake_is_answered() -> None:
    async with hosting(echo) as host:
        answers: list[Any] = []
        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(into, answers, host, call(number, "echo", text=str(number)))
        assert sorted(answer["result"]["content"][0]["text"] for answer in answers) == [
            "0",
            "1",
            "2",
        ]


async def test_a_second_handshake_leaves_running_calls_alone_even_with_the_same_id() -> None:
    gate = Gate()
    async with hosting(gate.wait_here, echo) as host:
        await say(host, HELLO)
        answers: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(into, answers, host, call(2, "wait_here"))
            await gate.began.wait()
            assert (await say(host, HELLO))["result"]["serverInfo"]["name"] == "here"
            again = await say(host, call(2, "echo", text="same id"))
            assert again["result"]["content"][0]["text"] == "same id"
            gate.open.set()
        assert answers[0]["id"] == 2
        assert answers[0]["result"]["content"][0]["text"] == "through"


async def test_a_slow_call_holds_up_no_other() -> None:
    gate = Gate()
    release = threading.Event()

    def blocked_thread() -> str:
        release.wait(20)
        return "released"

    async with hosting(gate.wait_here, blocked_thread, echo) as host:
        answers: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(into, answers, host, call("a", "wait_here"))
            tasks.start_soon(into, answers, host, call("b", "blocked_thread"))
            await gate.began.wait()
            for number in range(20):
                quick = await say(host, call(number, "echo", text="quick"))
                assert quick["id"] == number
            assert answers == []
            release.set()
            gate.open.set()
        assert {answer["id"] for answer in answers} == {"a", "b"}


async def test_many_calls_at_once_each_get_their_own_answer() -> None:
    arrived = 0
    everybody = anyio.Event()

    async def meet(number: int) -> int:
        nonlocal arrived
        arrived += 1
        if arrived == 100:
            everybody.set()
        await everybody.wait()
        return number

    async with hosting(meet) as host:
        answers: list[Any] = []
        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(into, answers, host, call(number, "meet", number=number))
        assert sorted(answer["id"] for answer in answers) == list(range(100))
        for answer in answers:
            assert answer["result"]["content"][0]["text"] == str(answer["id"])


async def test_a_cancel_notification_stops_the_call_and_answers_it() -> None:
    gate = Gate()
    async with hosting(gate.wait_here, echo) as host:
        answers: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(into, answers, host, call(7, "wait_here"))
            await gate.began.wait()
            cancelled = {"method": "notifications/cancelled", "params": {"requestId": 7}}
            await say(host, {"jsonrpc": "2.0", **cancelled})
            await gate.cancelled.wait()
        (answer,) = answers
        assert answer["id"] == 7
        assert answer["error"]["message"] == "The request was cancelled"
        assert "result" in await say(host, call(8, "echo", text="still here"))


async def test_cancelling_the_task_that_waits_cancels_the_call() -> None:
    gate = Gate()
    async with hosting(gate.wait_here, echo) as host:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(say, host, call(7, "wait_here"))
            await gate.began.wait()
            tasks.cancel_scope.cancel()
        await gate.cancelled.wait()
        assert "result" in await say(host, call(8, "echo", text="still here"))


async def test_a_blocked_thread_holds_up_neither_the_cancel_nor_the_end() -> None:
    began, release = anyio.Event(), threading.Event()

    def blocked() -> None:
        anyio.from_thread.run_sync(began.set)
        release.wait(60)

    try:
        async with hosting(blocked) as host:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(say, host, call(1, "blocked"))
                await began.wait()
                tasks.cancel_scope.cancel()
            began = anyio.Event()
            answers: list[Any] = []
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(into, answers, host, call(2, "blocked"))
                await began.wait()
                cancelled = {"method": "notifications/cancelled", "params": {"requestId": 2}}
                await say(host, {"jsonrpc": "2.0", **cancelled})
            assert answers[0]["error"]["message"] == "The request was cancelled"
    finally:
        release.set()


async def test_leaving_the_host_answers_what_still_runs_and_all_that_comes_later() -> None:
    gate = Gate()
    answers: list[Any] = []
    with anyio.fail_after(SECONDS):
        async with (
            anyio.create_task_group() as tasks,
            McpHost([ToolServer("here", [gate.wait_here])], drop) as host,
        ):
            tasks.start_soon(into, answers, host, call(1, "wait_here"))
            await gate.began.wait()
        assert gate.cancelled.is_set()
        assert (answers[0]["id"], "error" in answers[0]) == (1, True)
        late = await say(host, call(2, "wait_here"))
        assert late["error"]["message"] == "The tool servers are not running"


@pytest.mark.parametrize(
    ("message", "request_id"),
    [
        (b"", None),
        (b"nonsense", None),
        (b"[]", None),
        (b"{}", None),
        (b"\xff\xfe", None),
        (b'{"id":4}', 4),
        (b'{"jsonrpc":"1.0","id":"five","method":"tools/list"}', "five"),
        (b'{"jsonrpc":"2.0","id":{"a":1},"method":7}', None),
        (b"[" * 100_000, None),
    ],
)
async def test_garbage_is_answered_with_an_error(message: bytes, request_id: object) -> None:
    async with hosting(echo) as host:
        answer = msgspec.json.decode(await host.handle("here", message))
        assert answer["id"] == request_id
        assert answer["error"]["code"] == -32600
        assert "result" in await say(host, call(1, "echo", text="still here"))


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: f'{{"id":{text}'.encode()))
async def test_no_bytes_make_the_host_raise(message: bytes) -> None:
    async with hosting(echo) as host:
        msgspec.json.decode(await host.handle("here", message))


@pytest.mark.parametrize(
    ("method", "code"), [("tools/made_up", -32601), ("resources/list", -32601), ("ping", None)]
)
async def test_what_a_server_does_not_offer_is_method_not_found(
    method: str, code: int | None
) -> None:
    async with hosting(echo) as host:
        await say(host, HELLO)
        answer = await say(host, {"jsonrpc": "2.0", "id": 1, "method": method})
        assert answer.get("error", {}).get("code") == code


async def test_an_unknown_server_is_an_error_that_names_the_known_ones() -> None:
    async with hosting() as host:
        answer = await say(host, HELLO, to="there")
        assert answer["id"] == 0
        assert answer["error"]["message"] == "No tool server is named 'there'; there are: here"
        assert (await say(host, INITIALIZED, to="there"))["id"] is None


async def test_a_slow_link_holds_up_only_the_call_that_reports_progress() -> None:
    sending, let_go = anyio.Event(), anyio.Event()

    async def slow(name: str, message: msgspec.Raw) -> None:
        sending.set()
        await let_go.wait()

    async def work(context: ToolContext) -> str:
        await context.log("a line")
        return "done"

    async with hosting(work, echo, send=slow) as host:
        answers: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(into, answers, host, call(1, "work"))
            await sending.wait()
            assert "result" in await say(host, call(2, "echo", text="quick"))
            let_go.set()
        assert answers[0]["result"]["content"][0]["text"] == "done"


async def test_a_broken_link_loses_the_progress_and_not_the_call() -> None:
    async def broken(name: str, message: msgspec.Raw) -> None:
        raise ConnectionError("the link is down")

    async def work(context: ToolContext) -> str:
        await context.log("a line")
        return "done"

    async with hosting(work, send=broken) as host:
        assert (await say(host, call(1, "work")))["result"]["content"][0]["text"] == "done"


async def test_servers_of_the_mcp_package_are_served_as_they_are() -> None:
    high = MCPServer("high", log_level="CRITICAL")

    @high.tool()
    async def double(number: int, context: Context) -> int:
        await context.report_progress(1)
        await context.session.send_tool_list_changed()
        return 2 * number

    @high.resource("note://one")
    def note() -> str:
        return "a note"

    wrapped = ToolServer.from_mcp("high", high)
    async with connected([wrapped], "high") as client:
        result = await client.call("double", number=4)
        assert isinstance(result.content[0], TextContent)
        assert result.content[0].text == "8"
        assert b"notifications/tools/list_changed" in bytes(client.heard[-1])
        read = await client.session.read_resource("note://one")
        assert "a note" in read.model_dump_json()
    with pytest.raises(UsageError, match="belong to the server"):
        wrapped.add(echo)

    low: Server[Any] = Server("low")
    async with McpHost([ToolServer.from_mcp("low", low)], drop) as host:
        hello = await say(host, HELLO, to="low")
        assert hello["result"]["serverInfo"]["name"] == "low"
        listed = await say(host, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, to="low")
        assert listed["error"]["code"] == -32601


async def test_a_question_of_the_server_goes_out_and_its_answer_comes_back() -> None:
    server = MCPServer("asking", log_level="CRITICAL")

    @server.tool()
    async def ask(context: Context) -> str:
        await context.session.send_ping()
        return "they live"

    questions, asked = anyio.create_memory_object_stream[msgspec.Raw](1)

    async def send(name: str, message: msgspec.Raw) -> None:
        await questions.send(message)

    with anyio.fail_after(SECONDS):
        async with (
            questions,
            asked,
            McpHost([ToolServer.from_mcp("here", server)], send) as host,
            anyio.create_task_group() as tasks,
        ):
            answers: list[Any] = []
            tasks.start_soon(into, answers, host, call(1, "ask"))
            question = msgspec.json.decode(await asked.receive())
            assert question["method"] == "ping"
            await say(host, {"jsonrpc": "2.0", "id": question["id"], "result": {}})
    assert answers[0]["result"]["content"][0]["text"] == "they live"


async def test_a_server_that_fails_to_start_is_an_answer_and_may_be_tried_again() -> None:
    attempts = 0

    @asynccontextmanager
    async def lifespan(server: Server[Any]) -> AsyncIterator[dict[str, object]]:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise OSError("no database")
        yield {}

    broken: Server[Any] = Server("broken", lifespan=lifespan)
    with anyio.fail_after(SECONDS):
        async with McpHost([ToolServer.from_mcp("here", broken)], drop) as host:
            failed = await say(host, HELLO)
            assert failed["error"]["message"] == "The tool server here failed: no database"
            assert (await say(host, HELLO))["result"]["serverInfo"]["name"] == "broken"


async def test_a_server_whose_start_hangs_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "HANDSHAKE_SECONDS", 0.05)
    monkeypatch.setattr(session_module, "WITHDRAWAL_SECONDS", 0.05)

    @asynccontextmanager
    async def lifespan(server: Server[Any]) -> AsyncIterator[dict[str, object]]:
        await anyio.sleep_forever()
        yield {}

    stuck: Server[Any] = Server("stuck", lifespan=lifespan)
    with anyio.fail_after(SECONDS):
        async with McpHost([ToolServer.from_mcp("here", stuck)], drop) as host:
            for request in (HELLO, call(1, "any")):
                answer = await say(host, request)
                assert answer["id"] == request["id"]
                assert answer["error"]["message"] == "The tool server does not accept messages"
            assert "result" in await say(host, INITIALIZED)


async def test_two_servers_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="two tool servers are named here"):
        McpHost([ToolServer("here"), ToolServer("here")], drop)
    async with hosting() as host:
        with pytest.raises(UsageError, match="no tool server is named there"):
            await host.tools_changed("there")


async def test_an_error_of_the_caller_leaves_the_host_as_it_came() -> None:
    async def fail_inside() -> None:
        async with hosting(echo) as host:
            await say(host, HELLO)
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await fail_inside()
