"""Hubs for the tests here: one in memory for each test, and one with a runner for all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quarterdeck.hub.hub import Hub
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.journal.memory import MemoryJournal
from support.apart import apart
from support.hub_house import NO_RULES, House, PolicedHouse, house
from support.hub_machines import TestMachines, hub_with
from support.processes import Processes


@pytest.fixture
def journal() -> MemoryJournal:
    """The journal of `deck`."""
    return MemoryJournal()


@pytest.fixture
async def deck(journal: MemoryJournal) -> AsyncIterator[tuple[Hub, TestMachines]]:
    """A hub with its journal in memory, and machines that the test plays itself."""
    hub, machines = hub_with(journal)
    async with hub.run():
        yield hub, machines


@pytest.fixture(scope="session")
def processes_of_all() -> Iterator[Processes]:
    registry = Processes()
    yield registry
    registry.end_all()


@asynccontextmanager
async def policed_house(folder: Path, processes: Processes) -> AsyncIterator[PolicedHouse]:
    (folder / "policy.toml").write_text(NO_RULES)
    policies = Policies(folder)
    async with house(folder, processes, policies) as home:
        yield PolicedHouse(home, policies)


@pytest.fixture(scope="session")
async def shared_house(
    tmp_path_factory: pytest.TempPathFactory, processes_of_all: Processes
) -> AsyncIterator[PolicedHouse]:
    folder = tmp_path_factory.mktemp("house")
    async with apart(policed_house(folder, processes_of_all)) as made:
        yield made


@pytest.fixture
async def policed(shared_house: PolicedHouse) -> AsyncIterator[PolicedHouse]:
    """The house of all tests; it is left without sessions that run, rules and grants."""
    yield shared_house
    await shared_house.clear()


@pytest.fixture
def home(policed: PolicedHouse) -> House:
    """The same, for one who has no rules."""
    return policed.home
