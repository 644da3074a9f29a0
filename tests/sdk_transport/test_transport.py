"""The transport over a link in memory: framing, ends of every kind, and reconnects."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    CLIConnectionError,
    CLINotFoundError,
    ProcessError,
    ResultMessage,
    query,
)

from quarterdeck.domain.errors import LaunchError, LinkClosed
from quarterdeck.links.memory import MemoryPeer, memory_pair
from quarterdeck.sdk_transport import QuarterdeckTransport
from quarterdeck.sdk_transport import transport as transport_module
from support.bounds import SECONDS

pytestmark = pytest.mark.anyio

RESULT = {
    "type": "result",
    "subtype": "success",
    "duration_ms": 1,
    "duration_api_ms": 1,
    "is_error": False,
    "num_turns": 1,
    "session_id": "s",
    "total_cost_usd": 0.0,
    "result": "done",
    "uuid": "u-result",
}


class Far:
    """The far end of the link: reads what the SDK sends, a message at a time."""

    def __init__(self, peer: MemoryPeer) -> None:
        self.peer = peer
        self._unread: list[dict[str, Any]] = []

    async def send(self, *messages: object, chunk: int | None = None) -> None:
        lines = "".join(json.dumps(message) + "\n" for message in messages)
        await self.peer.send(lines.encode(), chunk=chunk)

    async def receive(self) -> dict[str, Any]:
        while not self._unread:
            lines = (await self.peer.receive()).splitlines()
            self._unread = [json.loads(line) for line in lines if line.startswith(b"{")]
        return self._unread.pop(0)

    async def answer(self, **response: object) -> dict[str, Any]:
        """Answer the next control request with success."""
        request = await self.receive()
        assert request["type"] == "control_request"
        inner = {"subtype": "success", "request_id": request["request_id"], "response": response}
        await self.send({"type": "control_response", "response": inner})
        return request


@asynccontextmanager
async def far_end(*, resumable: bool = False) -> AsyncIterator[tuple[QuarterdeckTransport, Far]]:
    link, peer = memory_pair(resumable=resumable)
    with anyio.fail_after(SECONDS):
        yield QuarterdeckTransport(link), Far(peer)


async def collect(transport: QuarterdeckTransport, into: list[Any]) -> None:
    async for message in transport.read_messages():
        into.append(message)  # noqa: PERF401 - what came before an error is kept


@pytest.mark.parametrize("chunk", [1, 7, None])
async def test_messages_come_whole_however_they_were_cut(chunk: int | None) -> None:
    sent = [{"type": "a", "text": "ä\u2028\n"}, {"type": "b"}, {"n": list(range(50))}]
    async with far_end() as (transport, far):
        await transport.connect()
        await far.send(*sent, chunk=chunk)
        far.peer.close()
        await transport.end_input()
        got: list[Any] = []
        await collect(transport, got)
    assert got == sent


async def test_a_line_of_ten_megabytes_is_one_message() -> None:
    async with far_end() as (transport, far):
        await transport.connect()
        got: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect, transport, got)
            await far.send({"type": "big", "text": "x" * 10_000_000}, chunk=65_536)
            await transport.end_input()
            far.peer.close()
    assert len(got[0]["text"]) == 10_000_000


async def test_lines_that_are_no_messages_are_left_out_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    link, peer = memory_pair(resumable=False)
    transport = QuarterdeckTransport(link, max_line=40)
    await transport.connect()
    odd = (
        b'debug output\n{"type":\n[1]\n\xff\n{"t":"'
        + b"x" * 50
        + b'"}\n{"type":"ok"}\n{"type":"cut'
    )
    await peer.send(odd)
    await transport.end_input()
    peer.close()
    got: list[Any] = []
    with caplog.at_level(logging.WARNING):
        await collect(transport, got)
    assert got == [{"type": "ok"}]
    assert len(caplog.records) == 6


async def test_a_last_line_without_its_newline_is_a_message() -> None:
    async with far_end() as (transport, far):
        await transport.connect()
        await far.peer.send(b'{"type":"last"}')
        await transport.end_input()
        far.peer.close()
        got: list[Any] = []
        await collect(transport, got)
    assert got == [{"type": "last"}]


@pytest.mark.parametrize(
    ("exit_code", "ended", "error"),
    [
        (0, True, None),
        (0, False, CLIConnectionError),
        (None, False, CLIConnectionError),
        (1, True, ProcessError),
        (1, False, ProcessError),
    ],
)
async def test_only_an_end_that_was_asked_for_is_an_end(
    exit_code: int | None, ended: bool, error: type[Exception] | None
) -> None:
    async with far_end() as (transport, far):
        await transport.connect()
        await far.send({"type": "first"})
        if ended:
            await transport.end_input()
        far.peer.close("It fell over.", exit_code=exit_code)
        got: list[Any] = []
        if error is None:
            await collect(transport, got)
        else:
            with pytest.raises(error, match="It fell over") as raised:
                await collect(transport, got)
            assert isinstance(raised.value.__cause__, LinkClosed)
            if isinstance(raised.value, ProcessError):
                assert raised.value.exit_code == exit_code
        assert got == [{"type": "first"}]


async def test_an_unexpected_end_fails_what_the_sdk_waits_for_at_once() -> None:
    async with far_end() as (transport, far):
        client = ClaudeSDKClient(ClaudeAgentOptions(), transport)

        async def die() -> None:
            await far.receive()
            far.peer.close("It fell over.", exit_code=3)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(die)
            with pytest.raises(ProcessError, match="It fell over"):
                await client.connect()


async def test_writing_before_connecting_and_after_the_end_is_the_sdks_connection_error() -> None:
    async with far_end() as (transport, far):
        with pytest.raises(CLIConnectionError, match="not connected"):
            await transport.write("{}\n")
        assert not transport.is_ready()
        await transport.connect()
        assert transport.is_ready()
        await transport.write('{"type":"x"}\n')
        assert await far.receive() == {"type": "x"}
        far.peer.close("Gone.")
        with pytest.raises(CLIConnectionError, match="Gone"):
            await transport.write("{}\n")
        await transport.end_input()
        await transport.end_input()
        with pytest.raises(CLIConnectionError, match="input has ended"):
            await transport.write("{}\n")
        await transport.close()
        await transport.close()
        assert not transport.is_ready()
        with pytest.raises(CLIConnectionError, match="make a new one"):
            await transport.connect()


async def test_a_link_that_does_not_close_cannot_hold_the_program(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(transport_module, "CLOSE_SECONDS", 0.05)
    link, _ = memory_pair()
    monkeypatch.setattr(link, "close", anyio.sleep_forever)
    transport = QuarterdeckTransport(link)
    await transport.connect()
    with anyio.fail_after(SECONDS):
        await transport.close()
    assert "did not close within" in caplog.text


@pytest.mark.process
async def test_a_cli_that_is_not_there_is_the_sdks_not_found_error(tmp_path: Path) -> None:
    missing = ClaudeAgentOptions(cli_path=tmp_path / "claude")
    with pytest.raises(CLINotFoundError, match="There is no") as raised:
        await QuarterdeckTransport.for_options(missing).connect()
    assert isinstance(raised.value, LaunchError)
    elsewhere = ClaudeAgentOptions(cli_path=sys.executable, cwd=tmp_path / "nowhere")
    with pytest.raises(CLIConnectionError, match="Working directory"):
        await QuarterdeckTransport.for_options(elsewhere).connect()


# --- links that lose their connection and find it again ------------------------------------------


async def test_after_a_reconnect_what_came_before_is_not_told_twice() -> None:
    async with far_end(resumable=True) as (transport, far):
        await transport.connect()
        got: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect, transport, got)
            await far.send({"type": "assistant", "uuid": "1"}, {"type": "keep_alive"})
            await far.peer.send(b'{"type":"half')
            far.peer.drop()
            far.peer.resume()
            again = await far.receive()
            assert again["request"] == {"subtype": "initialize"}
            await far.send({"type": "assistant", "uuid": "1"}, {"type": "assistant", "uuid": "2"})
            await far.send({"type": "keep_alive"}, {**RESULT, "uuid": "3"})
            await transport.end_input()
    assert [message.get("uuid") for message in got] == ["1", None, "2", None, "3"]


@pytest.mark.parametrize("subtype", ["error", "success"])
async def test_after_a_reconnect_open_permission_requests_are_asked_for(subtype: str) -> None:
    def ask(request_id: str) -> dict[str, object]:
        request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}}
        return {"type": "control_request", "request_id": request_id, "request": request}

    async with far_end(resumable=True) as (transport, far):
        await transport.connect()
        got: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect, transport, got)
            await far.send(ask("known"))
            far.peer.drop()
            far.peer.resume()
            again = await far.receive()
            pending: dict[str, object] = {
                "pending_permission_requests": [ask("known"), ask("missed"), "odd"]
            }
            inner = {"response": pending} if subtype == "success" else pending
            answer = {"subtype": subtype, "request_id": again["request_id"], **inner}
            await far.send({"type": "control_response", "response": answer}, RESULT)
            await transport.end_input()
    assert [message.get("request_id") for message in got] == ["known", "missed", None]


async def test_after_a_reconnect_what_has_no_answer_is_asked_again() -> None:
    def ask(request_id: str, subtype: str) -> dict[str, object]:
        request = {"subtype": subtype}
        return {"type": "control_request", "request_id": request_id, "request": request}

    prompt = {"type": "user", "message": {"role": "user", "content": "hi"}}
    lines = [ask("a", "mcp_status"), prompt, ask("b", "initialize"), ask("c", "interrupt")]
    async with far_end(resumable=True) as (transport, far):
        await transport.connect()
        await transport.write("".join(json.dumps(line) + "\n" for line in lines) + "odd\n")
        sent = [await far.receive() for _ in lines]
        assert sent[1] == {**prompt, "uuid": sent[1]["uuid"]}  # so that it can be repeated
        got: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect, transport, got)
            answer = {"subtype": "success", "request_id": "a", "response": {}}
            await far.send({"type": "control_response", "response": answer})
            far.peer.drop()
            far.peer.resume()
            assert await far.receive() == sent[2]
            assert (await far.receive())["request"] == {"subtype": "initialize"}
            again = {"subtype": "error", "request_id": "b", "error": "Already initialized"}
            await far.send({"type": "control_response", "response": again}, RESULT)
            await transport.end_input()
    assert got[1]["response"] == {"subtype": "success", "request_id": "b", "response": {}}


async def test_while_the_connection_is_lost_the_program_sees_nothing_and_its_words_are_kept() -> (
    None
):
    async with far_end(resumable=True) as (transport, far):
        await transport.connect()
        got: list[Any] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect, transport, got)
            far.peer.drop()
            await transport.write('{"type":"user","uuid":"u"}\n')
            assert transport.is_ready()
            assert got == []
            far.peer.resume()
            assert (await far.receive())["uuid"] == "u"
            await far.send(RESULT)
            await transport.end_input()
    assert got == [RESULT]


async def test_a_connection_that_does_not_come_back_is_an_error_of_the_connection() -> None:
    async with far_end(resumable=True) as (transport, far):
        await transport.connect()
        far.peer.drop()
        far.peer.close("Nobody came back.", exit_code=None)
        with pytest.raises(CLIConnectionError, match="Nobody came back"):
            await collect(transport, [])


async def test_a_query_ends_on_a_link_whose_cli_does_not_leave() -> None:
    async with far_end(resumable=True) as (transport, far):

        async def play() -> None:
            await far.answer(commands=[])
            prompt = await far.receive()
            assert prompt["message"]["content"] == "hi"
            await far.send(RESULT)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(play)
            messages = [message async for message in query(prompt="hi", transport=transport)]
    assert [type(message) for message in messages] == [ResultMessage]


@pytest.mark.process
def test_without_the_sdk_the_import_says_which_extra_to_install() -> None:
    code = (
        "import sys; sys.modules['claude_agent_sdk'] = None\n"
        "try:\n    import quarterdeck.sdk_transport\n"
        "except ModuleNotFoundError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'quarterdeck[sdk]'" in done.stdout
