"""Search, export, import and retention over HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import Raw

from quarterdeck.fronts.http import Role
from quarterdeck.protocol.commands import SendPrompt, StopSession
from quarterdeck.protocol.events import Noted
from support.front import Front
from support.left_sessions import left_session
from support.session_files import Disk


async def say(hub: Front, session: str, text: str) -> None:
    content = Raw(json.dumps(text).encode())
    await hub.deck.submit(SendPrompt(session=session, prompt=text, content=content, by="test"))
    await hub.past.caught_up()


async def test_what_was_said_is_found_with_its_place(hub: Front) -> None:
    session = await hub.deck.have_session("deck one", machine="far", project="alpha")
    await say(hub, session, "repair the <b>needle</b> now")
    async with hub.client(Role.VIEWER) as client:
        answer = await client.get("/api/search", params={"q": "needle", "project": "alpha"})
        assert answer.status_code == 200
        found = answer.json()
        assert (found["next"], found["behind"]) == (None, 0)
        (hit,) = found["hits"]
        assert (hit["session"], hit["seq"], hit["kind"]) == (session, 4, "prompt")
        assert (hit["name"], hit["project"]) == ("deck one", "alpha")
        first, last = hit["snippet"]["ranges"][0]
        assert hit["snippet"]["text"][first:last] == "needle"
        none = await client.get("/api/search", params={"q": "needle", "kind": "answer"})
        assert none.json()["hits"] == []


@pytest.mark.parametrize(
    "query",
    [{}, {"q": ""}, {"q": "&&"}, {"q": "x", "kind": "odd"}, {"q": "x", "limit": 0}],
)
async def test_a_query_that_asks_for_nothing_is_a_bad_request(
    hub: Front, query: dict[str, str | int]
) -> None:
    async with hub.client() as client:
        answer = await client.get("/api/search", params=query)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


async def test_a_deleted_session_is_not_found_any_more(hub: Front) -> None:
    session = await hub.deck.have_session()
    await say(hub, session, "needle")
    await hub.deck.journal.delete(session, by="test")
    await hub.past.caught_up()
    async with hub.client() as client:
        assert (await client.get("/api/search", params={"q": "needle"})).json()["hits"] == []


async def test_pages_of_hits_follow_each_other(hub: Front) -> None:
    session = await hub.deck.have_session()
    for number in range(5):
        await say(hub, session, f"needle {number}")
    seen: list[int] = []
    query: dict[str, str | int] = {"q": "needle", "limit": 2}
    async with hub.client() as client:
        while True:
            page = (await client.get("/api/search", params=query)).json()
            seen += [hit["seq"] for hit in page["hits"]]
            if page["next"] is None:
                break
            query["before"] = page["next"]
    assert seen == [8, 7, 6, 5, 4]


async def test_a_session_is_exported_as_a_file_of_each_kind(hub: Front) -> None:
    session = await hub.deck.have_session('My "deck"/../x', env={"KEY": "s3cret"})
    await say(hub, session, "hello <there>")
    at = f"/api/sessions/{session}/export"
    async with hub.client(Role.VIEWER) as client:
        markdown = await client.get(at)
        assert markdown.headers["content-type"].startswith("text/markdown")
        assert "> hello <there>" in markdown.text
        html = await client.get(at, params={"format": "html"})
        assert html.headers["content-type"].startswith("text/html")
        assert "hello &lt;there&gt;" in html.text
        assert html.headers["content-disposition"] == 'attachment; filename="My-deck-..-x.html"'
        assert html.headers["content-security-policy"] == "sandbox"
        events = await client.get(at, params={"format": "json"})
        lines = [json.loads(line) for line in events.text.splitlines()]
        page = (await client.get(f"/api/sessions/{session}/events")).json()
        assert lines == page["events"]
        for answer in (markdown, html, events):
            assert "s3cret" not in answer.text
        assert (await client.get(at, params={"format": "pdf"})).status_code == 400
        assert (await client.get("/api/sessions/none/export")).status_code == 404
        missing = await client.get("/api/sessions/none/export", params={"format": "json"})
        assert missing.status_code == 404


async def test_sessions_on_disk_are_imported_by_an_owner(hub: Front, tmp_path: Path) -> None:
    async with hub.client() as client:
        nothing = (await client.post("/api/import")).json()
        assert (nothing["sessions"], nothing["dry_run"]) == ([], False)
        assert nothing["folder"] == str(tmp_path / "data" / "claude" / "projects")
    disk = Disk(tmp_path)
    left_session(disk, 3)
    disk.config.rename(tmp_path / "data" / "claude")
    async with hub.client(Role.OPERATOR) as client:
        assert (await client.post("/api/import")).status_code == 403
    async with hub.client() as client:
        dry = await client.post("/api/import", json={"dry_run": True})
        assert [each["session"] for each in dry.json()["sessions"]] == [None]
        (told,) = (await client.post("/api/import")).json()["sessions"]
        assert told["outcome"] == "new"
        session = (await client.get(f"/api/sessions/{told['session']}")).json()
        assert session["cli_session"] == told["cli_session"]
        await hub.past.caught_up()
        query: dict[str, str | int] = {"q": "pytest", "tool": "Bash"}
        hits = (await client.get("/api/search", params=query)).json()["hits"]
        assert {hit["session"] for hit in hits} == {told["session"]}
        # It was said long before it was imported.
        query |= {"since": 1_772_000_000_000, "until": 1_776_000_000_000}
        assert len((await client.get("/api/search", params=query)).json()["hits"]) == len(hits)
        wrong = await client.post("/api/import", json={"sessions": ["../x"]})
        assert wrong.json()["code"] == "bad_request"


async def test_what_is_too_much_is_told_first_and_deleted_only_when_asked(hub: Front) -> None:
    ended = await hub.deck.have_session("ended")
    await hub.deck.submit(StopSession(session=ended, by="test"))
    running = await hub.deck.have_session("running")
    await hub.deck.journal.append(running, [Noted(level="info", text="x" * 2_000_000)])
    limit = {"megabytes": 1}
    async with hub.client(Role.OPERATOR) as client:
        assert (await client.post("/api/retention", json=limit)).status_code == 403
    async with hub.client() as client:
        kept = (await client.post("/api/retention")).json()
        assert (kept["dry_run"], kept["leaving"], kept["sessions"]) == (True, [], 2)
        told = (await client.post("/api/retention", json=limit)).json()
        assert [each["session"] for each in told["leaving"]] == [ended]
        assert (await client.get(f"/api/sessions/{ended}")).status_code == 200
        done = (await client.post("/api/retention", json={**limit, "dry_run": False})).json()
        assert (done["dry_run"], [each["name"] for each in done["leaving"]]) == (False, ["ended"])
        assert (await client.get(f"/api/sessions/{ended}")).status_code == 404
        assert (await client.get(f"/api/sessions/{running}")).status_code == 200
        nothing = await client.post("/api/retention", json={"dry_run": False})
        assert nothing.json()["code"] == "bad_request"
