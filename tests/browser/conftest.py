"""A browser before the whole service, with the real CLI of the newest version."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quarterdeck.testing import RealCli, ScriptedModel
from support.api_client import ApiSeat, api_seat
from support.browser import PHONE, Screen, browsing
from support.clis import VERSIONS
from support.processes import Processes


@pytest.fixture
async def seat(
    clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    processes: Processes,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[ApiSeat]:
    """The whole service."""
    newest = clis[VERSIONS[-1]]
    async with api_seat(newest, "runner", model, tmp_path, processes, monkeypatch) as made:
        yield made


@pytest.fixture
async def screen(seat: ApiSeat) -> AsyncIterator[Screen]:
    """A desktop's browser, logged in as the owner."""
    async with browsing(seat.deck) as opened:
        await opened.login()
        yield opened


@pytest.fixture
async def phone(seat: ApiSeat) -> AsyncIterator[Screen]:
    """A phone's browser, logged in as the owner."""
    async with browsing(seat.deck, PHONE) as opened:
        await opened.login()
        yield opened
