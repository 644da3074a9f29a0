"""Another device's login, the hub as others reach it, and read-only links to one session."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from quarterdeck.fronts.http import Role
from quarterdeck.fronts.http import tokens as tokens_file
from quarterdeck.fronts.http.reach import FindingShape, HttpsShape, Reach
from support.front import Front, front

pytestmark = pytest.mark.anyio

REFUSED = {401, 429}
"""Wrong secrets are counted, and soon refused without a look."""


class Known:
    """A hub that others reach by a name."""

    async def reach(self) -> Reach:
        https = HttpsShape(way="proxy", certificate=None, problem="", tailscale=None, trust=False)
        return Reach(addresses=("https://deck.example",), https=https)

    async def findings(self) -> tuple[FindingShape, ...]:
        return (FindingShape(topic="claude", level="ok", text="2.1.325", advice=""),)


async def test_an_owner_logs_in_another_device_by_a_link_or_its_picture_once(
    tmp_path: Path,
) -> None:
    async with front(tmp_path, reaching=Known()) as hub:
        async with hub.client() as owner:
            made = (await owner.post("/api/logins")).json()
            [best, here] = made["links"]
            assert best["address"] == "https://deck.example"  # a phone cannot reach loopback
            assert here["address"] == hub.url
            assert best["code"].startswith("data:image/svg+xml")
            code = best["link"].partition("#")[2]
            async with hub.client(None) as phone:
                logged = await phone.post("/login", json={"code": code})
                assert logged.json()["role"] == "owner"
            async with hub.client(None) as phone:
                assert (await phone.post("/login", json={"code": code})).status_code == 401
            other = (await owner.post("/api/logins", json={"name": "bob", "role": "viewer"})).json()
            code = other["links"][0]["link"].partition("#")[2]
            async with hub.client(None) as phone:
                assert (await phone.post("/login", json={"code": code})).json()["role"] == "viewer"
            about = (await owner.get("/api/hub")).json()
            assert about["reach"]["https"]["way"] == "proxy"
            found = (await owner.get("/api/hub/findings")).json()["findings"]
            assert found[0]["topic"] == "claude"
        async with hub.client(Role.OPERATOR) as ops:
            assert (await ops.post("/api/logins")).status_code == 403
            assert (await ops.get("/api/hub/findings")).status_code == 403
            assert (await ops.get("/api/hub")).json()["version"]


async def test_a_link_shows_one_session_and_opens_nothing_else(
    hub: Front, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    session = await hub.deck.have_session("shown")
    other = await hub.deck.have_session("hidden")
    await hub.deck.say(session, "the answer")
    await hub.deck.say(other, "a secret")
    async with hub.client() as owner:
        made = (await owner.post(f"/api/sessions/{session}/share", json={"name": "for Bob"})).json()
        secret = made["path"].removeprefix("/share#")
        bearer = {"authorization": f"Bearer {secret}"}
        assert secret not in (await owner.get("/api/shares")).text
        assert secret not in (await owner.get("/api/tokens")).text
        async with hub.client(None) as guest:
            shown = (await guest.get("/shared/session", headers=bearer)).json()
            assert shown["name"] == "shown"
            assert "directory" not in str(shown)
            for path in ("/shared/events", f"/shared/events?session={other}"):
                events = await guest.get(path, headers=bearer)
                assert "the answer" in events.text
                assert "127.0.0.1" not in events.text  # who opened it is not told
                assert "a secret" not in events.text
            for path in (
                "/api/whoami",
                "/api/sessions",
                f"/api/sessions/{session}",
                f"/api/sessions/{session}/events",
                "/api/stream",
                "/metrics",
            ):
                assert (await guest.get(path, headers=bearer)).status_code in REFUSED, path
            cookie = {"cookie": f"{hub.access.cookie}={secret}", "x-quarterdeck-page-key": secret}
            assert (await guest.get("/api/whoami", headers=cookie)).status_code in REFUSED
            prompt = await guest.post(
                f"/api/sessions/{session}/prompts", headers=bearer, json={"content": "hi"}
            )
            assert prompt.status_code in REFUSED
            assert (await guest.get("/shared/session")).status_code in REFUSED
            token = hub.access.make_token("ada", Role.OWNER)  # another kind of secret
            wrong = {"authorization": f"Bearer {token}"}
            assert (await guest.get("/shared/session", headers=wrong)).status_code in REFUSED

            [share] = (await owner.get("/api/shares")).json()["shares"]
            left = await owner.delete(f"/api/shares/{share['id']}")
            assert left.json()["shares"] == []
            assert (await guest.get("/shared/session", headers=bearer)).status_code in REFUSED
        assert (await owner.delete(f"/api/shares/{share['id']}")).status_code == 404
        log = (await owner.get(f"/api/audit?session={session}")).json()["events"]
    made, opened, revoked = [each["event"]["coded"] for each in log]
    assert made["code"] == "share_made"
    assert (made["other"], made["seconds"]) == ("for Bob", 24 * 3600)
    assert (opened["code"], opened["detail"]) == ("share_opened", "127.0.0.1")
    assert revoked["code"] == "share_revoked"
    assert secret not in caplog.text


async def test_links_expire_are_for_owners_only_and_have_a_limit(
    hub: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await hub.deck.have_session("shown")
    path = f"/api/sessions/{session}/share"
    async with hub.client() as owner:
        made = (await owner.post(path, json={"hours": 0.5})).json()
        secret = made["path"].removeprefix("/share#")
        bearer = {"authorization": f"Bearer {secret}"}
        clock = hub.access._tokens._clock
        monkeypatch.setattr(hub.access._tokens, "_clock", lambda: clock() + 1801)
        assert (await owner.get("/shared/session", headers=bearer)).status_code == 401
        monkeypatch.undo()
        for wrong in ({"hours": 0}, {"hours": 721}, {"name": "a\nb"}, {"session": "x"}):
            assert (await owner.post(path, json=wrong)).status_code == 400
        assert (await owner.post("/api/sessions/nothing/share")).status_code == 404
        monkeypatch.setattr(tokens_file, "SHARES_KEPT", 1)
        full = await owner.post(path)
        assert (full.status_code, full.json()["code"]) == (409, "too_many_shares")
        token = next(
            grant["id"]
            for grant in (await owner.get("/api/tokens")).json()["tokens"]
            if grant["kind"] == "token"
        )
        assert (await owner.delete(f"/api/shares/{token}")).status_code == 404
    for role in (Role.OPERATOR, Role.VIEWER):
        async with hub.client(role) as client:
            assert (await client.post(path)).status_code == 403
            assert (await client.get("/api/shares")).status_code == 403
            assert (await client.delete("/api/shares/x")).status_code == 403


async def test_a_deleted_session_is_not_shown(hub: Front) -> None:
    session = await hub.deck.have_session("gone")
    async with hub.client() as owner:
        made = (await owner.post(f"/api/sessions/{session}/share")).json()
        bearer = {"authorization": f"Bearer {made['path'].removeprefix('/share#')}"}
        await hub.deck.journal.delete(session, by="test")
        assert (await owner.get("/shared/session", headers=bearer)).status_code == 404
        assert (await owner.delete(f"/api/shares/{made['share']['id']}")).status_code == 200
