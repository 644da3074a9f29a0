"""From the words of the configuration to those of the hub's parts. Pure.

Each part has its own structs, which it is given by whoever composes it: here they are made. `serve`
stands above, at the start and at each reload.
"""

from __future__ import annotations

from pathlib import Path

from quarterdeck.config import Settings
from quarterdeck.config.read import Checks
from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.http import Places
from quarterdeck.hub.supervision.budgets import Limit, Limits
from quarterdeck.hub.supervision.watchdog import Timeouts
from quarterdeck.journal.retention import Retention
from quarterdeck.protocol.sessions import Budget
from quarterdeck.service.notifications import notification_settings

MIB = 1024 * 1024


def places(settings: Settings) -> Places:
    """By which names the hub is known, from which pages it is used, through which proxies."""
    server = settings.server
    return Places.of(hosts=server.hosts, origins=server.origins, proxies=server.proxies)


def session_budget(settings: Settings) -> Budget:
    """What each session may spend that says nothing of it."""
    budget = settings.budget
    return Budget(
        run_usd=budget.run_usd,
        run_tokens=budget.run_tokens,
        session_usd=budget.session_usd,
        session_tokens=budget.session_tokens,
    )


def shared_limits(settings: Settings) -> Limits:
    """What all sessions may spend together, in a day and in each project."""
    return Limits(
        day=Limit(usd=settings.budget.day_usd, tokens=settings.budget.day_tokens),
        projects={
            name: Limit(usd=project.budget.total_usd, tokens=project.budget.total_tokens)
            for name, project in settings.projects.items()
            if project.budget is not None
        },
    )


def timeouts(settings: Settings) -> Timeouts:
    """How long silence is borne."""
    watchdog = settings.watchdog
    return Timeouts(
        after_tool=watchdog.after_tool,
        result=watchdog.result,
        answer=watchdog.answer,
        exit=watchdog.exit,
        recover=watchdog.recover,
    )


def retention(settings: Settings) -> Retention:
    """How much history is kept."""
    kept = settings.retention
    return Retention(
        days=kept.days,
        bytes=None if kept.megabytes is None else kept.megabytes * MIB,
        archived_only=kept.archived_only,
    )


def _known_projects(settings: Settings) -> None:
    """Nobody waits for what happens in a project that is none."""
    for webhook in settings.webhooks:
        for name in webhook.projects:
            if name not in settings.projects:
                raise UsageError(f"there is no project {name!r}")


CHECKS: Checks = (
    ("server", places),
    ("budget", session_budget),
    ("budget", shared_limits),
    ("watchdog", timeouts),
    ("retention", retention),
    ("webhooks", lambda settings: notification_settings(settings, Path("/"))),
    ("webhooks", _known_projects),
)
"""What the parts say to a configuration, before any of it is taken over."""
