"""`quarterdeck webhook`: test an endpoint, without a hub.

The sample is sent and signed by the same code as in the hub.
"""

from __future__ import annotations

from pathlib import Path

import anyio

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.terminal.output import print_line
from quarterdeck.domain.errors import NotFound, UsageError
from quarterdeck.fronts.webhooks import Webhook, WebhookEvent, new_secret, send_sample
from quarterdeck.runtime.data_dir import data_home
from quarterdeck.service.config_file import Configuration
from quarterdeck.service.local_hub import live_hub
from quarterdeck.service.notifications import (
    ensure_webhook_secret,
    notification_settings,
    session_link,
)

ANYWHERE = "http://127.0.0.1:8765"
"""The address in links of a sample when no hub runs."""


def run_webhook_test(name: str, event: str, secret_file: Path | None, config: Path | None) -> int:
    """Send a sample to a configured webhook, or to a URL; returns the exit code."""
    try:
        wanted = WebhookEvent(event)
    except ValueError:
        known = ", ".join(WebhookEvent)
        raise UsageError(f"--event: {event!r} is not one of {known}") from None
    home = data_home()
    ensure_webhook_secret(home)
    settings = notification_settings(Configuration(config).loaded.settings, home)
    if name.startswith(("http://", "https://")):
        hook = Webhook(name="test", url=name, secret_file=str(ensure_webhook_secret(home)))
    else:
        found = [each for each in settings.webhooks if each.name == name]
        if not found:
            raise NotFound("webhook", name)
        hook = found[0]
    if secret_file is not None:
        hook = Webhook(
            name=hook.name, url=hook.url, secret_file=str(secret_file), timeout=hook.timeout
        )
    hub = live_hub(home)
    address = settings.address or (hub.address if hub is not None else ANYWHERE)

    async def send() -> int:
        done = await send_sample(hook, wanted, lambda session: session_link(address, session))
        if done.ok:
            print_line(f"{wanted.value}: status {done.status} after {done.seconds:.2f} s")
            return Exit.SUCCESS
        print_line(f"{wanted.value}: {done.error}")
        return Exit.FAILED

    return anyio.run(send)


def run_webhook_secret() -> int:
    """Print a new secret."""
    print_line(new_secret())
    return Exit.SUCCESS
