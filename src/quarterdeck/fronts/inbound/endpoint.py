"""`/in/NAME`: the ASGI app that takes requests of other systems.

A sender without a valid secret learns nothing: an unknown name, a wrong secret and a wrong method
all get the same answer. Limits count only requests with a valid secret, so that strangers cannot
use them up. `Trigger` is what a request is given to.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Protocol

import anyio
import anyio.to_thread
import msgspec
from msgspec import Struct, field

from quarterdeck.domain.errors import Conflict, JournalError, NotFound, UsageError
from quarterdeck.domain.ids import new_id
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.inbound.checks import (
    LONGEST_HEADER,
    PING,
    Given,
    Rate,
    is_authentic,
    is_ping,
    key_of,
    read_secrets,
)
from quarterdeck.protocol.problems import Problem, problem
from quarterdeck.protocol.schedules import Firing, InboundHook

log = logging.getLogger(__name__)

PREFIX = "/in/"
SMALLEST_LIMIT = 65_536
"""Bodies up to this size are read whatever the name is."""
READ_AGAIN_SECONDS = 2.0
"""How old the contents of a secret file may be."""
JSON = b"application/json"
LOG_SECONDS = 10.0
"""Refused requests of one webhook are logged once in this time, with their number."""

# ASGI names and types its messages so.
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Trigger(Protocol):
    """What starts sessions."""

    async def trigger(self, name: str, key: str, body: bytes, by: str) -> tuple[Firing, bool]:
        """Start a session for a request, once for a key; whether it is new.

        Raises `NotFound`, `Conflict`, `JournalError`.
        """


class Accepted(Value, omit_defaults=False):
    """The answer to a request that was taken."""

    id: str
    """The start, as the history of the webhook has it."""
    repeated: bool
    """The same request came before; nothing was started again."""


class Ignored(Value, omit_defaults=False):
    """The answer to a request that asks for nothing."""

    ignored: str
    """A code: why nothing is started."""


class _Hook(Struct):
    """A webhook with what is known about it while the hub runs."""

    settings: InboundHook
    rate: Rate
    secrets: tuple[bytes, ...] = ()
    read_at: float = -math.inf
    reading: anyio.Lock = field(default_factory=anyio.Lock)
    refused: int = 0
    logged_at: float = -math.inf


class InboundEndpoint:
    """The inbound webhooks of a hub."""

    def __init__(
        self,
        trigger: Trigger,
        hooks: Iterable[InboundHook] = (),
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._trigger = trigger
        self._clock = clock
        self._hooks: dict[str, _Hook] = {}
        # Checked where there is no webhook, so that its absence takes as long as a wrong secret.
        self._nobody = _Hook(
            settings=InboundHook(name="nobody", prompt="none", directory="/", secret_file="/"),  # noqa: S106
            rate=Rate(),
            secrets=(os.urandom(32),),
            read_at=math.inf,
        )
        self.change(hooks)

    def change(self, hooks: Iterable[InboundHook]) -> None:
        """Have these webhooks from now on."""
        known = self._hooks
        self._hooks = {}
        for settings in hooks:
            before = known.get(settings.name)
            rate = Rate() if before is None else before.rate
            self._hooks[settings.name] = _Hook(settings=settings, rate=rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, as ASGI has it."""
        name = str(scope["path"]).removeprefix(PREFIX)
        hook = self._hooks.get(name)
        try:
            body = await _body(receive, self._most())
        except _Gone:
            return
        except _TooLarge:
            await _refuse(send, problem("too_large"))
            return
        given = _read_given(scope, body)
        real = hook or self._nobody
        await self._read(real)
        authentic = is_authentic(real.settings, given, real.secrets, self._clock())
        address = str((scope.get("client") or ("unknown", 0))[0])
        if hook is None or not authentic or scope["method"] != "POST":
            self._note_refusal(real, name if hook else None, address)
            await _refuse(send, problem("not_found"))
            return
        await self._take(hook, given, address, send)

    async def _take(self, hook: _Hook, given: Given, address: str, send: Send) -> None:
        """Take a request of who has the secret."""
        settings = hook.settings
        if wait := hook.rate.wait(settings.per_minute, self._clock()):
            log.warning("inbound %s: too many requests from %s", settings.name, address)
            refused = problem("too_many_requests", f"at most {settings.per_minute} in a minute")
            retry = (b"retry-after", str(math.ceil(wait)).encode())
            await _refuse(send, refused, retry)
            return
        if len(given.body) > settings.max_bytes:
            await _refuse(send, problem("too_large", f"at most {settings.max_bytes} bytes"))
            return
        if is_ping(settings, given):
            await _respond(send, 200, msgspec.json.encode(Ignored(ignored=PING)), JSON)
            return
        key = key_of(settings, given) or new_id()
        try:
            firing, new = await self._trigger.trigger(settings.name, key, given.body, address)
        except Conflict as error:
            log.info("inbound %s: nothing is started for %s: %s", settings.name, address, error)
            found = problem("conflict", str(error))
            kind = f"urn:quarterdeck:problem:{error.code}"
            await _refuse(send, msgspec.structs.replace(found, code=error.code, type=kind))
        except NotFound:
            await _refuse(send, problem("not_found"))
        except JournalError as error:
            log.error("inbound %s: %s", settings.name, error)
            await _refuse(send, problem("journal_unavailable"))
        else:
            word = "taken" if new else "repeated"
            log.info("inbound %s: %s from %s: %s", settings.name, firing.id, address, word)
            answer = msgspec.json.encode(Accepted(id=firing.id, repeated=not new))
            await _respond(send, 202, answer, JSON)

    async def _read(self, hook: _Hook) -> None:
        """Read the secrets, if they were not just read: the file may be changed at any time."""
        async with hook.reading:  # requests that come meanwhile need the secrets, too
            now = time.monotonic()
            if now - hook.read_at < READ_AGAIN_SECONDS:
                return
            try:
                hook.secrets = await anyio.to_thread.run_sync(read_secrets, hook.settings)
            except UsageError as error:
                hook.secrets = ()
                log.error("inbound %s: no request is taken: %s", hook.settings.name, error)
            hook.read_at = now

    def _note_refusal(self, hook: _Hook, name: str | None, address: str) -> None:
        hook.refused += 1
        now = time.monotonic()
        if now - hook.logged_at < LOG_SECONDS:
            return
        which = "of no known name" if name is None else f"for {name} without a valid secret"
        log.warning("inbound: refused %d requests %s, last from %s", hook.refused, which, address)
        hook.logged_at, hook.refused = now, 0

    def _most(self) -> int:
        """The largest body of any webhook: the same for all names, so that it tells nothing."""
        return max([SMALLEST_LIMIT, *(hook.settings.max_bytes for hook in self._hooks.values())])


