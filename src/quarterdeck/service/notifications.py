"""Webhooks, push, metrics and traces, composed for `serve`: they follow one hub's journal.

The fronts do not know each other: counts of one that another shows are passed on here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import quote

from quarterdeck.config import Settings
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http import Access, Requests
from quarterdeck.fronts.metrics import Commits, Deliveries, Metrics, Sources
from quarterdeck.fronts.otel import Telemetry, Tracing, run_environment
from quarterdeck.fronts.push import Push
from quarterdeck.fronts.webhooks import Webhook, WebhookEvent, Webhooks, new_secret
from quarterdeck.hub.api import HubApi
from quarterdeck.journal.journal_threads import ThreadedJournal
from quarterdeck.runtime.duties import Duty, SharedPlace, alone
from quarterdeck.runtime.files import replace_file
from quarterdeck.runtime.shared_tables import Mirror

WEBHOOK_SECRET = "webhook.secret"  # noqa: S105 - the name of a file
NO_CONTACT = "mailto:nobody@example.org"
"""Push services want the sender's address. A hub that only this machine can reach has none."""


class NotificationSettings(Value):
    """The settings of all notifications."""

    webhooks: tuple[Webhook, ...] = ()
    telemetry: Telemetry | None = None
    address: str | None = None
    """The address for people, for links to sessions; None: the one of this machine."""


def notification_settings(settings: Settings, home: Path) -> NotificationSettings:
    """From the configuration. Raises `UsageError` for invalid settings.

    A webhook without a secret file uses the one in the data folder; one without a name is named by
    its number.
    """
    origins, telemetry = settings.server.origins, settings.telemetry
    return NotificationSettings(
        webhooks=tuple(
            Webhook(
                name=each.name or f"webhook-{number}",
                url=each.url,
                secret_file=each.secret_file or str(home / WEBHOOK_SECRET),
                events=tuple(WebhookEvent(event) for event in each.events),
                projects=each.projects,
                timeout=each.timeout,
                tries=each.tries,
                give_up_hours=each.give_up_hours,
            )
            for number, each in enumerate(settings.webhooks, 1)
        ),
        telemetry=None
        if telemetry.endpoint is None
        else Telemetry(
            endpoint=telemetry.endpoint,
            headers_file=telemetry.headers_file,
            service_name=telemetry.service_name,
        ),
        address=origins[0] if origins else None,
    )


def ensure_webhook_secret(home: Path) -> Path:
    """The secret file for webhooks without one of their own; created if it is missing."""
    file = home / WEBHOOK_SECRET
    if not file.exists():
        replace_file(file, new_secret().encode() + b"\n")
    return file


class Notifications:
    """The fronts. The HTTP front needs `requests`, `metrics.page` and `push`."""

    def __init__(
        self,
        service: HubApi,
        journal: ThreadedJournal,
        home: Path,
        settings: NotificationSettings,
        access: Access,
        outbox: Mirror | None = None,
    ) -> None:
        """`outbox` has undelivered webhooks for several hubs."""
        ensure_webhook_secret(home)
        self.requests = Requests()
        self.metrics = Metrics(
            service,
            Sources(
                requests=lambda: self.requests.counts,
                streams=self.requests.streams,
                deliveries=self._deliveries,
                journal_bytes=journal.size,
                commits=lambda: _commits(journal),
            ),
        )
        self.webhooks = Webhooks(service, home, settings.webhooks, link=self._link, mirror=outbox)
        address = settings.address or ""
        self.push = Push(
            service,
            home,
            grants=lambda: {grant.id for grant in access.grants()},
            contact=address if address.startswith("https:") else NO_CONTACT,
        )
        self._tracing = Tracing(service, home, settings.telemetry) if settings.telemetry else None
        self._address = settings.address

    def change(self, settings: NotificationSettings) -> None:
        """Use other webhooks from now on. The target of traces is fixed at the start."""
        self.webhooks.change(settings.webhooks)

    @asynccontextmanager
    async def run(
        self,
        address: str,
        duty: Duty = alone,
        place: Callable[[str], SharedPlace] | None = None,
    ) -> AsyncIterator[None]:
        """Notify while the block runs. `address` is the hub's address on this machine.

        `duty` and `place`: with several hubs, one of them notifies for all.
        """
        self._address = self._address or address
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.metrics.run())
            await stack.enter_async_context(self.webhooks.run(duty))
            shared = None if place is None else place("push")
            await stack.enter_async_context(self.push.run(duty, shared))
            if self._tracing is not None:
                shared = None if place is None else place("tracing")
                await stack.enter_async_context(self._tracing.run(duty, shared))
            yield

    def _link(self, session: str) -> str:
        return session_link(self._address or "", session)

    def _deliveries(self) -> dict[str, Deliveries]:
        return {
            name: Deliveries(
                delivered=counts.delivered,
                failed=counts.failed,
                given_up=counts.given_up,
                waiting=counts.waiting,
            )
            for name, counts in self.webhooks.counts.items()
        }


def session_link(address: str, session: str) -> str:
    """The page of a session in the web app."""
    return f"{address.rstrip('/')}/s/{quote(session, safe='')}"


def run_variables(settings: NotificationSettings, run: str) -> Mapping[str, str]:
    """The variables that connect a run's CLI to its trace."""
    return run_environment(run) if settings.telemetry is not None else {}


def _commits(journal: ThreadedJournal) -> Commits:
    times = journal.commit_times
    return Commits(buckets=times.upto(), count=times.count, seconds=times.seconds)
