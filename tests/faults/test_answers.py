"""Two people answer one question at once, through HTTP: exactly one wins, always."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import anyio
import httpx
import pytest
from msgspec import Raw

from quarterdeck.fronts.http import Access, Listen, Role, make_app, serve
from quarterdeck.journal import SqliteJournal
from quarterdeck.protocol.commands import CreateSession
from quarterdeck.protocol.events import AskAnswered, AskOpened
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.stored_events import Stored
from support import lines
from support.bounds import SECONDS
from support.hub_machines import hub_with

pytestmark = [pytest.mark.anyio, pytest.mark.heavy]

QUESTIONS, AT_ONCE = 1000, 25


@pytest.mark.no_cover
async def test_of_two_who_answer_at_once_exactly_one_wins_a_thousand_times(tmp_path: Path) -> None:
    access = Access(tmp_path)
    results: dict[str, list[int]] = {}
    async with await SqliteJournal.open(tmp_path / "journal.db") as journal:
        hub, machines = hub_with(journal)
        async with hub.run(), serve(make_app(hub, access), Listen(port=0)) as url:
            clients = [
                httpx.AsyncClient(
                    base_url=url,
                    headers={"authorization": f"Bearer {access.make_token(name, Role.OPERATOR)}"},
                    timeout=SECONDS,
                )
                for name in ("ada", "bob")
            ]
            await hub.submit(
                CreateSession(
                    spec=SessionSpec(directory="/work"),
                    session="mine",
                    prompt=Raw(b'"go"'),
                    by="ada",
                )
            )
            (run,) = machines.runs
            await run.greet()
            await run.take_prompt()

            async def answer(client: httpx.AsyncClient, ask: str, kind: str) -> None:
                reply = await client.post(
                    f"/api/asks/{ask}/answer", json={"answer": {"answer": kind}}
                )
                results.setdefault(ask, []).append(reply.status_code)

            for begin in range(0, QUESTIONS, AT_ONCE):
                await run.say(*(lines.asks_permission(f"q{begin + n}") for n in range(AT_ONCE)))
                for card in await hub.asks():
                    async with anyio.create_task_group() as tasks:
                        for client, kind in zip(clients, ("allow", "deny"), strict=True):
                            tasks.start_soon(answer, client, card.opened.ask, kind)
            for client in clients:
                await client.aclose()
        written = Counter(
            line["response"]["request_id"]
            for line in run.read()
            if line["type"] == "control_response"
        )
        events: list[Stored] = []
        while page := await journal.read("mine", after=len(events)):
            events += page
    assert len(results) == QUESTIONS
    assert {tuple(sorted(codes)) for codes in results.values()} == {(200, 409)}
    assert set(written.values()) == {1}
    assert len(written) == QUESTIONS
    kinds = Counter(type(stored.event) for stored in events)
    assert kinds[AskOpened] == kinds[AskAnswered] == QUESTIONS
