"""One hub with its Telegram front for all tests here, and one for those that run the front."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.apart import apart
from support.processes import Processes
from support.telegram_house import Guest, TelegramHouse, telegram_house


@pytest.fixture(scope="package")
def processes_of_the_house() -> Iterator[Processes]:
    registry = Processes()
    yield registry
    registry.end_all()


@pytest.fixture(scope="package")
async def house(
    tmp_path_factory: pytest.TempPathFactory, processes_of_the_house: Processes
) -> AsyncIterator[TelegramHouse]:
    """The house of all tests. It ends with them: its fast clock takes the processor's time."""
    folder = tmp_path_factory.mktemp("telegram")
    async with apart(telegram_house(folder, processes_of_the_house)) as made:
        yield made


@pytest.fixture(scope="package")
async def house_without_front(
    tmp_path_factory: pytest.TempPathFactory, processes_of_the_house: Processes
) -> AsyncIterator[TelegramHouse]:
    """The house of all tests that start and end the front themselves."""
    folder = tmp_path_factory.mktemp("bare")
    async with apart(telegram_house(folder, processes_of_the_house, front=False)) as made:
        yield made


@pytest.fixture
def bare_house(house_without_front: TelegramHouse, tmp_path: Path) -> TelegramHouse:
    """It, with a front that has no state yet: a front reads all its sessions when it starts."""
    house_without_front.state = tmp_path / "telegram.db"
    return house_without_front


@pytest.fixture
async def ada(house: TelegramHouse) -> AsyncIterator[Guest]:
    """A person who is paired, with a project and a CLI that echoes."""
    guest = await house.person()
    health = house.running.health
    failures = health.failures
    yield guest
    await house.clear()
    assert health.failures == failures, f"a part of the front failed: {health.failed_part}"
