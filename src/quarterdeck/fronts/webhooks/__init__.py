"""Webhooks: the hub tells other systems what people would want to know.

`Webhooks` follows the journal, as every front does, and posts a signed payload for each event that
an endpoint wants. Above is whoever composes the service; below is `hub.api`, and nothing else of
the hub. What the payloads mean, and what is promised, is in `docs/reference/webhooks.md`.
"""

from __future__ import annotations

from quarterdeck.fronts.webhooks.endpoint import Counts
from quarterdeck.fronts.webhooks.sender import Attempt, send_sample
from quarterdeck.fronts.webhooks.settings import Backoff, Webhook, WebhookEvent
from quarterdeck.fronts.webhooks.signature import new_secret
from quarterdeck.fronts.webhooks.webhooks import Webhooks

__all__ = [
    "Attempt",
    "Backoff",
    "Counts",
    "Webhook",
    "WebhookEvent",
    "Webhooks",
    "new_secret",
    "send_sample",
]
