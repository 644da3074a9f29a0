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
    from quarterdeck.wire import Assistant, StreamEvent, User

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


def _executable(file: str) -> str:
    """The SDK wants one path: a script that starts the same emitter."""
    path = Path(file).with_suffix(".sh")
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{EMITTER}" "$@"\n')
    path.chmod(0o755)
    return str(path)


PEERS = {"ours": ours, "ours_typed": ours_typed, "official": official}

if __name__ == "__main__":
    seconds, messages = anyio.run(PEERS[sys.argv[1]], sys.argv[2])
    sys.stdout.write(json.dumps([seconds, messages]) + "\n")
