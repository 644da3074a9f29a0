"""The scripted model: the Messages API on loopback, with answers chosen by a test.

`ScriptedModel` serves `POST /v1/messages` and `POST /v1/messages/count_tokens` and answers 404
to everything else. It keeps every request, and it chooses each reply in this order:

1. a fixed answer for the CLI's side requests (titles, quota checks, summaries), which consume no
   scripted reply;
2. the result of the `respond` callable, if there is one and it returns something;
3. the script that the prompt itself carries (`PLAY […]`, see `play`);
4. the queue for conversations that start with a certain text, then the queue for all;
5. `echo: <the last text>`.

Tests, `doctor` and the benchmarks use it. It does not know the control protocol and starts no CLI.
`python -m quarterdeck.testing.model` serves it as a separate process.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import signal
import socket
import sys
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import msgspec
from anyio.abc import TaskGroup

from quarterdeck.domain.errors import UsageError
from quarterdeck.testing import sse
from quarterdeck.testing.loop_server import (
    LoopServer,
    Receive,
    Scope,
    Send,
    answer,
    begin,
    read_body,
    refuse,
    request_headers,
    until_hang_up,
)
from quarterdeck.testing.request import ModelRequest, Purpose, read_request
from quarterdeck.testing.script import (
    CutConnection,
    Gate,
    Pause,
    Reply,
    Said,
    as_reply,
    parse_script,
    reply,
)

Responder = Callable[[ModelRequest], Said | None]

START_SECONDS = 10.0
STOP_SECONDS = 5.0
GATE_SECONDS = 120.0  # a gate that a failed test never opened must not block the CLI
_PATHS = frozenset({"/v1/messages", "/v1/messages/count_tokens"})


class ScriptedModel:
    """The model, serving while its `async with` block lasts; `url` is its base URL."""

    def __init__(self, *replies: Said, respond: Responder | None = None, port: int = 0) -> None:
        self.requests: list[ModelRequest] = []
        self.url = ""
        self._respond = respond
        self._port = port
        self._queue: deque[Reply] = deque(as_reply(said) for said in replies)
        self._queues: dict[str, deque[Reply]] = {}
        self._errors_given: Counter[tuple[str, int]] = Counter()
        self._gates: dict[str, anyio.Event] = {}
        self._at_gate: dict[str, anyio.Event] = {}
        self._news = anyio.Event()
        self._closing = anyio.Event()
        self._message_numbers = itertools.count(1)
        self._tool_numbers = itertools.count(1)
        self._failure: Exception | None = None
        self._stack: contextlib.AsyncExitStack | None = None

    # --- serving ---------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        listener = socket.create_server(("127.0.0.1", self._port))
        server = LoopServer.of(self._app)
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(listener.close)
            tasks = await stack.enter_async_context(anyio.create_task_group())
            tasks.start_soon(server.serve, [listener])
            stack.push_async_callback(self._stop, server, tasks)
            with anyio.fail_after(START_SECONDS):
                await server.ready.wait()
            self._stack = stack.pop_all()
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The exit stack does not see the block's own error: its task group would wrap it.
        assert self._stack is not None, "the model was not started"
        await self._stack.aclose()
        if error is None and self._failure is not None:
            raise self._failure

    async def _stop(self, server: LoopServer, tasks: TaskGroup) -> None:
        self._closing.set()
        for gate in self._gates.values():
            gate.set()
        server.leave.set()
        with anyio.move_on_after(STOP_SECONDS, shield=True):
            await server.ended.wait()
        tasks.cancel_scope.cancel()

    # --- control by a test ----------------------------------------------------------------

    def enqueue(self, *replies: Said, when: str | None = None) -> None:
        """Add replies, one for each future request.

        With `when`, they are only for conversations whose first prompt contains that text, so that
        subagents and several CLIs can have their own.
        """
        queue = self._queue if when is None else self._queues.setdefault(when, deque())
        queue.extend(as_reply(said) for said in replies)

    def release(self, gate: str = "gate") -> None:
        """Open a gate, for waiting replies and for later ones."""
        self._gate(gate).set()

    async def wait_at_gate(self, gate: str = "gate", timeout: float = 30.0) -> None:
        """Wait until a reply has reached the gate, and so has sent everything before it."""
        with anyio.fail_after(timeout):
            await self._at_gate.setdefault(gate, anyio.Event()).wait()

    @property
    def turns(self) -> list[ModelRequest]:
        """The requests that were made for a turn, without those that the CLI made for itself."""
        return [request for request in self.requests if request.purpose is Purpose.TURN]

    async def wait_for_request(
        self,
        matches: Callable[[ModelRequest], bool] = lambda request: request.purpose is Purpose.TURN,
        *,
        after: int = 0,
        timeout: float = 30.0,
    ) -> ModelRequest:
        """The first request that matches, from the one numbered `after` on; waits for it."""
        seen = after
        with anyio.fail_after(timeout):
            while True:
                news = self._news
                for request in self.requests[seen:]:
                    if matches(request):
                        return request
                seen = max(seen, len(self.requests))
                await news.wait()

    # --- choosing --------------------------------------------------------------------------

    def _choose(self, request: ModelRequest) -> Reply:
        if (fixed := _SIDE_ANSWERS.get(request.purpose)) is not None:
            return fixed
        if (said := self._ask_responder(request)) is not None:
            return as_reply(said)
        if position := request.script_position:
            script, number = parse_script(position[0].partition(" ")[2]), position[1]
            if number < len(script):
                return self._after_errors(script[number], position)
        for opening, queue in self._queues.items():
            if queue and opening in request.first_prompt:
                return self._next(queue)
        if self._queue:
            return self._next(self._queue)
        word = "done" if request.last_message.has_tool_result else "echo"
        return reply(f"{word}: {request.last_text}")

    def _ask_responder(self, request: ModelRequest) -> Said | None:
        try:
            return self._respond(request) if self._respond else None
        except Exception as error:
            # A failed assertion in there is the test's result: it is raised when the block ends.
            self._failure = self._failure or error
            raise UsageError(f"respond raised {error!r}") from error

    def _after_errors(self, due: Reply, position: tuple[str, int]) -> Reply:
        """The error of a scripted reply as often as it says, then the steps after it."""
        if due.error is None:
            return due
        rest = due.after_error
        if rest.steps and self._errors_given[position] >= due.error.times:
            del self._errors_given[position]  # the same prompt may come again, and start over
            return rest
        self._errors_given[position] += 1
        return due

    def _next(self, queue: deque[Reply]) -> Reply:
        due = queue.popleft()
        if due.error is None:
            return due
        if due.error.times > 1:
            once_less = msgspec.structs.replace(due.error, times=due.error.times - 1)
            queue.appendleft(Reply((once_less, *due.after_error.steps)))
        elif due.after_error.steps:
            queue.appendleft(due.after_error)
        return due

    # --- answering -------------------------------------------------------------------------

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        path: str = scope["path"]
        if body is None:
            await refuse(send, 413, "request_too_large", "the request is too large")
        elif scope["method"] != "POST" or path not in _PATHS:
            await refuse(send, 404, "not_found_error", f"there is no {path} here")
        else:
            try:
                request = read_request(len(self.requests), path, request_headers(scope), body)
                self._record(request)
                due = self._choose(request)
            except (msgspec.DecodeError, UsageError) as error:
                # The CLI or the test is wrong; with a 400 the CLI neither hangs nor tries again.
                await refuse(send, 400, "invalid_request_error", str(error))
            else:
                await self._give(due, request, receive, send)

    def _record(self, request: ModelRequest) -> None:
        self.requests.append(request)
        self._news.set()
        self._news = anyio.Event()

    async def _give(self, due: Reply, request: ModelRequest, receive: Receive, send: Send) -> None:
        if request.purpose is Purpose.COUNT:
            tokens = msgspec.json.encode({"input_tokens": len(request.body) // 4})
            await answer(send, 200, tokens)
        elif error := due.error:
            await refuse(send, error.status, error.error_type, error.message, error.headers)
        else:
            message_id = f"msg_{next(self._message_numbers):04d}"
            async with anyio.create_task_group() as tasks:
                # An interrupted CLI closes the connection: the reply must not wait at a gate any
                # longer.
                tasks.start_soon(until_hang_up, receive, tasks.cancel_scope)
                if request.stream:
                    await self._stream(due, message_id, request.model, send)
                else:
                    await self._whole(due, message_id, request.model, send)
                tasks.cancel_scope.cancel()

    async def _stream(self, due: Reply, message_id: str, model: str, send: Send) -> None:
        await begin(send, 200, {"content-type": "text/event-stream"} | due.headers)
        for item in sse.stream(due, message_id, model, self._new_tool_id):
            if isinstance(item, bytes):
                await send({"type": "http.response.body", "body": item, "more_body": True})
            elif isinstance(item, CutConnection) or not await self._interlude(item):
                return  # with no end of the body: uvicorn then closes the connection
        await send({"type": "http.response.body", "body": b""})

    async def _whole(self, due: Reply, message_id: str, model: str, send: Send) -> None:
        for step in due.steps:
            if isinstance(step, Pause | Gate) and not await self._interlude(step):
                return
        whole = sse.body(due, message_id, model, self._new_tool_id)
        await answer(send, 200, whole, due.headers)

    async def _interlude(self, step: Pause | Gate) -> bool:
        """Wait as the step says; False when the model closes meanwhile and all is over."""
        if isinstance(step, Pause):
            with anyio.move_on_after(step.pause):
                await self._closing.wait()
        else:
            self._at_gate.setdefault(step.gate, anyio.Event()).set()
            with anyio.move_on_after(GATE_SECONDS):
                await self._gate(step.gate).wait()
        return not self._closing.is_set()

    def _gate(self, name: str) -> anyio.Event:
        return self._gates.setdefault(name, anyio.Event())

    def _new_tool_id(self) -> str:
        return f"toolu_{next(self._tool_numbers):04d}"


_SIDE_ANSWERS = {
    Purpose.TITLE: reply('{"title": "Scripted title"}'),
    Purpose.TOPIC: reply('{"isNewTopic": false, "title": null}'),
    Purpose.PATHS: reply("<filepaths>\n</filepaths>"),
    Purpose.PREFIX: reply("none"),
    Purpose.QUOTA: reply("ok"),
    Purpose.SUMMARY: reply("<summary>Scripted summary.</summary>"),
    Purpose.PAGE: reply("Scripted page."),
    Purpose.SIDE_QUESTION: reply("Scripted side answer."),
    Purpose.COUNT: reply(),  # answered with a number
}


async def _serve(replies: tuple[Reply, ...], port: int) -> None:
    async with ScriptedModel(*replies, port=port) as model:
        sys.stdout.write(f"{model.url}\n")
        sys.stdout.flush()
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                break


def main(arguments: list[str] | None = None) -> int:
    """Serve a model until a signal comes; the first line of the output is its URL."""
    parser = argparse.ArgumentParser(prog="python -m quarterdeck.testing.model")
    parser.add_argument("--script", type=Path, help="a JSON list of replies, one for each request")
    parser.add_argument(
        "--port", type=int, default=0, help="the port on 127.0.0.1; 0: any free one"
    )
    options = parser.parse_args(arguments)
    try:
        replies = parse_script(options.script.read_text()) if options.script else ()
    except (OSError, UsageError) as error:
        parser.error(str(error))
    anyio.run(_serve, replies, options.port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
