"""One try to hand one message to a push service, over HTTP.

Owns the limits of a try: its time, no redirect, nothing read of the answer but its status, no
cookies. It never raises for what a service does: that is an `Attempt` too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING

import anyio

from quarterdeck import __version__
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.push.subscriptions import Subscription

if TYPE_CHECKING:
    import httpx2

    from quarterdeck.fronts.push.encryption import HubKey

GONE = (404, 410)
"""What a service answers when the browser has unsubscribed, or is no more."""
KEPT_SECONDS = 3600
"""How long a service keeps a message for a device that is switched off."""


class Attempt(Value):
    """What a try came to."""

    ok: bool = False
    gone: bool = False
    error: str = ""
    """A few words for the log; nothing that the service said, and no address."""


@asynccontextmanager
async def open_client() -> AsyncIterator[httpx2.AsyncClient]:
    """A client for all services. Proxies are taken from the environment, as everywhere."""
    import httpx2  # a fifth of a second, which a hub without subscriptions need not wait for

    for name in ("httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)  # their «info» is every address
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
        limits=httpx2.Limits(max_connections=None),  # one subscription has one, and they are few
        timeout=None,  # the whole try is bounded below, however slowly it drips
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
) -> Attempt:
    """Try once. Sealed anew each time, since chance costs nothing."""
    import httpx2

    from quarterdeck.fronts.push.encryption import seal

    body = seal(message, to.p256dh, to.auth)
    signed = {"authorization": key.authorization(to.origin, contact, time.time())}
    try:
        with anyio.move_on_after(seconds):
            async with client.stream("POST", to.endpoint, content=body, headers=signed) as answer:
                status = answer.status_code
                if 200 <= status < 300:
                    return Attempt(ok=True)
                return Attempt(gone=status in GONE, error=f"status {status}")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        # `ValueError` too: an odd address may be refused by what is below the client.
        return Attempt(error=type(error).__name__)
    return Attempt(error=f"no answer within {seconds:g} s")
