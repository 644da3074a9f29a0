"""A relay with a small hub behind it, on a free port of loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quarterdeck.fronts.http import Access, Listen, Role, make_app, serve
from quarterdeck.fronts.http.relay_access import RelayAccess, RelayRules, caller_of
from quarterdeck.fronts.relay.connection import Pace
from quarterdeck.fronts.relay.endpoint import RelayEndpoint
from support.bounds import TEST_SECONDS
from support.relay_front import ALLOWED, Relay
from support.small_deck import SmallDeck


@pytest.fixture
async def relay(tmp_path: Path) -> AsyncIterator[Relay]:
    """A relay that lets one origin in without a token, to read only."""
    deck = SmallDeck()
    access = Access(tmp_path)
    endpoint = RelayEndpoint(deck, caller_of, pace=Pace(send_seconds=TEST_SECONDS))
    rules = RelayRules.of(enabled=True, origins=(ALLOWED,), role=Role.VIEWER)
    who = RelayAccess(access, endpoint, rules)
    app = make_app(deck, access, relay=who)
    try:
        async with serve(app, Listen(port=0)) as url:
            yield Relay(deck, access, who, endpoint, "ws" + url.removeprefix("http"))
    finally:
        await deck.workers.close()
