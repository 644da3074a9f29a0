"""Policy over HTTP: who may look, who may grant, and what a wrong body is told."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from quarterdeck.fronts.http import Role
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.hub.permissions.policy_texts import PolicyTexts
from quarterdeck.protocol.commands import AnswerAsk
from quarterdeck.protocol.events import Decided
from support.front import Front

pytestmark = pytest.mark.anyio

DENY = '[[rule]]\nname = "no push"\nverdict = "deny"\ncommand = "git push"\n'


@pytest.mark.process
async def test_a_viewer_may_look_and_try_and_changes_nothing(hub: Front) -> None:
    async with hub.client(Role.VIEWER) as client:
        view = (await client.get("/api/policy")).json()
        assert view["files"] == []
        assert "careful" in view["names"]
        checked = (await client.post("/api/policy/check", json={"text": DENY})).json()
        assert (checked["good"], checked["rules"]) == (True, 1)
        wrong = (await client.post("/api/policy/check", json={"text": "\nx = 1"})).json()
        assert wrong["flaws"][0]["line"] == 2
        question = {"tool": "Bash", "argument": "whoami && git push", "text": DENY}
        told = (await client.post("/api/policy/explain", json=question)).json()
        assert (told["verdict"], told["rule"]) == ("deny", "no push")
        assert [part["what"] for part in told["parts"]] == ["whoami", "git push"]
        preset = {"tool": "Bash", "argument": "make", "policy": "read-only"}
        assert (await client.post("/api/policy/explain", json=preset)).json()["verdict"] == "deny"
        trial = (await client.post("/api/policy/replay", json={"text": DENY})).json()
        assert trial["calls"] == 0
        assert (await client.get("/api/policy/suggestions")).json() == {"suggestions": []}
        refused = await client.post("/api/policy/grants", json={"rules": ["Bash(ls)"]})
        assert refused.status_code == 403
        assert (await client.delete("/api/policy/grants/x")).status_code == 403
        assert (await client.get("/api/policy/files/policy.toml")).status_code == 403
        change = {"text": DENY, "version": ""}
        changed = await client.put("/api/policy/files/policy.toml", json=change)
        assert changed.status_code == 403
    async with hub.client(None) as client:
        assert (await client.get("/api/policy")).status_code == 401


@pytest.mark.process
async def test_a_call_is_explained_as_a_session_would_have_it(hub: Front) -> None:
    session = await hub.deck.have_session(policy="read-only")
    async with hub.client(Role.VIEWER) as client:
        question = {"tool": "Edit", "argument": "/tmp/a", "session": session}
        told = (await client.post("/api/policy/explain", json=question)).json()
        assert (told["verdict"], told["rule"]) == ("deny", "no edits")
        question["session"] = "nobody"
        assert (await client.post("/api/policy/explain", json=question)).status_code == 400


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("explain", {"tool": "Strange", "argument": "x"}),
        ("explain", {"tool": "Bash", "argument": "{"}),
        ("explain", {"tool": "Bash", "argument": "ls", "text": "x = 1"}),
        ("explain", {"tool": "Bash", "argumnet": "ls"}),
        ("explain", {"tool": ""}),
        ("replay", {"text": "x = 1"}),
        ("grants", {"rules": []}),
        ("grants", {"rules": ["Bash("]}),
        ("grants", {"rules": ["Bash(ls)"], "seconds": -1}),
        ("grants", {"rules": ["Bash(ls)"], "directory": "here"}),
    ],
)
@pytest.mark.process
async def test_what_cannot_be_right_is_refused(hub: Front, path: str, body: object) -> None:
    async with hub.client() as client:
        answer = await client.post(f"/api/policy/{path}", json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["code"] == "bad_request"


async def test_an_owner_grants_for_a_time_and_revokes(hub: Front) -> None:
    async with hub.client() as client:
        new = {"rules": ["Bash(npm test:*)"], "seconds": 60, "directory": "/srv"}
        before = int(time.time() * 1000)
        made = (await client.post("/api/policy/grants", json=new)).json()
        assert made["by"] == "the owner"
        assert before + 60_000 <= made["until"] <= time.time() * 1000 + 60_001
        assert (await client.get("/api/policy/grants")).json()["grants"] == [made]
        gone = await client.delete(f"/api/policy/grants/{made['id']}")
        assert gone.json()["id"] == made["id"]
        assert (await client.delete(f"/api/policy/grants/{made['id']}")).status_code == 404
        log = (await client.get("/api/audit", params={"before": 0})).json()["events"]
    assert [(each["event"]["by"], each["event"]["about"]) for each in log] == [
        ("the owner", "grant")
    ] * 2
    granted = {"code": "grant_made", "name": "the owner", "names": ["Bash(npm test:*)"]}
    assert log[1]["event"]["coded"] == {**granted, "path": "/srv"}
    assert log[0]["event"]["coded"]["code"] == "grant_revoked"


@pytest.mark.process
async def test_an_owner_replaces_a_policy_and_who_has_an_old_one_is_told(
    hub: Front, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = hub.deck.policy
    monkeypatch.setattr(service, "texts", PolicyTexts(Policies(tmp_path)))
    path = "/api/policy/files/policy.toml"
    async with hub.client() as client:
        read = (await client.get(path)).json()
        assert (read["text"], read["version"]) == ("", "")
        made = await client.put(path, json={"text": DENY, "version": ""})
        assert made.status_code == 200, made.text
        assert (tmp_path / "policy.toml").read_text() == DENY
        stale = await client.put(path, json={"text": "", "version": ""})
        assert (stale.status_code, stale.json()["code"]) == (409, "policy_changed")
        wrong = await client.put(path, json={"text": "x = 1", "version": made.json()["version"]})
        assert wrong.status_code == 400
        assert "line 1" in wrong.json()["detail"]
        (entry,) = (await client.get("/api/audit", params={"before": 0})).json()["events"]
    assert (entry["event"]["by"], entry["event"]["about"]) == ("the owner", "policy")
    assert made.json()["version"][:12] == entry["event"]["coded"]["commit"]
    assert (tmp_path / "policy.toml").read_text() == DENY


async def test_the_audit_log_is_verified(hub: Front) -> None:
    session = await hub.deck.have_session()
    entry = Decided(tool="Bash", title="ls", verdict="allow", by="policy", rule="r", source="p:1")
    await hub.deck.journal.append(session, [entry])
    async with hub.client(Role.VIEWER) as client:
        result = (await client.get("/api/audit/verify")).json()
        assert (result["entries"], result["flaws"]) == (1, [])
        head = f"{result['head']['position']}:{result['head']['seal']}"
        again = await client.get("/api/audit/verify", params={"head": head})
        assert again.json()["flaws"] == []
        odd = await client.get("/api/audit/verify", params={"head": "5"})
        assert odd.status_code == 400
        (listed,) = (await client.get("/api/audit")).json()["events"]
        assert (listed["event"]["rule"], listed["event"]["source"]) == ("r", "p:1")


async def test_the_role_of_whoever_answers_is_the_servers_knowledge(hub: Front) -> None:
    session = await hub.deck.have_session()
    ask = await hub.deck.ask(session)
    async with hub.stream(Role.OPERATOR) as talk:
        forged = {
            "command": "ask.answer",
            "ask": ask,
            "answer": {"answer": "allow"},
            "role": "owner",
        }
        await talk.say(t="command", id="1", command=forged)
        await talk.hear("done", "failed")
    command = hub.deck.submitted[-1]
    assert isinstance(command, AnswerAsk)
    assert (command.by, command.role) == ("the operator", "operator")
