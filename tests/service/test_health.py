"""The health check of a hub whose journal is in a database that goes away, or is replaced."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import anyio.to_thread
import httpx2
import psycopg
import pytest

from quarterdeck.config import Settings
from quarterdeck.config.settings import JournalSettings, ServerSettings
from quarterdeck.journal.postgres import journal
from quarterdeck.service.service import run_service, serve_options_of
from quarterdeck.testing.postgres import PostgresServer
from support.bounds import SECONDS
from support.postgres import replace_database

pytestmark = pytest.mark.anyio


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(SECONDS):
        while not await holds():  # noqa: ASYNC110 - the database makes it true
            await anyio.sleep(0.02)


async def test_a_hub_is_not_healthy_while_its_database_is_away_or_another_one(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.create_database()
    settings = Settings(server=ServerSettings(port=0), journal=JournalSettings(url=url))
    options = serve_options_of(settings, runner=False)
    async with (
        run_service(tmp_path / "hub", options) as service,
        httpx2.AsyncClient(base_url=service.address, timeout=SECONDS) as client,
    ):

        async def health() -> tuple[int, str]:
            answer = await client.get("/healthz")
            return answer.status_code, answer.json().get("detail", "")

        async def is_away() -> bool:
            return await health() == (503, "away")

        async def is_healthy() -> bool:
            return (await health())[0] == 200

        async def is_moved() -> bool:
            return await health() == (503, "moved")

        assert await is_healthy()
        assert service.trouble() is None
        postgres.kill()
        try:
            await until(is_away)
        finally:
            postgres.start()
        await until(is_healthy)
        # Its connections are open, and nothing comes over them.
        monkeypatch.setattr(journal, "SILENT_SECONDS", 0.5)
        pids = await anyio.to_thread.run_sync(connections_of, url)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            await until(is_away)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        monkeypatch.undo()
        await until(is_healthy)
        replace_database(postgres, url)
        await until(is_moved)
        trouble = service.trouble()
        assert trouble is not None
        assert trouble.code == "moved"
        # The way to the database is in the log, and nothing of it in the open answer.
        told = (await client.get("/healthz")).text
        assert str(postgres.folder) not in told


def connections_of(url: str) -> list[int]:
    """The server's processes for a hub."""
    query = (
        "SELECT pid FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with psycopg.connect(url, autocommit=True) as connection:
        return [row[0] for row in connection.execute(query)]
