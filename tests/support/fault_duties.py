"""What one of two hubs does for both, for the tests of faults: a schedule and a webhook, by leases.

A minute of the schedule takes `1 / SPEED` of a minute. The sessions that it starts name a CLI that
there is not, so that each ends at once and costs nothing; who starts it, and how often, is all that
is looked at. `wrong_with` compares what is recorded with what was
done.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.to_thread
from msgspec import Struct

from quarterdeck.config import Settings
from quarterdeck.config.settings import JournalSettings
from quarterdeck.fronts.schedules.scheduler import Scheduler
from quarterdeck.fronts.schedules.sessions import session_id
from quarterdeck.fronts.schedules.store import FILE as SCHEDULES
from quarterdeck.fronts.schedules.store import Store
from quarterdeck.fronts.webhooks import Webhook, WebhookEvent, Webhooks, new_secret
from quarterdeck.fronts.webhooks.outbox import FILE as WEBHOOKS
from quarterdeck.hub.hub import Hub
from quarterdeck.journal.base import Journal
from quarterdeck.protocol.events import PromptQueued, SessionCreated, TurnEnded
from quarterdeck.protocol.schedules import Firing, FiringState, Schedule
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.service import together as together_module
from quarterdeck.service.shared_rows import NAMESPACE, SharedRows
from quarterdeck.service.together import Together

SPEED = 120.0
BEGAN = 1_799_571_600.0
"""When the schedule's clock begins: a Sunday morning."""
NAME = "minutely"
SPACES = tuple(f"{NAMESPACE}/{file}" for file in (SCHEDULES, WEBHOOKS))


class DutyOptions(Struct):
    """What a hub is told of it."""

    home: str
    hook: str
    """The address of the webhook."""
    began: float
    """When the world began, by the real clock."""

    def clock(self) -> float:
        """The clock of the schedule, the same for all hubs."""
        return BEGAN + (time.time() - self.began) * SPEED


def together_of(journal: Journal, options: DutyOptions, secret: bytes) -> Together:
    """A hub among others, whose leases are short."""
    together_module.LEASE_SECONDS, together_module.RENEW_SECONDS = 0.8, 0.15
    home = Path(options.home)
    home.mkdir(parents=True, exist_ok=True)
    settings = Settings(journal=JournalSettings(url="postgresql://nowhere/x"))
    return Together(journal, settings, home, secret)


@asynccontextmanager
async def duties(hub: Hub, together: Together, options: DutyOptions) -> AsyncIterator[None]:
    """Do the duties while it is this hub's turn."""
    home = Path(options.home)
    secret = home / "webhook.secret"
    secret.write_text(new_secret())
    job = Schedule(name=NAME, every="1m", prompt="go", directory="/", machine="m0", max_running=5)
    hook = Webhook(
        name="hook",
        url=options.hook,
        secret_file=str(secret),
        events=(WebhookEvent.TURN_ENDED,),
        tries=100,
    )
    starts = together.rows(SCHEDULES, duty="schedules")
    scheduler = Scheduler(hub, home, (job,), clock=options.clock, mirror=starts)
    starts.changed = lambda _: scheduler.note_remote_change()
    outbox = together.rows(WEBHOOKS, duty="webhooks")
    webhooks = Webhooks(hub, home, (hook,), link=str, mirror=outbox)
    async with webhooks.run(together.on_duty), scheduler.run(together.on_duty):
        yield


async def has_begun(journal: Journal) -> bool:
    """Whether some hub has the cursor of the webhook: what happens from now on is told."""
    return await journal.shared_version(SPACES[1]) > 0


async def undelivered(journal: Journal, delivered: Collection[str]) -> list[str]:
    """The turns that ended, and of which no webhook came. `delivered` are the ids of those."""
    found: list[str] = []
    for view in await journal.summaries(limit=1000, archived=None):
        for stored in await _events(journal, view.session):
            id_ = f"{journal.epoch}-{stored.position}"
            if isinstance(stored.event, TurnEnded) and id_ not in delivered:
                found.append(id_)
    return found


async def wrong_with(journal: Journal, folder: Path) -> list[str]:
    """What the schedule did twice, or not at all, once all hubs have ended."""
    firings = await _firings(journal, folder)
    planned = {session_id(firing): firing for firing in firings}
    made: set[str] = set()
    found: list[str] = []
    for view in await journal.summaries(limit=1000, archived=None):
        if not (view.spec.name or "").startswith(NAME):
            continue
        made.add(view.session)
        events = [stored.event for stored in await _events(journal, view.session)]
        counts = [
            (kind, sum(isinstance(event, kind) for event in events))
            for kind in (SessionCreated, PromptQueued)
        ]
        found += [f"{view.session}: {n} times {kind.__name__}" for kind, n in counts if n != 1]
    found += [f"{name}: started by no firing" for name in made - planned.keys()]
    for name, firing in planned.items():
        if (firing.state is FiringState.STARTED or firing.session) and name not in made:
            found.append(f"{name}: recorded as started, and was not")
    if not made:
        found.append("the schedule started nothing")
    return found


async def _events(journal: Journal, session: str) -> list[Stored]:
    events: list[Stored] = []
    while page := await journal.read(session, after=len(events)):
        events += page
    return events


async def _firings(journal: Journal, folder: Path) -> list[Firing]:
    """All that is recorded of the schedule, as another hub would see it."""
    rows = SharedRows(journal, folder / SCHEDULES)

    def read() -> list[Firing]:
        folder.mkdir()
        store = Store(folder, rows)
        try:
            return store.firings(NAME, limit=100_000)
        finally:
            store.close()

    return await anyio.to_thread.run_sync(read)
