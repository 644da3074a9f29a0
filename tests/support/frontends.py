"""Frontends of the relay: they know raw lines over a WebSocket, and nothing of the hub's types."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import anyio
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from quarterdeck.runtime.tasks import background_tasks
from support.bounds import SECONDS
from support.web_sockets import connect

Json = dict[str, Any]
_T = TypeVar("_T")


class Frontend:
    """One frontend, and everything that it was told."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.messages: list[str] = []
        """Every message, as it came."""
        self.lines: list[Json] = []
        """The lines that are JSON."""
        self._news = anyio.Event()

    def of(self, kind: str) -> list[Json]:
        """The lines of one type."""
        return [line for line in self.lines if line.get("type") == kind]

    @property
    def statuses(self) -> list[str]:
        """The texts of the statuses."""
        return [line["text"] for line in self.of("status")]

    async def say(self, **members: Any) -> None:
        """Send a line."""
        await self.socket.send(json.dumps(members))

    async def prompt(self, content: Any, **more: Any) -> None:
        """Send a prompt."""
        await self.say(type="user", message={"role": "user", "content": content}, **more)

    async def request(self, request_id: str, subtype: str, **more: Any) -> Json:
        """Send a control request, and wait for its answer."""
        session = {"session_id": more.pop("session_id")} if "session_id" in more else {}
        await self.say(
            type="control_request",
            request_id=request_id,
            request={"subtype": subtype, **more},
            **session,
        )

        def answer() -> Json | None:
            answers = (line["response"] for line in self.of("control_response"))
            return next((each for each in answers if each["request_id"] == request_id), None)

        return await self.until(answer)

    async def error(self, number: int = 1) -> Json:
        """The error of this number, when it has come."""

        def there() -> Json | None:
            errors = self.of("error")
            return errors[number - 1]["error"] if len(errors) >= number else None

        return await self.until(there)

    async def until(self, found: Callable[[], _T | None]) -> _T:
        """Wait until what was told has what is looked for."""
        with anyio.fail_after(SECONDS):
            while (it := found()) is None:
                await self._news.wait()
        return it

    async def has(self, kind: str, number: int = 1) -> Json:
        """Wait for so many lines of a type; gives the last of them."""

        def there() -> Json | None:
            found = self.of(kind)
            return found[number - 1] if len(found) >= number else None

        return await self.until(there)

    async def status(self, text: str, number: int = 1) -> Json:
        """Wait for a status; gives its line."""

        def there() -> Json | None:
            found = [line for line in self.of("status") if line["text"] == text]
            return found[number - 1] if len(found) >= number else None

        return await self.until(there)

    async def read(self) -> None:
        """Hear everything, until the end."""
        with contextlib.suppress(ConnectionClosed):
            async for message in self.socket:
                assert isinstance(message, str)
                assert message.endswith("\n")
                self.messages.append(message[:-1])
                with contextlib.suppress(ValueError):
                    self.lines.append(json.loads(message))
                self._news.set()
                self._news = anyio.Event()


@contextlib.asynccontextmanager
async def frontend(
    url: str,
    *,
    token: str | None = None,
    offered_token: str | None = None,
    origin: str | None = None,
    reading: bool = True,
    **options: Any,
) -> AsyncIterator[Frontend]:
    """A frontend, while the block runs. `offered_token` is sent as a browser has to."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    if origin is not None:
        headers["Origin"] = origin
    if offered_token is not None:
        options["subprotocols"] = [
            Subprotocol("quarterdeck.relay"),
            Subprotocol(f"quarterdeck.token.{offered_token}"),
        ]
    if not reading:
        # Who does not read does not hear the end of the connection either.
        options.setdefault("close_timeout", 0.2)
    async with connect(url, additional_headers=headers, max_size=None, **options) as socket:
        made = Frontend(socket)
        async with background_tasks() as tasks:
            if reading:
                tasks.start_soon(made.read)
            yield made
