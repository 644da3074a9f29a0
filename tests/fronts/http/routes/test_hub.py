from __future__ import annotations

import pytest
from msgspec.structs import replace

from quarterdeck.fronts.http import Role
from quarterdeck.protocol import events as ev
from support.front import Front


async def test_health_needs_no_token(hub: Front) -> None:
    async with hub.client(None) as client:
        answer = await client.get("/healthz")
    assert answer.json()["ok"] is True


async def test_everybody_is_told_who_they_are(hub: Front) -> None:
    async with hub.client(Role.OPERATOR) as client:
        me = (await client.get("/api/whoami")).json()
    assert me == {
        "name": "the operator",
        "role": "operator",
        "rights": ["read", "steer"],
        "expires": None,
    }


async def test_a_question_is_listed_and_answered_once(hub: Front) -> None:
    session = await hub.deck.have_session()
    ask = await hub.deck.ask(session)
    await hub.deck.ask(await hub.deck.have_session("other"))
    body = {"answer": {"answer": "allow", "input": {"command": "ls"}}}
    async with hub.client(Role.OPERATOR) as client:
        listed = (await client.get("/api/asks", params={"session": session})).json()["asks"]
        assert [card["opened"]["ask"] for card in listed] == [ask]
        assert len((await client.get("/api/asks")).json()["asks"]) == 2
        first = await client.post(f"/api/asks/{ask}/answer", json=body)
        second = await client.post(f"/api/asks/{ask}/answer", json=body)
        unknown = await client.post("/api/asks/nope/answer", json=body)
    assert first.json() == {"session": session, "ask": ask}
    assert (second.status_code, second.json()["code"]) == (409, "already_answered")
    assert unknown.status_code == 404


@pytest.mark.parametrize(
    "answer",
    [
        {"answer": "allow", "inputs": {}},
        {"answer": "plan", "choice": "perhaps"},
        {"answer": "maybe"},
        {"scope": "once"},
    ],
)
async def test_an_answer_that_is_misspelt_allows_nothing(
    hub: Front, answer: dict[str, object]
) -> None:
    ask = await hub.deck.ask(await hub.deck.have_session())
    async with hub.client() as client:
        refused = await client.post(f"/api/asks/{ask}/answer", json={"answer": answer})
    assert refused.status_code == 400
    assert refused.json()["detail"].startswith("body: answer")
    assert len(await hub.deck.asks()) == 1


async def test_the_audit_log_tells_who_allowed_what(hub: Front) -> None:
    session = await hub.deck.have_session()
    ask = await hub.deck.ask(session)
    async with hub.client(Role.OPERATOR) as client:
        await client.post(f"/api/asks/{ask}/answer", json={"answer": {"answer": "deny"}})
    async with hub.client(Role.VIEWER) as client:
        page = (await client.get("/api/audit")).json()
        rest = (await client.get("/api/audit", params={"after": page["next"]})).json()
        last = (await client.get("/api/audit", params={"before": 0})).json()
        older = (await client.get("/api/audit", params={"before": last["next"]})).json()
        wrong = await client.get("/api/audit", params={"before": -1})
    assert last["events"] == page["events"]
    assert (older["events"], older["next"]) == ([], None)
    assert wrong.status_code == 400
    (entry,) = page["events"]
    assert (entry["session"], entry["event"]["by"]) == (session, "the operator")
    assert rest == {"epoch": hub.deck.epoch, "events": [], "next": None}


async def test_the_audit_log_has_pages_of_one_kind(hub: Front) -> None:
    session = await hub.deck.have_session()
    decided = ev.Decided(tool="Bash", title="ls", verdict="allow", by="policy")
    denied = replace(decided, title="rm", verdict="deny")
    await hub.deck.journal.append(session, [denied, decided, decided, denied])
    async with hub.client(Role.VIEWER) as client:

        async def page(**query: str | int) -> tuple[list[int], int | None]:
            answer = (await client.get("/api/audit", params=query)).json()
            return [each["seq"] for each in answer["events"]], answer["next"]

        (newest, oldest), end = await page(kind="denied")
        assert end is None
        assert newest - oldest == 3
        (first,), after = await page(kind="denied", limit=1, before=0)
        assert (first, await page(kind="denied", before=after or 0)) == (newest, ([oldest], None))
        assert await page(kind="denied", session="another") == ([], None)
        wrong = await client.get("/api/audit", params={"kind": "everything"})
    assert wrong.status_code == 400


async def test_machines_are_listed(hub: Front) -> None:
    async with hub.client(Role.VIEWER) as client:
        listed = (await client.get("/api/machines")).json()
    assert listed == {"machines": [{"name": "here", "connected": True}], "alarms": []}
