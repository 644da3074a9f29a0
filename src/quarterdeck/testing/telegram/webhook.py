"""Webhooks: updates are posted one by one, again and again until the bot accepts them.

Only to loopback, and over plain HTTP as well, which Telegram would refuse.
"""

from __future__ import annotations

import re
from typing import Any

import anyio
import msgspec

from quarterdeck.domain.addresses import is_loopback_url
from quarterdeck.runtime.clock import Clock
from quarterdeck.testing.telegram.params import Params
from quarterdeck.testing.telegram.refusal import bad
from quarterdeck.testing.telegram.world import RawUpdate, World

POST_SECONDS = 30.0
LONGEST_PAUSE = 60.0
_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")


class WebhookPoster:
    """The webhook of the bot."""

    def __init__(self, world: World, clock: Clock) -> None:
        self._world = world
        self._clock = clock
        self._news = anyio.Event()
        self.url = ""
        self._secret = ""
        self._error = ""
        self._error_at = 0

    def wake(self) -> None:
        """There is a new update, or another webhook."""
        self._news.set()

    def call(self, method: str, params: Params) -> Any:
        """`setWebhook`, `deleteWebhook` or `getWebhookInfo`."""
        if method == "getWebhookInfo":
            return self._info()
        url = params.text("url") if method == "setWebhook" else ""
        secret = params.text("secret_token")
        if url and not is_loopback_url(url):
            raise bad("bad webhook: this test server posts to loopback only")
        if secret and not _SECRET.fullmatch(secret):
            raise bad("secret token contains unallowed characters")
        if params.flag("drop_pending_updates"):
            self._world.updates.clear()
        allowed = params.get("allowed_updates", list[str])
        if allowed is not None:
            self._world.allowed = frozenset(allowed) or None
        self.url, self._secret = url, secret
        self._error = ""
        self.wake()
        return True

    def _info(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "url": self.url,
            "has_custom_certificate": False,
            "pending_update_count": len(self._world.pending_updates()),
        }
        if self._error:
            found |= {"last_error_message": self._error, "last_error_date": self._error_at}
        if self._world.allowed is not None:
            found["allowed_updates"] = sorted(self._world.allowed)
        return found

    async def run(self) -> None:
        """Post until cancelled."""
        while not self.url:
            await self._wait(None)
        import httpx2  # only for tests of webhooks

        async with httpx2.AsyncClient(timeout=POST_SECONDS, trust_env=False) as client:
            tries = 0
            while True:
                pending = self._world.pending_updates() if self.url else []
                if not pending:
                    await self._wait(None)
                    continue
                update = pending[0]
                body = update.to_json() if isinstance(update, RawUpdate) else update
                headers = {"content-type": "application/json"}
                if self._secret:
                    headers["x-telegram-bot-api-secret-token"] = self._secret
                try:
                    answer = await client.post(
                        self.url, content=msgspec.json.encode(body), headers=headers
                    )
                    accepted = answer.is_success
                    failure = f"Wrong response from the webhook: {answer.status_code}"
                except (httpx2.HTTPError, OSError) as error:
                    accepted = False
                    failure = f"Connection failed: {type(error).__name__}"
                if accepted:
                    tries, self._error = 0, ""
                    self._world.confirm(update.update_id + 1)
                else:
                    tries, self._error = tries + 1, failure
                    self._error_at = int(self._clock.now())
                    await self._wait(min(2.0**tries, LONGEST_PAUSE))

    async def _wait(self, seconds: float | None) -> None:
        self._news = anyio.Event()
        if seconds is None:
            await self._news.wait()
        else:
            await self._clock.sleep(seconds)
