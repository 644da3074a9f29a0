"""Webhooks: notify other systems about events that people care about.

`Webhooks` follows the journal, as every front does, and posts a signed payload for each event that
an endpoint subscribes to. The service's composition root is above; `hub.api` is below, and nothing
else of the hub. Payloads and guarantees are described in `docs/reference/webhooks.md`.
"""

from __future__ import annotations

from quarterdeck.fronts.webhooks.endpoint import Counts
from quarterdeck.fronts.webhooks.sender import Attempt, send_sample
from quarterdeck.fronts.webhooks.settings import Backoff, Webhook, WebhookEvent
from quarterdeck.fronts.webhooks.webhooks import Webhooks
from quarterdeck.runtime.webhook_signature import new_secret

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
