"""Several hubs as processes, as docs/how-to/run-several-hubs.md has them started."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.cli.exits import Exit
from quarterdeck.service.service import JOURNAL_MOVED
from quarterdeck.testing.postgres import PostgresServer
from support.forks import Forks
from support.postgres import replace_database
from support.processes import Processes
from support.served_deck import ServedDeck
from support.several_hubs import COMMAND, several_hubs

pytestmark = [pytest.mark.anyio, pytest.mark.process]


async def test_the_commands_of_the_page_bring_two_hubs_and_a_runner_that_outlives_one(
    tmp_path: Path, postgres_url: str, hubs_to_fork: Forks, processes: Processes
) -> None:
    async with several_hubs(tmp_path, postgres_url, hubs_to_fork, processes) as hubs:
        first, second = hubs.first, hubs.second
        for hub in (first, second):
            assert "machine  box, 0 agents" in (await hub("status")).out
        session = await hubs.create()
        before = await first.until(session, lambda shape: bool(shape.asks))
        await hubs.kill_first()
        # The agent and its question are still there, at the other hub.
        assert session[:8] in (await second("ps")).out
        assert COMMAND in (await second("asks")).out
        await second("answer", session, "allow")
        after = await second.until(session, lambda shape: shape.turns == 1)
        assert (after.run, after.pid) == (before.run, before.pid), "its process did not notice"
        assert "Done." in (await second("log", session)).out


async def test_a_hub_whose_database_is_replaced_ends_with_a_code_and_starts_again(
    deck: ServedDeck, postgres: PostgresServer
) -> None:
    url = postgres.create_database()
    deck.command.env["QUARTERDECK_JOURNAL_URL"] = url
    await deck.serve("--no-runner")
    replace_database(postgres, url)
    assert await deck.ends() == JOURNAL_MOVED == Exit.JOURNAL_MOVED
    assert "The hub has stopped." in deck.said
    await deck.serve("--no-runner")  # as a supervisor does
    assert deck.address in (await deck("status")).out
