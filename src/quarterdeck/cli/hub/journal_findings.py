"""The checks of `quarterdeck doctor` for a journal in PostgreSQL. A file needs none of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from quarterdeck.cli.local.findings import Finding, Level
from quarterdeck.config.settings import Settings
from quarterdeck.domain.addresses import is_loopback_url
from quarterdeck.domain.errors import QuarterdeckError
from quarterdeck.runtime.client_tls import client_context
from quarterdeck.service.journal_place import database_password

SLOW_MS = 20.0
"""A longer way makes every acknowledgement slow: a group takes four round trips."""
CLOCK_MS = 5000.0
HUB_SECONDS = 5.0
"""How long another hub may take to answer."""


def look_at_journal(settings: Settings) -> Iterable[Finding]:
    """Look at the database of the configuration."""
    place = settings.journal
    if place.url is None:
        return
    try:
        from quarterdeck.journal.postgres.diagnosis import diagnose

        found = diagnose(place.url, database_password(place))
    except QuarterdeckError as error:
        yield Finding("journal", Level.PROBLEM, str(error), "See `journal.url`.")
        return
    text = f"{found.name}: PostgreSQL {found.server}, {found.latency_ms:.1f} ms away"
    if found.latency_ms > SLOW_MS:
        yield Finding("journal", Level.WARNING, text, "Put the hub nearer to its database.")
    else:
        yield Finding("journal", Level.OK, text)
    if not found.fsync:
        yield Finding(
            "journal",
            Level.PROBLEM,
            "fsync is off: a power failure can lose everything",
            "Set fsync = on in postgresql.conf.",
        )
    if found.synchronous_commit in {"off", "local"}:
        yield Finding(
            "journal",
            Level.WARNING,
            f"synchronous_commit is {found.synchronous_commit} in the server",
            "The hub turns `off` on for itself; with `local` a standby may lack the newest events.",
        )
    if not found.standbys:
        yield Finding(
            "journal",
            Level.OK,
            "synchronous_standby_names is empty: a standby that takes over may lack the newest "
            "events",
        )
    if found.pooler == "transaction":
        yield Finding(
            "journal",
            Level.WARNING,
            "a pooler such as PgBouncer in transaction mode is between the hub and its database",
            "Use its session mode: otherwise hubs see each other's events up to a second late.",
        )
    elif found.pooler:
        yield Finding(
            "journal",
            Level.OK,
            "a pooler such as PgBouncer in session mode is between the hub and its database",
        )
    if abs(found.clock_ms) > CLOCK_MS:
        yield Finding(
            "journal",
            Level.WARNING,
            f"the database's clock is {found.clock_ms / 1000:+.0f} s off",
            "Set both clocks by the network.",
        )
    if found.readable:
        yield Finding(
            "journal",
            Level.WARNING,
            "the connection to the database is not encrypted, and what is stored has secrets",
            "Add `?sslmode=verify-full` to `journal.url`, or use a private network.",
        )
    if found.oldest > found.known:
        yield Finding(
            "journal",
            Level.PROBLEM,
            f"its tables are too new for this Quarterdeck (schema {found.schema}, this one knows "
            f"{found.known}): its hubs store nothing",
            "Upgrade this one.",
        )
    elif found.schema > found.known:
        yield Finding(
            "journal",
            Level.WARNING,
            f"its tables are of a newer Quarterdeck (schema {found.schema}, this one makes "
            f"{found.known})",
            "Upgrade this one soon.",
        )
    if len(found.hubs) > 1:
        for url in found.hubs:
            yield _ask_hub(url, place.hub_ca_file)


def _ask_hub(url: str, ca_file: str | None) -> Finding:
    """Whether a hub answers at the address that it announces to the others."""
    import httpx2

    if is_loopback_url(url):
        text = f"a hub announces the address {url}: on another machine that is not it"
        return Finding("hubs", Level.WARNING, text, "Set `journal.hub_address` there.")
    try:
        trusted = client_context(None if ca_file is None else Path(ca_file))
        with httpx2.Client(verify=trusted, timeout=HUB_SECONDS, trust_env=False) as client:
            answer = client.get(url.rstrip("/") + "/healthz")
    except (httpx2.HTTPError, httpx2.InvalidURL, QuarterdeckError) as error:
        text = f"the hub at {url} does not answer: {error}"
        advice = "See `journal.hub_address` and `journal.hub_ca_file`, and the way there."
        return Finding("hubs", Level.PROBLEM, text, advice)
    if answer.status_code != 200:
        text = f"the hub at {url} is not healthy: HTTP {answer.status_code}"
        return Finding("hubs", Level.PROBLEM, text, "See its log.")
    return Finding("hubs", Level.OK, f"the hub at {url} answers")
