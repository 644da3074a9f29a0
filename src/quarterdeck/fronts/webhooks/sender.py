"""One attempt to deliver one payload, over HTTP.

Owns the limits of an attempt: its time, no redirects, only the headers of the answer are read, no
cookies. It never raises for what an endpoint does: that is an `Attempt` too. URLs are not logged,
since they may contain a secret.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import msgspec

from quarterdeck import __version__
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.ids import new_id
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.webhooks.payloads import Link, sample
from quarterdeck.fronts.webhooks.settings import Webhook, WebhookEvent
from quarterdeck.runtime.webhook_signature import headers, read_keys

if TYPE_CHECKING:
    import httpx2

GONE = 410
"""The convention's status for an endpoint that is gone: no more retries."""
LONGEST_ERROR = 200


class Attempt(Value):
    """The result of an attempt. `status` is None without an answer."""

    ok: bool
    status: int | None = None
    error: str = ""
    """A short text for a person, without anything from the endpoint."""
    retry_after: float | None = None
    seconds: float = 0.0

    @property
    def gone(self) -> bool:
        """Whether the endpoint wants no more attempts of this."""
        return self.status == GONE


@asynccontextmanager
async def open_client() -> AsyncIterator[httpx2.AsyncClient]:
    """A client for all endpoints. Proxies come from the environment."""
    import httpx2  # 0.2 s to load, which a hub without webhooks does not need

    for name in ("httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)  # at «info» it logs every URL
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    async with httpx2.AsyncClient(
        headers={"user-agent": f"quarterdeck/{__version__}", "content-type": "application/json"},
        cookies=no_cookies,
        follow_redirects=False,
        timeout=None,  # the whole attempt is bounded below, however slow the bytes come
    ) as client:
        yield client


async def attempt(client: httpx2.AsyncClient, hook: Webhook, id_: str, body: bytes) -> Attempt:
    """Attempt a delivery once."""
    import httpx2

    began = time.monotonic()
    found = Attempt(ok=False, error=f"no answer within {hook.timeout:g} s")
    try:
        # Read each time: a secret can be replaced while the hub runs.
        keys = await anyio.to_thread.run_sync(read_keys, hook.secret_file)
        signed = headers(id_, int(time.time()), body, keys)
        with anyio.move_on_after(hook.timeout):
            async with client.stream("POST", hook.url, content=body, headers=signed) as answer:
                found = _read_answer(answer)
    except UsageError as error:
        found = Attempt(ok=False, error=str(error))
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        found = Attempt(ok=False, error=_error_text(error))
    return msgspec.structs.replace(found, seconds=time.monotonic() - began)


async def send_sample(hook: Webhook, event: WebhookEvent, link: Link) -> Attempt:
    """Post one sample payload, in the same way as a real one."""
    body = msgspec.json.encode(sample(event, int(time.time() * 1000), link))
    async with open_client() as client:
        return await attempt(client, hook, f"sample-{new_id()}", body)


def _read_answer(answer: httpx2.Response) -> Attempt:
    status = answer.status_code
    if 200 <= status < 300:
        return Attempt(ok=True, status=status)
    error = f"status {status}"
    if 300 <= status < 400:
        error += ": redirects are not followed"
    return Attempt(ok=False, status=status, error=error, retry_after=_retry_after(answer))


def _retry_after(answer: httpx2.Response) -> float | None:
    given = answer.headers.get("retry-after", "")
    return float(given) if given.isascii() and given.isdigit() and len(given) < 10 else None


def _error_text(error: Exception) -> str:
    """The error without a URL in it."""
    name = type(error).__name__
    cause = error.__cause__ or error.__context__
    while cause is not None and (cause.__cause__ or cause.__context__) is not None:
        cause = cause.__cause__ or cause.__context__
    error_text = str(cause if isinstance(cause, OSError) else "")
    return f"{name}: {error_text}"[:LONGEST_ERROR] if error_text else name
