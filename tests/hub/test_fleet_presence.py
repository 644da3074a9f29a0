"""Which hubs are there, when the clock of the database is set or hubs were killed."""

from __future__ import annotations

import pytest

from quarterdeck.hub.fleet import FORGET_SECONDS, PRESENT_SECONDS, Fleet
from quarterdeck.journal.base import Journal
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.journal.postgres import PostgresJournal
from support.fleets import Side

pytestmark = pytest.mark.anyio
SIGN = PRESENT_SECONDS / 4


class Clocks:
    """The clock of the database, and that of a hub, which only goes forward."""

    def __init__(self) -> None:
        self.database = 1_700_000_000.0
        self.own = 500.0

    def journal(self) -> MemoryJournal:
        return MemoryJournal(clock=lambda: self.database)

    def fleet(self, journal: Journal, name: str) -> Fleet:
        return Fleet(journal, f"http://{name}", Side({}, journal, name), hub=name, clock=self.look)

    def look(self) -> float:
        return self.own

    async def go_on(self, fleet: Fleet, journal: Journal, *signs: str) -> list[str]:
        """A moment passes, these hubs give a sign, and the fleet looks who is there."""
        self.database += SIGN
        self.own += SIGN
        for hub in signs:
            await journal.announce(hub, f"http://{hub}")
        return sorted(place.hub for place in await fleet.others())


async def test_a_database_clock_that_is_set_back_makes_live_hubs_not_look_gone() -> None:
    clocks = Clocks()
    journal = clocks.journal()
    fleet = clocks.fleet(journal, "me")
    assert await clocks.go_on(fleet, journal, "dead", "live") == ["dead", "live"]
    machine, other = (
        await journal.raise_fence("box", "live"),
        await journal.raise_fence("x", "dead"),
    )
    clocks.database -= 3600.0  # another server took over, whose clock is behind
    taken: list[str] = []

    async def load(name: str) -> None:
        taken.append(name)

    for _ in range(6):
        assert "live" in await clocks.go_on(fleet, journal, "live")
        await fleet.adopt(load, None)
    assert await clocks.go_on(fleet, journal, "live") == ["live"]
    assert taken == ["x"]
    owners = await journal.machine_owners()
    assert (owners["box"].hub, owners["box"].fence) == ("live", machine)
    assert owners["x"].fence > other
    # A hub that starts now learns the same, a moment later.
    late = clocks.fleet(journal, "late")
    for _ in range(4):
        await clocks.go_on(late, journal, "live", "me")
    assert await clocks.go_on(late, journal, "live", "me") == ["live", "me"]


async def test_a_database_clock_that_is_set_forward_makes_no_hub_look_gone() -> None:
    clocks = Clocks()
    journal = clocks.journal()
    fleet = clocks.fleet(journal, "me")
    await clocks.go_on(fleet, journal, "live")
    clocks.database += 3600.0
    assert await clocks.go_on(fleet, journal) == ["live"]
    await journal.announce("live", "http://live")
    clocks.database += 3600.0
    assert await clocks.go_on(fleet, journal) == ["live"]
    # A hub that stood still itself looks again before it calls others gone.
    clocks.own += 600.0
    assert await clocks.go_on(fleet, journal, "live") == ["live"]
    for _ in range(3):
        await clocks.go_on(fleet, journal)
    assert await clocks.go_on(fleet, journal) == []


async def test_a_hub_that_was_killed_long_ago_is_told_apart_from_one_that_is_only_silent() -> None:
    clocks = Clocks()
    journal = clocks.journal()
    fleet = clocks.fleet(journal, "me")
    await clocks.go_on(fleet, journal, "live", "dead")
    clocks.own += FORGET_SECONDS / 2
    await clocks.go_on(fleet, journal, "live")
    assert await fleet.long_gone() == []
    clocks.own += FORGET_SECONDS / 2
    await clocks.go_on(fleet, journal, "live", "me")
    assert await fleet.long_gone() == ["dead"]


async def test_an_announcement_is_always_later_than_the_one_before(postgres_url: str) -> None:
    clocks = Clocks()
    async with await PostgresJournal.open(postgres_url) as database:
        for journal in (database, clocks.journal()):
            await journal.announce("a", "http://a")
            (first,) = await journal.hubs()
            clocks.database -= 3600.0
            await journal.announce("a", "http://b")
            (second,) = await journal.hubs()
            assert second.at > first.at
            assert second.url == "http://b"
            assert second.age < (0 if journal is not database else PRESENT_SECONDS * 1000)
