"""What the largest prompt costs the event loops of the hub and the runner.

The issue is who waits meanwhile: everybody. Each case sends one prompt of the largest size, which
the agent echoes as a CLI does, to three followers; and the watch of each loop says how long it was
held up at most. What a busy machine adds is in the first number and not in the second, which is the
processor time of the loop itself. What is wanted: no hold of 100 ms, where the watch would log it.
"""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import httpx
import msgspec

from bench.client import Client
from bench.served import AGENT
from bench.watched import Measured
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http.large_bodies import LARGE_BODY
from quarterdeck.service.local_hub import own_token

GOAL_MS = 100
FOLLOWERS = 3
ROOM = 4096
"""For the rest of a command."""
WAIT_SECONDS = 120.0
DO = '{"do": "echo"}'


class Sender(Value):
    """The ways to send a prompt."""

    client: Client
    http: httpx.AsyncClient


Case = Callable[[Sender, str, object], Awaitable[None]]


def image(size: int) -> object:
    """A prompt with an image."""
    data = base64.b64encode(os.urandom(size * 3 // 4 - ROOM)).decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    return [{"type": "text", "text": DO}, {"type": "image", "source": source}]


def lines(size: int) -> object:
    """A prompt of short lines with letters beyond ASCII: every third byte is escaped."""
    return [{"type": "text", "text": DO}, {"type": "text", "text": "é\n" * ((size - ROOM) // 4)}]


async def over_http(sender: Sender, session: str, content: object) -> None:
    """Send it as the body of a request."""
    body = msgspec.json.encode({"content": content})
    given = {"content-type": "application/json"}
    answer = await sender.http.post(f"/api/sessions/{session}/prompts", content=body, headers=given)
    answer.raise_for_status()


async def over_the_stream(sender: Sender, session: str, content: object) -> None:
    """Send it as a command of the stream."""
    await sender.client.do({"command": "prompt.send", "session": session, "content": content})


CASES: dict[str, tuple[Case, Callable[[int], object]]] = {
    "an image, over HTTP": (over_http, image),
    "an image, over the stream": (over_the_stream, image),
    "short lines, over HTTP": (over_http, lines),
    "short lines, over the stream": (over_the_stream, lines),
}


class Watched:
    """A process of `watched`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    @asynccontextmanager
    async def started(cls, *arguments: str) -> AsyncIterator[tuple[Watched, str]]:
        """Start one; gives it with the line that it begins with."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "bench.watched", *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            limit=2**20,
        )
        watched = cls(process)
        try:
            yield watched, await watched._line()
        finally:
            if process.stdin is not None:
                process.stdin.close()
            with anyio.move_on_after(30, shield=True) as late:
                await process.wait()
            if late.cancelled_caught:
                process.kill()

    async def measured(self) -> Measured:
        """What was measured since this was last asked for."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        return msgspec.json.decode(await self._line(), type=Measured)

    async def _line(self) -> str:
        assert self._process.stdout is not None
        async with asyncio.timeout(WAIT_SECONDS):
            found = (await self._process.stdout.readline()).decode().strip()
        if not found:
            raise RuntimeError("a process of the benchmark has ended")
        return found


def run_large(folder: Path, rounds: int) -> None:
    """Measure and print."""
    asyncio.run(_run(folder, min(rounds, 3)))


async def _run(folder: Path, rounds: int) -> None:
    home, work = folder / "hub", folder / "work"
    home.mkdir(mode=0o700)
    work.mkdir()
    program = work / "claude"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "{AGENT}" "$@"\n')
    program.chmod(0o755)
    spec: dict[str, object] = {"directory": str(work), "claude": str(program)}
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        hub, line = await enter(Watched.started("hub", str(home)))
        address, token_file = line.split(" ", 1)
        url = "ws" + address.removeprefix("http")
        runner, _ = await enter(Watched.started("runner", str(folder / "runner"), url, token_file))
        token = own_token(home)
        bearer = {"authorization": f"Bearer {token}"}
        http = await enter(
            httpx.AsyncClient(base_url=address, headers=bearer, timeout=WAIT_SECONDS)
        )
        clients = [await enter(Client.connected(address, token)) for _ in range(FOLLOWERS)]
        print(f"a prompt of {LARGE_BODY / 2**20:g} MiB, {FOLLOWERS} followers; at most, in ms:")
        for name, (send, content) in CASES.items():
            found: dict[str, list[Measured]] = {"hub": [], "runner": []}
            for _ in range(rounds):
                session = await clients[0].create(spec)
                for client in clients:
                    await client.follow({session: 0})
                await asyncio.gather(hub.measured(), runner.measured())
                await send(
                    Sender(client=clients[0], http=http), session, content(LARGE_BODY - ROOM)
                )
                await asyncio.gather(*(each.until("turn.ended", session) for each in clients))
                found["hub"].append(await hub.measured())
                found["runner"].append(await runner.measured())
                for client in clients:
                    await client.unfollow()
                    client.left.clear()
            print("\n".join(_told(name, found)), flush=True)


def _told(name: str, found: dict[str, list[Measured]]) -> list[str]:
    rows = []
    for process, measured in found.items():
        longest = max((each.longest for each in measured), key=lambda hold: hold.seconds)
        worked = max((each.most_worked for each in measured), key=lambda hold: hold.worked)
        rows.append(
            f"  {name}: the loop of the {process} was held up for {longest.seconds * 1000:.0f};"
            f" it worked {worked.worked * 1000:.0f} without a pause (wanted: under {GOAL_MS});"
            f" {worked.place.partition(' < ')[0]}"
        )
    return rows
