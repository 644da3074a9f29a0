"""From the configuration to the settings of each part. Pure.

Each part has its own structs, which are made here, at the start and at each reload.
"""

from __future__ import annotations

from pathlib import Path

from quarterdeck.config import Settings
from quarterdeck.config.read import Checks
from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.http import Places
from quarterdeck.fronts.http.relay_access import RelayRules
from quarterdeck.hub.supervision.budgets import Limit, Limits
from quarterdeck.hub.supervision.watchdog import Timeouts
from quarterdeck.protocol.retention import Retention
from quarterdeck.protocol.roles import Role
from quarterdeck.protocol.sessions import Budget
from quarterdeck.service.notifications import notification_settings
from quarterdeck.service.schedules import check_jobs
from quarterdeck.service.telegram import telegram_options

MIB = 1024 * 1024


def places(settings: Settings) -> Places:
    """The host names of the hub, the origins of pages that may use it, and its proxies."""
    server = settings.server
    return Places.of(hosts=server.hosts, origins=server.origins, proxies=server.proxies)


def session_budget(settings: Settings) -> Budget:
    """The default budget of each session."""
    budget = settings.budget
    return Budget(
        run_usd=budget.run_usd,
        run_tokens=budget.run_tokens,
        session_usd=budget.session_usd,
        session_tokens=budget.session_tokens,
    )


def shared_limits(settings: Settings) -> Limits:
    """The limits of all sessions together, per day and per project."""
    return Limits(
        day=Limit(usd=settings.budget.day_usd, tokens=settings.budget.day_tokens),
        projects={
            name: Limit(usd=project.budget.total_usd, tokens=project.budget.total_tokens)
            for name, project in settings.projects.items()
            if project.budget is not None
        },
    )


def timeouts(settings: Settings) -> Timeouts:
    """The timeouts of the watchdog."""
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


def relay_rules(settings: Settings) -> RelayRules:
    """Whether there is a relay, and who may use it without a token."""
    relay = settings.relay
    return RelayRules.of(enabled=relay.enabled, origins=relay.allow_origins, role=Role(relay.role))


def _known_telegram_project(settings: Settings) -> None:
    name = settings.telegram.project
    if name is not None and name not in settings.projects:
        raise UsageError(f"project: unknown project {name!r}")


def _known_projects(settings: Settings) -> None:
    """A webhook for an unknown project would never be called."""
    for webhook in settings.webhooks:
        for name in webhook.projects:
            if name not in settings.projects:
                raise UsageError(f"unknown project {name!r}")


def _known_schedule_projects(settings: Settings) -> None:
    for job in (*settings.schedules, *settings.inbound):
        if job.project is not None and job.project not in settings.projects:
            raise UsageError(f"{job.name}: unknown project {job.project!r}")


CHECKS: Checks = (
    ("server", places),
    ("budget", session_budget),
    ("budget", shared_limits),
    ("watchdog", timeouts),
    ("retention", retention),
    ("webhooks", lambda settings: notification_settings(settings, Path("/"))),
    ("webhooks", _known_projects),
    ("schedules", check_jobs),
    ("schedules", _known_schedule_projects),
    ("relay", relay_rules),
    ("telegram", telegram_options),
    ("telegram", _known_telegram_project),
)
"""Checks of the parts, before a configuration is applied."""
