"""A browser before the whole service, with the real CLI of the newest version.

The service and the browser take seconds to start: the tests of a module share them. Each has a page
that knows nothing of the others, a folder of its own to work in, and finds no session, grant or
policy of another. What counts over sessions that are gone, such as usage and the audit log, and
what is in the home folder, is the module's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser

from quarterdeck.testing import RealCli, ScriptedModel
from support.api_client import ApiSeat, api_seat
from support.browser import PHONE, Screen, browsing, chromium
from support.clis import VERSIONS
from support.processes import Processes, left_behind, offspring


@pytest.fixture(scope="module")
def shared() -> set[int]:
    """The processes that outlive a test: a browser starts and ends others as it likes."""
    return set()


@pytest.fixture(autouse=True)
def no_process_is_left_behind(shared: set[int]) -> Iterator[None]:
    """Fail a test that leaves a process running, and end that process."""
    before = offspring(shared)
    yield
    if left := left_behind(before, without=shared):
        pytest.fail(f"the test left processes running, which were killed: {left}")


@pytest.fixture(scope="module")
async def browser(shared: set[int]) -> AsyncIterator[Browser]:
    """A browser for all tests of a module."""
    before = offspring()
    async with chromium() as opened:
        shared |= {process.pid for process in offspring() - before}
        yield opened


@pytest.fixture(scope="module")
async def house(
    clis: dict[str, RealCli], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ApiSeat]:
    """The whole service, for all tests of a module."""
    newest = clis[VERSIONS[-1]]
    folder = tmp_path_factory.mktemp("house")
    processes = Processes()
    try:
        with pytest.MonkeyPatch.context() as environment:
            async with (
                ScriptedModel() as model,
                api_seat(newest, "runner", model, folder, processes, environment) as made,
            ):
                yield made
    finally:
        processes.end_all()


@pytest.fixture
async def seat(house: ApiSeat, tmp_path: Path) -> AsyncIterator[ApiSeat]:
    """The service, with nothing in it."""
    yield house.at(tmp_path / "work")
    await house.clear()


@pytest.fixture
async def screen(browser: Browser, seat: ApiSeat) -> AsyncIterator[Screen]:
    """A desktop's browser, logged in as the owner."""
    async with browsing(browser, seat.deck) as opened:
        await opened.login()
        yield opened


@pytest.fixture
async def phone(browser: Browser, seat: ApiSeat) -> AsyncIterator[Screen]:
    """A phone's browser, logged in as the owner."""
    async with browsing(browser, seat.deck, PHONE) as opened:
        await opened.login()
        yield opened
