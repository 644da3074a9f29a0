"""The wire of an editor in memory: lines in, messages out."""

from __future__ import annotations

from collections import deque
from typing import Any

import anyio
import msgspec

from quarterdeck.domain.errors import LinkClosed
from support.bounds import SECONDS

Message = dict[str, Any]


class MemoryPipe:
    """One end is a `Pipe` for the agent; the other is in the hand of the test."""

    def __init__(self) -> None:
        self.heard: list[Message] = []
        """All messages of the agent."""
        self._incoming: deque[bytes] = deque()
        self._bell = anyio.Event()
        self._news = anyio.Event()
        self.broken = False
        """Nothing can be sent any more."""
        self.stuck: anyio.Event | None = None
        """What sending waits for."""

    async def receive(self) -> bytes:
        while not self._incoming:
            self._bell = anyio.Event()
            await self._bell.wait()
        return self._incoming.popleft()

    async def send(self, data: bytes) -> None:
        if self.stuck is not None:
            await self.stuck.wait()
        if self.broken:
            raise LinkClosed("gone")
        self.heard += [msgspec.json.decode(line, type=Message) for line in data.splitlines()]
        self._news.set()

    # --- for the test ---

    def put(self, data: bytes) -> None:
        """Send bytes to the agent; none is the end."""
        self._incoming.append(data)
        self._bell.set()

    def say(self, **message: object) -> None:
        """Send a message."""
        self.put(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")

    def notify(self, method: str, **params: object) -> None:
        """Send a notification."""
        self.say(method=method, params=params)

    async def call(self, id_: int | str, method: str, **params: object) -> Message:
        """Send a request, and wait for its answer."""
        self.say(id=id_, method=method, params=params)
        return await self.answer(id_)

    async def answer(self, id_: object) -> Message:
        """The answer to a request."""
        return await self.find(lambda message: "method" not in message and message["id"] == id_)

    async def asked(self, method: str, number: int = 1) -> Message:
        """The request or notification of the agent with this method."""
        return await self.find(lambda message: message.get("method") == method, number)

    async def told(self, kind: str, number: int = 1) -> Message:
        """The update of a kind."""

        def fits(message: Message) -> bool:
            update = message.get("params", {}).get("update", {})
            return bool(update.get("sessionUpdate") == kind)

        found = await self.find(fits, number)
        update: Message = found["params"]["update"]
        return update

    async def find(self, wanted: Any, number: int = 1) -> Message:
        """The message that is wanted, as soon as it is there."""
        with anyio.move_on_after(SECONDS):
            while True:
                found = [message for message in self.heard if wanted(message)]
                if len(found) >= number:
                    return found[number - 1]
                self._news = anyio.Event()
                await self._news.wait()
        raise AssertionError(f"it was not heard: {self.heard}")

    @property
    def text(self) -> str:
        """The text of the agent."""
        updates = [message.get("params", {}).get("update", {}) for message in self.heard]
        return "".join(
            update["content"]["text"]
            for update in updates
            if update.get("sessionUpdate") == "agent_message_chunk"
        )
