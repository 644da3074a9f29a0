"""`quarterdeck webhook`: try an endpoint from here, without a hub.

What is sent and signed is what a hub would send: the same code does it.
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
"""What the link of a sample leads to when no hub runs."""


def run_webhook_test(name: str, event: str, secret_file: Path | None, config: Path | None) -> int:
    """Send a sample to a webhook of the configuration, or to an address; gives the exit code."""
    try:
        wanted = WebhookEvent(event)
    except ValueError:
        known = ", ".join(WebhookEvent)
        raise UsageError(f"--event: {event!r} is none of {known}") from None
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
