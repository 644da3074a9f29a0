"""Measures one peer on one file, in a process of its own: prints the seconds and the messages.

The clock runs from the prompt to the end of the turn. Starting the process is not counted.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path

import anyio

EMITTER = Path(__file__).with_name("emitter.py")


async def ours(file: str) -> tuple[float, int]:
    from quarterdeck import Agent, Options

    options = Options(claude=(sys.executable, "-S", str(EMITTER)), env={"BENCH_FILE": file})
    async with Agent(options) as agent:
        gc.collect()
        count, start = 0, time.perf_counter()
        async for _ in agent.query("go"):
            count += 1
        seconds = time.perf_counter() - start
    return seconds, count


async def ours_typed(file: str) -> tuple[float, int]:
    """As `ours`, and everything that is decoded on demand is asked for."""
    from quarterdeck import Agent, Options
    from quarterdeck.wire.messages import Assistant, StreamEvent, User

    options = Options(claude=(sys.executable, "-S", str(EMITTER)), env={"BENCH_FILE": file})
    async with Agent(options) as agent:
        gc.collect()
        count, start = 0, time.perf_counter()
        async for message in agent.query("go"):
            count += 1
            if isinstance(message, StreamEvent):
                _ = message.event
            elif isinstance(message, Assistant | User):
                _ = message.message
        seconds = time.perf_counter() - start
    return seconds, count


async def official(file: str) -> tuple[float, int]:
    from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

    options = ClaudeAgentOptions(
        cli_path=_executable(file),
        include_partial_messages=True,
        max_buffer_size=1 << 30,
        env={"BENCH_FILE": file},
    )
    async with ClaudeSDKClient(options) as client:
        gc.collect()
        count, start = 0, time.perf_counter()
        await client.query("go")
        async for _ in client.receive_response():
            count += 1
        seconds = time.perf_counter() - start
    return seconds, count


async def newlines(file: str) -> tuple[float, int]:
    """The limit: the same emitter and pipe, and nothing done but to count the lines."""
    import asyncio
    import fcntl

    class Counter(asyncio.SubprocessProtocol):
        def __init__(self) -> None:
            self.count = 0
            self.done = asyncio.get_running_loop().create_future()
            self.tail = b""

        def pipe_data_received(self, _: int, data: bytes) -> None:
            self.count += data.count(b"\n")
            self.tail = (self.tail + data[-200:])[-400:]
            # The result of the turn is the last line.
            if data.endswith(b"\n") and b"permission_denials" in self.tail:
                self.done.set_result(None)

    transport, counter = await asyncio.get_running_loop().subprocess_exec(
        Counter, sys.executable, "-S", str(EMITTER), env={"BENCH_FILE": file}, stderr=None
    )
    pipe = transport.get_pipe_transport(1)
    if pipe is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
        fcntl.fcntl(pipe.get_extra_info("pipe"), fcntl.F_SETPIPE_SZ, 1 << 20)
    prompt = transport.get_pipe_transport(0)
    assert isinstance(prompt, asyncio.WriteTransport)
    gc.collect()
    start = time.perf_counter()
    prompt.write(b'{"type":"user"}\n')
    await counter.done
    seconds = time.perf_counter() - start
    prompt.close()
    transport.close()
    return seconds, counter.count + 1


def _executable(file: str) -> str:
    """The SDK wants one path: a script that starts the same emitter."""
    path = Path(file).with_suffix(".sh")
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{EMITTER}" "$@"\n')
    path.chmod(0o755)
    return str(path)


PEERS = {"ours": ours, "ours_typed": ours_typed, "official": official, "newlines": newlines}

if __name__ == "__main__":
    seconds, messages = anyio.run(PEERS[sys.argv[1]], sys.argv[2])
    sys.stdout.write(json.dumps([seconds, messages]) + "\n")
