"""A WebSocket that is accepted before it is served, to see whether its client stays.

Owns what came meanwhile, and gives it to the app that serves the connection then. The app sees an
ordinary connection: it is told of the handshake, and its acceptance is left out.
"""

from __future__ import annotations

import anyio

from quarterdeck.runtime.asgi import Message, Receive, Send

_CONNECT: Message = {"type": "websocket.connect"}
TRY_AGAIN = 1013
"""The close code for one that an app refuses after all: the handshake is over."""


class HeldSocket:
    """One connection. Call `stays` first; then `receive` and `send` are those of the app."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._waiting: list[Message] = [_CONNECT]

    async def stays(self, seconds: float) -> bool:
        """Accept it. False if it is closed in this time without having said anything."""
        await self._receive()  # the connect
        await self._send({"type": "websocket.accept"})
        with anyio.move_on_after(seconds):
            message = await self._receive()
            if message["type"] != "websocket.receive":
                return False
            self._waiting.append(message)
        return True

    async def receive(self) -> Message:
        """The next message for the app."""
        return self._waiting.pop(0) if self._waiting else await self._receive()

    async def send(self, message: dict[str, object]) -> None:
        """A message of the app. A refusal of the handshake becomes a close."""
        match message["type"]:
            case "websocket.accept" | "websocket.http.response.body":
                pass
            case "websocket.http.response.start":
                await self._send({"type": "websocket.close", "code": TRY_AGAIN, "reason": ""})
            case _:
                await self._send(message)
