"""JSON-RPC with an editor: bad input gets an answer, and every request ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from quarterdeck.domain.errors import LinkClosed
from quarterdeck.fronts.acp import rpc
from quarterdeck.fronts.acp.rpc import Connection, Reply, RpcError
from support.acp_pipe import MemoryPipe
from support.bounds import SECONDS

pytestmark = pytest.mark.anyio


class Handler:
    """Answers with what it was asked."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, object]] = []
        self.after = 0
        self.cancelled = 0

    async def request(self, method: str, params: object) -> Reply:
        match method:
            case "echo":
                return Reply(result=params, after=self._after)
            case "refuse":
                raise RpcError(-32602, "no", {"why": "not"})
            case "fail":
                raise RuntimeError("a secret")
            case _:
                try:
                    await anyio.sleep_forever()
                except anyio.get_cancelled_exc_class():
                    self.cancelled += 1
                    raise
        raise AssertionError

    async def notification(self, method: str, params: object) -> None:
        if method == "fail":
            raise RuntimeError("of no concern")
        self.notes.append((method, params))

    async def _after(self) -> None:
        self.after += 1


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[tuple[MemoryPipe, Connection]]:
    pipe = MemoryPipe()
    connection = Connection(pipe)
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.serve, handler, tasks)
            yield pipe, connection
            tasks.cancel_scope.cancel()


async def test_requests_are_answered_and_failures_tell_no_secret() -> None:
    handler = Handler()
    async with serving(handler) as (pipe, _):
        assert (await pipe.call("a", "echo", x=1))["result"] == {"x": 1}
        assert handler.after == 1
        refused = await pipe.call(2, "refuse")
        assert refused["error"] == {"code": -32602, "message": "no", "data": {"why": "not"}}
        failed = await pipe.call(3, "fail")
        assert failed["error"] == {"code": -32603, "message": "internal error: RuntimeError"}
        pipe.notify("fail")
        pipe.notify("note", y=2)
        await pipe.call(4, "echo")
        assert handler.notes == [("note", {"y": 2})]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"nonsense", -32700),
        (b'"\xff"', -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b"7", -32600),
        (b'{"id":[],"result":1}', -32600),
        (b'{"id":{},"method":"echo"}', -32600),
        (b'{"id":true,"method":"echo"}', -32600),
        (b'{"id":1.5,"method":"echo"}', -32600),
        (b'{"method":7}', -32600),
    ],
)
async def test_bad_lines_get_an_error_and_the_next_line_counts(line: bytes, code: int) -> None:
    async with serving(Handler()) as (pipe, _):
        pipe.put(line + b"\n")
        assert (await pipe.answer(None))["error"]["code"] == code
        assert (await pipe.call(1, "echo"))["result"] == {}


async def test_a_line_beyond_the_limit_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "LARGEST_LINE", 1000)
    async with serving(Handler()) as (pipe, _):
        pipe.put(b'{"id":1,"method":"echo","params":"' + b"x" * 1000)
        pipe.put(b'"}\n')
        assert "at most 1000" in (await pipe.answer(None))["error"]["message"]
        assert (await pipe.call(2, "echo"))["result"] == {}


async def test_answers_to_nothing_are_ignored() -> None:
    async with serving(Handler()) as (pipe, _):
        for message in ({"id": 7, "result": 1}, {"id": "x", "error": {}}, {"id": None}, {}):
            pipe.say(**message)
        assert (await pipe.call(1, "echo"))["result"] == {}


async def test_a_request_of_the_other_side_can_be_cancelled_and_ids_are_not_taken_twice() -> None:
    handler = Handler()
    async with serving(handler) as (pipe, _):
        pipe.say(id=1, method="wait")
        pipe.say(id=1, method="echo")
        assert "not answered yet" in (await pipe.answer(1))["error"]["message"]
        pipe.heard.clear()
        odd: list[object] = [None, [], {}, {"requestId": {}}, {"requestId": 99}]
        for params in odd:
            pipe.say(method="$/cancel_request", params=params)
        pipe.notify("$/cancel_request", requestId=1)
        assert (await pipe.answer(1))["error"]["code"] == -32800
        assert handler.cancelled == 1


async def test_there_is_a_limit_to_requests_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "MOST_REQUESTS", 2)
    async with serving(Handler()) as (pipe, _):
        for number in range(3):
            pipe.say(id=number, method="wait")
        assert "2 requests" in (await pipe.answer(2))["error"]["message"]


async def test_our_requests_get_their_result_their_error_or_the_end() -> None:
    async with serving(Handler()) as (pipe, connection):
        results: list[object] = []

        async def ask() -> None:
            try:
                results.append(await connection.request("ask", {"z": 3}))
            except RpcError as error:
                results.append((error.code, str(error)))

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(ask)
            await pipe.asked("ask", 4)
            pipe.say(id=1, result={"fine": True})
            pipe.say(id=2, error={"code": -1, "message": "broken"})
            pipe.say(id=3, error="odd")
            pipe.say(id=3, result="too late")
            pipe.put(b"")  # the fourth ends with the connection
        assert results == [
            {"fine": True},
            (-1, "broken"),
            (-32603, "the editor answered with an error"),
            (-32603, "the editor has closed the connection"),
        ]
        with pytest.raises(LinkClosed):
            await connection.notify("more", {})


async def test_a_request_of_ours_that_nobody_waits_for_is_cancelled_there() -> None:
    async with serving(Handler()) as (pipe, connection), anyio.create_task_group() as tasks:
        tasks.start_soon(connection.request, "ask", {})
        asked = await pipe.asked("ask")
        tasks.cancel_scope.cancel()
    assert pipe.heard[-1]["method"] == "$/cancel_request"
    assert pipe.heard[-1]["params"] == {"requestId": asked["id"]}


async def test_an_editor_that_does_not_read_holds_nothing_up_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rpc, "LAST_SECONDS", 0.0)
    pipe = MemoryPipe()
    pipe.stuck = anyio.Event()
    connection = Connection(pipe)
    pipe.say(id=1, method="echo")
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.serve, Handler(), tasks)
            await anyio.wait_all_tasks_blocked()
            pipe.put(b"")


async def test_an_editor_that_is_gone_gets_no_answer_and_nothing_fails() -> None:
    async with serving(Handler()) as (pipe, connection):
        pipe.broken = True
        pipe.say(id=1, method="echo")
        pipe.say(id=2, method="refuse")
        with pytest.raises(LinkClosed):
            await connection.request("ask", {})
        pipe.broken = False
        assert (await pipe.call(3, "echo"))["result"] == {}