class _Gone(Exception):
    """The client went away before its body was complete."""


class _TooLarge(Exception):
    """The body is larger than any webhook takes."""


async def _body(receive: Receive, most: int) -> bytes:
    """The whole body. Raises `_Gone`, `_TooLarge`."""
    found = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise _Gone
        found += message.get("body", b"")
        if len(found) > most:
            raise _TooLarge
        if not message.get("more_body", False):
            return bytes(found)


def _read_given(scope: Scope, body: bytes) -> Given:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        if len(value) <= LONGEST_HEADER:
            found.setdefault(bytes(name).decode("latin-1").lower(), []).append(
                bytes(value).decode("latin-1")
            )

    def only(name: str) -> str:
        values = found.get(name, [])
        value = values[0] if len(values) == 1 else ""
        return value if value.isascii() and value.isprintable() else ""

    return Given(
        authorization=only("authorization"),
        idempotency_key=only("idempotency-key"),
        webhook_id=only("webhook-id"),
        webhook_timestamp=only("webhook-timestamp"),
        webhook_signature=only("webhook-signature"),
        hub_signature=only("x-hub-signature-256"),
        github_event=only("x-github-event"),
        body=body,
    )


async def _refuse(send: Send, found: Problem, *headers: tuple[bytes, bytes]) -> None:
    body = msgspec.json.encode(found)
    await _respond(send, found.status, body, b"application/problem+json", *headers)


async def _respond(
    send: Send, status: int, body: bytes, content_type: bytes, *headers: tuple[bytes, bytes]
) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", content_type),
                (b"content-length", str(len(body)).encode()),
                (b"cache-control", b"no-store"),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})
