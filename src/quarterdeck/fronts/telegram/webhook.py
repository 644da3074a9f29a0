"""Updates by webhook: Telegram posts them, instead of being asked.

A small server of its own, for a proxy with a certificate in front of it. A post counts only with
the secret that was given to Telegram at this start. It is answered with 200 after the update has
been stored, and never before: Telegram posts everything else again.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import socket
import sqlite3
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import anyio

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.telegram.api import BotApi, BotApiError, read_update
from quarterdeck.fronts.telegram.types import Update
from quarterdeck.runtime.clock import Clock
from quarterdeck.runtime.web_server import bind, run_server, server_config

log = logging.getLogger(__name__)

LARGEST_UPDATE = 4 * 1024 * 1024
"""Bytes. A rich message has 32,768 characters at most, and comes with the one that it answers."""
BODY_SECONDS = 30.0
SECRET_HEADER = b"x-telegram-bot-api-secret-token"
PAUSES = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0)
"""Seconds between attempts to set the webhook."""

Take = Callable[[list[Update]], None]
"""Stores updates; raises `sqlite3.Error` if it cannot."""


class WebhookSettings(Value):
    """Where Telegram posts to, and where we listen for it."""

    url: str
    """The public address, with https."""
    host: str = "127.0.0.1"
    port: int = 8081

    def __post_init__(self) -> None:
        """Refuse an address that Telegram would refuse."""
        try:
            parsed = urlsplit(self.url)
            valid = parsed.scheme in {"https", "http"} and bool(parsed.hostname)
        except ValueError:
            valid = False
        if not valid or "#" in self.url:
            raise UsageError(
                "telegram: webhook: url: it must be an address such as https://host/path"
            )

    @property
    def path(self) -> str:
        """The path of a post, as it arrives here."""
        return urlsplit(self.url).path or "/"


class WebhookApp:
    """The ASGI app that takes posts."""

    def __init__(self, path: str, secret: str, take: Take) -> None:
        self._path = path
        self._secret = secret.encode()
        self._take = take

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        status = await self._status(scope, receive)
        headers = [(b"content-length", b"0")]
        if status >= 400:
            headers.append((b"connection", b"close"))  # the rest of the body is not read
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async def _status(self, scope: Any, receive: Any) -> int:
        if scope["path"] != self._path:
            return 404
        given = dict(scope["headers"]).get(SECRET_HEADER, b"")
        if not hmac.compare_digest(given, self._secret):
            return 401
        if scope["method"] != "POST":
            return 405
        body = b""
        with anyio.move_on_after(BODY_SECONDS) as waited:
            body = await _body(receive)
        if waited.cancelled_caught:
            return 408
        if len(body) > LARGEST_UPDATE:
            return 413
        try:
            self._take([read_update(body)])
        except BotApiError as error:
            # It would come again and again, and be in the way of all others.
            log.warning("a post of Telegram is not an update, and ignored: %s", error)
        except sqlite3.Error as error:
            log.error("an update cannot be stored: %s", error)
            return 503
        return 200


async def _body(receive: Any) -> bytes:
    """The body; of one that is too large only the beginning."""
    body = bytearray()
    while len(body) <= LARGEST_UPDATE:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    return bytes(body)


async def run_webhook(
    api: BotApi,
    settings: WebhookSettings,
    take: Take,
    clock: Clock,
    *,
    on_failure: Callable[[str], None] = lambda _: None,
    listener: socket.socket | None = None,
) -> None:
    """Listen, tell Telegram where, and take updates until cancelled. Raises `LinkRefused` when the
    port cannot be used.

    `on_failure` hears why Telegram does not take the address, and an empty text when it does.
    `listener` is a socket that is bound already.
    """
    secret = secrets.token_urlsafe(32)
    app = WebhookApp(settings.path, secret, take)
    with listener or bind(settings.host, settings.port) as bound:
        async with run_server(server_config(app, pong_seconds=20.0), bound):
            await _announce(api, settings.url, secret, clock, on_failure)
            await anyio.sleep_forever()


async def _announce(
    api: BotApi, url: str, secret: str, clock: Clock, on_failure: Callable[[str], None]
) -> None:
    failures = 0
    while True:
        try:
            await api.set_webhook(url, secret)
        except BotApiError as error:
            log.warning("the webhook cannot be set yet: %s", error)
            on_failure(str(error))
            pause = max(PAUSES[min(failures, len(PAUSES) - 1)], error.retry_after or 0.0)
            failures += 1
            await clock.sleep(pause)
        else:
            on_failure("")
            return
