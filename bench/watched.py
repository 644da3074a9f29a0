"""A hub or a runner whose event loop is watched, in a process of its own.

    python -m bench.watched hub FOLDER
    python -m bench.watched runner FOLDER HUB TOKEN_FILE

Prints a line when it serves. Then each line of stdin is answered with what its watch has measured
since the line before (`Measured`), and the end of stdin ends it. `large` is above.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http import Listen
from quarterdeck.runner.limits import Limits
from quarterdeck.runner.runner import Runner
from quarterdeck.runtime.loop_watch import Hold, LoopWatch
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.service.service import SWITCH_SECONDS, ServeOptions, run_service, runner_token

BEAT_SECONDS, HELD_SECONDS = 0.002, 0.005


class Measured(Value):
    """What held the loop up longest, and in what it worked longest."""

    longest: Hold
    most_worked: Hold


async def _hub(folder: Path) -> None:
    options = ServeOptions(listen=Listen(host="127.0.0.1", port=0), runner=False)
    async with run_service(folder, options) as service:
        gc.freeze()  # as `serve` does
        token = runner_token(folder, service.access)
        print(f"{service.address} {token}", flush=True)
        await _answer()


async def _runner(folder: Path, hub: str, token: Path) -> None:
    runner = Runner(folder, hub, token, "local", limits=Limits(memory_floor=0))
    async with background_tasks() as tasks:
        tasks.start_soon(runner.run)
        print("runs", flush=True)
        await _answer()
        runner.stop()


async def _answer() -> None:
    """Answer each line of stdin."""
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    going_on = True
    while going_on:
        watch = LoopWatch(held_seconds=HELD_SECONDS, beat_seconds=BEAT_SECONDS)
        async with AsyncExitStack() as watching:
            await watching.enter_async_context(watch.run())
            going_on = bool(await lines.readline())
        found = Measured(longest=watch.longest, most_worked=watch.most_worked)
        print(msgspec.json.encode(found).decode(), flush=True)


def main(kind: str, folder: str, *more: str) -> None:
    """Serve until stdin ends."""
    logging.basicConfig(level=logging.ERROR)  # the watch would log each hold
    sys.setswitchinterval(SWITCH_SECONDS)
    if kind == "hub":
        asyncio.run(_hub(Path(folder)))
    else:
        asyncio.run(_runner(Path(folder), more[0], Path(more[1])))


if __name__ == "__main__":
    main(*sys.argv[1:])
