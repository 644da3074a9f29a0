"""A browser before the whole service, with the real CLI of the newest version.

The service, the browser and a page take seconds to start: the tests of this folder share them.
Each finds the page as a new one, a folder of its own to work in, and no session, grant or policy of
another. What counts over sessions that are gone, such as usage and the audit log, is of all of
them: a module that looks at it has a `house` of its own. A test that does to its page what cannot
be undone takes `lone_screen`.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser

from quarterdeck.testing import RealCli
from support.apart import apart
from support.api_client import ApiSeat
from support.browser import DESKTOP, ELSEWHERE, PHONE, Desk, Screen, browsing, chromium, serving
from support.processes import left_behind, offspring


@pytest.fixture(scope="package")
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


@pytest.fixture(scope="package")
async def browser(shared: set[int]) -> AsyncIterator[Browser]:
    """A browser for all tests of this folder."""
    before = offspring()
    started = chromium(f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1")
    async with apart(started) as opened:
        shared |= {process.pid for process in offspring() - before}
        yield opened


@pytest.fixture(scope="package")
async def house(
    clis: dict[str, RealCli], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ApiSeat]:
    """The whole service, for all tests of this folder."""
    async with apart(serving(clis, tmp_path_factory)) as made:
        yield made


@pytest.fixture
async def seat(house: ApiSeat, tmp_path: Path) -> AsyncIterator[ApiSeat]:
    """The service, with nothing in it."""
    yield house.at(tmp_path / "work")
    await house.clear()
    shutil.rmtree(
        house.home / ".claude" / "projects", ignore_errors=True
    )  # sessions to be taken in


@pytest.fixture(scope="package")
async def desk(browser: Browser) -> AsyncIterator[Desk]:
    """A page for all tests of this folder."""
    made = Desk(browser)
    yield made
    await made.close()


@pytest.fixture
async def screen(desk: Desk, seat: ApiSeat) -> AsyncIterator[Screen]:
    """A desktop's page, logged in as the owner."""
    async with desk.taken(seat.deck, DESKTOP) as opened:
        yield opened


@pytest.fixture
async def phone(desk: Desk, seat: ApiSeat) -> AsyncIterator[Screen]:
    """A phone's page, logged in as the owner."""
    async with desk.taken(seat.deck, PHONE) as opened:
        yield opened


@pytest.fixture
async def lone_screen(browser: Browser, seat: ApiSeat) -> AsyncIterator[Screen]:
    """A desktop's page that no other test sees, logged in as the owner."""
    async with browsing(browser, seat.deck) as opened:
        await opened.login()
        yield opened
