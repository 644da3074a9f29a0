"""Several hubs as processes, as docs/how-to/run-several-hubs.md has them started."""

from __future__ import annotations

import pytest

from quarterdeck.service.service import JOURNAL_MOVED
from quarterdeck.testing.postgres import PostgresServer
from support.postgres import replace_database
from support.served_deck import ServedDeck

pytestmark = [pytest.mark.anyio, pytest.mark.process]


async def test_a_hub_whose_database_is_replaced_ends_with_a_code_and_starts_again(
    deck: ServedDeck, postgres: PostgresServer
) -> None:
    url = postgres.create_database()
    deck.command.env["QUARTERDECK_JOURNAL_URL"] = url
    await deck.serve("--no-runner")
    replace_database(postgres, url)
    assert await deck.ends() == JOURNAL_MOVED
    assert "The hub has stopped." in deck.said
    await deck.serve("--no-runner")  # as a supervisor does
    assert deck.address in (await deck("status")).out
