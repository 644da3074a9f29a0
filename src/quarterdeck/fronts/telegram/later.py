"""What happens at a time: prompts that were planned, the daily summary, and forgetting what is old.

A prompt that is due becomes an update of its own, with the number of its plan below zero, in the
commit that ends the plan: it is done once, whatever happens.
"""

from __future__ import annotations

import logging
import sqlite3
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from quarterdeck.client.calls import HubRefused
from quarterdeck.domain.errors import QuarterdeckError
from quarterdeck.fronts.telegram.bot import Bot
from quarterdeck.fronts.telegram.chats import Place
from quarterdeck.fronts.telegram.jobs import Services
from quarterdeck.fronts.telegram.people import is_revoked
from quarterdeck.fronts.telegram.progress import money
from quarterdeck.fronts.telegram.text import Part, bold, fit, join
from quarterdeck.fronts.telegram.types import Message, Update
from quarterdeck.protocol.usage import UsageBy

log = logging.getLogger(__name__)

LOOK_SECONDS = 20.0
"""Between two looks at what is due."""
PRUNE_SECONDS = 3600.0
ACCESS_SECONDS = 60.0
"""How long it takes at most until people whose access has ended are told nothing any more."""
DAILY = "daily"


class Later:
    """Does what is due, until cancelled."""

    def __init__(self, services: Services, bot: Bot) -> None:
        self._services = services
        self._messenger = services.messenger
        self._bot = bot
        self._pruned = 0.0
        self._checked = 0.0

    async def run(self) -> None:
        """Look at what is due, again and again."""
        while True:
            try:
                self.fire()
                await self._check_access()
                await self._summaries()
                if self._messenger.clock.now() - self._pruned > PRUNE_SECONDS:
                    self._pruned = self._messenger.clock.now()
                    self._messenger.prune()
                pause = self._pause()
            except sqlite3.Error as error:
                log.error("what is due cannot be looked up: %s", error)
                pause = LOOK_SECONDS
            await self._messenger.clock.sleep(pause)

    def _pause(self) -> float:
        planned = self._messenger.state.schedules()
        left = planned[0].due - self._messenger.clock.now() if planned else LOOK_SECONDS
        return min(max(left, 0.5), LOOK_SECONDS)

    def fire(self) -> None:
        """Have the prompts that are due done."""
        now = self._messenger.clock.now()
        for plan in self._messenger.state.schedules():
            if plan.due > now:
                break
            message = replace(msgspec.json.decode(plan.body, type=Message), date=int(now))
            with self._messenger.database.transaction():
                self._messenger.state.unschedule(plan.id)
                self._bot.store(Update(update_id=-plan.id, message=message))
        self._bot.wake()

    async def _check_access(self) -> None:
        """Forget the pairings of people whose access has ended: they are told nothing any more."""
        if self._messenger.clock.now() - self._checked < ACCESS_SECONDS:
            return
        self._checked = self._messenger.clock.now()
        for user in self._messenger.state.paired_users():
            paired = self._messenger.state.paired_person(user)
            try:
                if paired is not None:
                    await (await self._services.people.client(paired.token)).whoami()
            except HubRefused as error:
                if is_revoked(error):
                    log.info("the access of Telegram user %d has ended", user)
                    self._messenger.state.unpair(user)
            except QuarterdeckError:
                return  # the hub is away: it is asked again

    # --- the summary of a day ------------------------------------------------------------------

    async def _summaries(self) -> None:
        minute = self._messenger.options.daily
        if minute is None:
            return
        local = self._messenger.options.local(self._messenger.clock.now())
        if local.hour * 60 + local.minute < minute:
            return
        day = (local - timedelta(days=1)).date().isoformat()
        if self._messenger.state.meta(DAILY) == day.encode():
            return
        for user in sorted(self._messenger.options.users):
            if self._messenger.state.paired_person(user) is not None:
                await self._summary(user, day, local)
        self._messenger.state.set_meta(DAILY, day.encode())

    async def _summary(self, user: int, day: str, local: datetime) -> None:
        paired = self._messenger.state.paired_person(user)
        assert paired is not None
        try:
            hub = await self._services.people.client(paired.token)
            since = local.replace(hour=0, minute=0, second=0, microsecond=0)
            until = since.isoformat()
            since -= timedelta(days=1)
            report = await hub.usage(UsageBy.PROJECT, since=since.isoformat(), until=until)
            asks = await hub.asks()
        except QuarterdeckError as error:
            log.info("no daily summary for Telegram user %d: %s", user, error)
            return
        total = report.total
        pieces: list[Part | str] = [bold(f"📊 {day}"), f"\n{total.turns} turns"]
        if total.failed:
            pieces.append(f", {total.failed} of them failed")
        cost = money(total.cost_usd) if total.cost_usd else "$0"
        pieces.append(f"\n{cost} · {total.tokens:,} tokens · {total.tool_calls} tool calls")
        for row in report.rows[:10]:
            spent = money(row.used.cost_usd) if row.used.cost_usd else "$0"
            pieces.append(f"\n• {row.key or '(no project)'}: {spent}")
        if asks:
            pieces.append(f"\n❓ open questions: {len(asks)}")
        self._messenger.say(Place(chat=user), fit(join(pieces)), key=f"daily:{user}:{day}")
