"""The far end of a memory link: what would be the CLI, in the hand of a test."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio

from quarterdeck import Agent
from quarterdeck.domain.errors import LinkClosed
from quarterdeck.links.memory import MemoryPeer, memory_pair
from support import lines
from support.bounds import SECONDS


class FarEnd:
    """Reads what the agent writes, line by line, and writes what a CLI would say."""

    def __init__(self, peer: MemoryPeer) -> None:
        self.peer = peer
        self._buffer = b""

    async def read(self) -> dict[str, Any]:
        """The next line that the agent wrote."""
        with anyio.fail_after(SECONDS):
            while b"\n" not in self._buffer:
                self._buffer += await self.peer.receive()
        line, _, self._buffer = self._buffer.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    async def read_request(self, subtype: str) -> dict[str, Any]:
        """The next line, which must be this control request."""
        line = await self.read()
        assert line.get("request", {}).get("subtype") == subtype, line
        return line

    async def say(self, *said: bytes) -> None:
        """Write lines, all in one chunk."""
        await self.peer.send(b"".join(said))

    async def greet(self, **answer: object) -> dict[str, Any]:
        """Answer the agent's `initialize`; gives what it said there."""
        line = await self.read_request("initialize")
        await self.say(lines.success_answer(line["request_id"], answer))
        request: dict[str, Any] = line["request"]
        return request

    async def take_prompt(self) -> str:
        """Read a prompt and begin its turn; gives its uuid."""
        line = await self.read()
        assert line["type"] == "user", line
        uuid: str = line["uuid"]
        await self.say(lines.init(uuid=f"init-{uuid}"), lines.echo(uuid))
        return uuid

    async def serve_leave(self) -> None:
        """Do what a CLI does that is asked to go, or whose link is closed."""
        with suppress(LinkClosed):
            while True:
                line = await self.read()
                if line["type"] == "control_request":
                    await self.say(lines.success_answer(line["request_id"]))
                    if line["request"]["subtype"] == "end_session":
                        self.peer.close()


@asynccontextmanager
async def driven(
    *, resumable: bool = False, version: str = "2.1.325", **agent: Any
) -> AsyncIterator[tuple[Agent, FarEnd]]:
    """An agent that has been greeted, and the far end of its link."""
    link, peer = memory_pair(resumable=resumable)
    far = FarEnd(peer)
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_greet, far, version)
        async with Agent(link=link, **agent) as driving:
            try:
                yield driving, far
            except Exception as error:  # noqa: BLE001 - raised below, as it is and not in a group
                failure = error
            tasks.start_soon(far.serve_leave)
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _greet(far: FarEnd, version: str) -> None:
    await far.greet(claude_code_version=version)
