"""One attempt to hand one message to a push service, over HTTP.

Owns the limits of an attempt: its time, no redirects, only the status of the answer is read, no
cookies. It never raises for what a service does: that is an `Attempt` too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio

from quarterdeck import __version__
from quarterdeck.domain.addresses import is_public_address
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.push.subscriptions import Subscription

if TYPE_CHECKING:
    import httpx2

    from quarterdeck.fronts.push.encryption import HubKey

GONE = (404, 410)
"""The answers of a service when the browser has unsubscribed or is gone."""
KEPT_SECONDS = 3600
"""How long a service keeps a message for a device that is off."""


class Attempt(Value):
    """The result of an attempt."""

    ok: bool = False
    gone: bool = False
    error: str = ""
    """A short text for the log, without anything from the service, and without a URL."""


@asynccontextmanager
async def open_client() -> AsyncIterator[httpx2.AsyncClient]:
    """A client for all services. Proxies come from the environment."""
    import httpx2  # 0.2 s to load, which a hub without subscriptions does not need

    for name in ("httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)  # at «info» it logs every URL
    async with httpx2.AsyncClient(
        headers={
            "user-agent": f"quarterdeck/{__version__}",
            "content-type": "application/octet-stream",
            "content-encoding": "aes128gcm",
            "ttl": str(KEPT_SECONDS),
            "urgency": "high",
        },
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        follow_redirects=False,
        limits=httpx2.Limits(max_connections=None),
        timeout=None,  # the whole attempt is bounded below, however slow the bytes come
    ) as client:
        yield client


async def attempt(
    client: httpx2.AsyncClient,
    key: HubKey,
    to: Subscription,
    message: bytes,
    *,
    contact: str,
    seconds: float,
    loopback: bool = False,
) -> Attempt:
    """Attempt a delivery once. It is encrypted anew each time.

    `loopback` allows a service on this machine; else its name must lead to the Internet.
    """
    import httpx2

    from quarterdeck.fronts.push.encryption import seal

    body = seal(message, to.p256dh, to.auth)
    signed = {"authorization": key.authorization(to.origin, contact, time.time())}
    try:
        with anyio.move_on_after(seconds):
            if not loopback and await _is_local(to.origin):
                return Attempt(gone=True, error="its name leads to a local address")
            async with client.stream("POST", to.endpoint, content=body, headers=signed) as answer:
                status = answer.status_code
                if 200 <= status < 300:
                    return Attempt(ok=True)
                return Attempt(gone=status in GONE, error=f"status {status}")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        # `ValueError` too: layers below the client refuse some URLs with it.
        return Attempt(error=type(error).__name__)
    return Attempt(error=f"no answer within {seconds:g} s")


async def _is_local(origin: str) -> bool:
    """Whether a name leads to an address that is not on the Internet, as far as is known here."""
    try:
        found = await anyio.getaddrinfo(urlsplit(origin).hostname or "", 443)
    except OSError:
        return False  # a proxy may know the name
    return any(not is_public_address(str(address[0])) for *_, address in found)
