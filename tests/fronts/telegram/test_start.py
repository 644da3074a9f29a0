"""What is known of a front that has just been started."""

from __future__ import annotations

import pytest

from quarterdeck.fronts.telegram.api import POLL_SECONDS
from support.telegram_house import TelegramHouse

pytestmark = [pytest.mark.anyio, pytest.mark.process]


async def test_whether_updates_come_is_known_at_once(house: TelegramHouse) -> None:
    # Telegram keeps a call open for nearly a minute if there is nothing. The first one asks
    # Telegram to answer at once, so that `doctor` can tell whether it works.
    health = house.running.health
    await house.telegram.wait_for(lambda: health.polled > 0)
    first, second = (await house.telegram.wait_for(lambda: polls(house)))[:2]
    assert (first, second) == (0, POLL_SECONDS)


def polls(house: TelegramHouse) -> list[int] | None:
    """How long the calls for updates ask Telegram to wait; None while there are not two yet."""
    calls = [call.params["timeout"] for call in house.telegram.calls_of("getUpdates")]
    return calls if len(calls) >= 2 else None
