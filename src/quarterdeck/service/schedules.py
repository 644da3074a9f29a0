"""Schedules and inbound webhooks as a part of the service: from the configuration to both fronts.

The fronts do not know each other: what an inbound webhook takes is given to the scheduler here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from quarterdeck.config import Settings
from quarterdeck.domain.errors import UsageError
from quarterdeck.protocol.roles import RIGHTS, Right
from quarterdeck.protocol.schedules import Job

if TYPE_CHECKING:  # commands that only check the configuration load this module, too
    from quarterdeck.fronts.http import Access
    from quarterdeck.hub.hub import Hub
    from quarterdeck.runtime.shared_tables import Mirror
    from quarterdeck.service.loops import Loops


def check_jobs(settings: Settings) -> None:
    """Raise `UsageError` for a schedule or an inbound webhook that is not valid."""
    jobs = jobs_of(settings)
    if not jobs:
        return
    from quarterdeck.fronts.schedules.jobs import entries_of

    for job in jobs:
        try:
            entries_of([job], (), {}, 0.0)
        except UsageError as error:
            raise UsageError(f"{job.name}: {error}") from error
    entries_of(jobs, (), {}, 0.0)


def jobs_of(settings: Settings) -> tuple[Job, ...]:
    """All jobs of the configuration."""
    return (*settings.schedules, *settings.inbound)


class Schedules:
    """Both fronts of one hub."""

    def __init__(
        self,
        hub: Hub,
        home: Path,
        access: Access,
        settings: Settings,
        loops: Loops,
        mirror: Mirror | None = None,
    ) -> None:
        """`mirror`: several hubs have the same schedules."""
        from quarterdeck.fronts.inbound import InboundEndpoint
        from quarterdeck.fronts.schedules.scheduler import Scheduler

        self.scheduler = Scheduler(
            hub,
            home,
            jobs_of(settings),
            resolve=hub.worktree_service.resolve,
            owners=lambda: owners_of(access),
            loops=loops,
            mirror=mirror,
        )
        self.inbound = InboundEndpoint(self.scheduler, settings.inbound)

    def change(self, settings: Settings) -> None:
        """Use other settings from now on. Raises `UsageError`."""
        self.scheduler.change(jobs_of(settings))
        self.inbound.change(settings.inbound)


def owners_of(access: Access) -> frozenset[str]:
    """The people who may start sessions now."""
    from quarterdeck.fronts.http.tokens import Kind

    return frozenset(
        grant.name
        for grant in access.grants()
        if grant.kind in {Kind.TOKEN, Kind.BROWSER} and Right.MANAGE in RIGHTS[grant.role]
    )
