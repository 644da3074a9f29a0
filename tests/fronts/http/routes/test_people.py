"""What the hub keeps for people: who may read and change what, conflicts of devices, limits."""

from __future__ import annotations

import time

import httpx
import pytest

from quarterdeck.fronts.http import Role
from quarterdeck.fronts.http import people as store
from quarterdeck.protocol.people import PreferenceKind
from support.front import Front, Json

pytestmark = pytest.mark.anyio

NOW = int(time.time() * 1000)


async def change(client: httpx.AsyncClient, *changes: Json, after: int = 0) -> Json:
    answer = await client.patch(f"/api/preferences?after={after}", json={"changes": changes})
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


def draft(value: str, base: int = 0, key: str = "s1") -> Json:
    return {"kind": "draft", "key": key, "value": value, "at": NOW, "base": base}


async def values(client: httpx.AsyncClient) -> dict[tuple[str, str], object]:
    found = (await client.get("/api/preferences")).json()["preferences"]
    return {(each["kind"], each["key"]): each["value"] for each in found}


async def test_the_newest_pin_wins_and_the_greatest_read_mark_and_a_clock_ahead_wins_once(
    hub: Front,
) -> None:
    async with hub.client() as ada:
        await change(
            ada,
            {"kind": "pin", "key": "s1", "value": True, "at": NOW - 1000},
            {"kind": "read", "key": "s1", "value": 7, "at": NOW},
            {"kind": "pin", "key": "s2", "value": True, "at": NOW + 10**9},
        )
        await change(
            ada,
            {"kind": "pin", "key": "s1", "value": False, "at": NOW - 2000},
            {"kind": "read", "key": "s1", "value": 5, "at": NOW + 5},
        )
        assert await values(ada) == {
            ("pin", "s1"): True,
            ("read", "s1"): 7,
            ("pin", "s2"): True,
        }
        later = int(time.time() * 1000) + 60_000  # the hub takes it for now
        page = await change(ada, {"kind": "pin", "key": "s1", "value": False, "at": later})
        assert (await values(ada))["pin", "s1"] is False
        nothing = (await ada.get(f"/api/preferences?after={page['version']}")).json()
        assert nothing == {"preferences": [], "version": page["version"]}


async def test_drafts_of_two_devices_are_joined_and_a_sent_one_takes_no_other_along(
    hub: Front,
) -> None:
    async with hub.client() as desk:
        first = await change(desk, draft("from the desk"))
        await change(desk, draft("from the phone"))  # which knew of no draft
        assert (await values(desk))["draft", "s1"] == "from the desk\n\nfrom the phone"
        await change(desk, draft("", base=first["version"]))  # the desk sent what it knew
        joined = (await values(desk))["draft", "s1"]
        assert joined == "from the desk\n\nfrom the phone"
        version = (await desk.get("/api/preferences")).json()["version"]
        await change(desk, draft("", base=version))
        assert (await values(desk))["draft", "s1"] == ""
        await change(desk, draft("again", base=1))
        assert (await values(desk))["draft", "s1"] == "again"
        await change(desk, draft("again and more", base=1))
        await change(desk, draft("again", base=1))
        assert (await values(desk))["draft", "s1"] == "again and more"


async def test_a_person_is_a_name_and_a_role_and_nobody_reads_the_drafts_of_another(
    hub: Front,
) -> None:
    async with hub.client(Role.OWNER) as ada, hub.client(Role.VIEWER) as bob:
        await change(ada, draft("a secret plan"))
        await change(bob, {"kind": "pin", "key": "s9", "value": True, "at": NOW})
        assert list(await values(bob)) == [("pin", "s9")]
        token = hub.access.make_token("the owner", Role.VIEWER)  # the owner's name
        headers = {"authorization": f"Bearer {token}"}
        assert (await ada.get("/api/preferences", headers=headers)).json()["preferences"] == []
    async with hub.client(None) as nobody:
        assert (await nobody.get("/api/preferences")).status_code == 401


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "pin", "key": "s1", "value": "yes", "at": NOW},
        {"kind": "read", "key": "s1", "value": True, "at": NOW},
        {"kind": "read", "key": "s1", "value": -1, "at": NOW},
        {"kind": "draft", "key": "s1", "value": 3, "at": NOW},
        {"kind": "draft", "key": "s1", "value": "x" * 100_001, "at": NOW},
        {"kind": "setting", "key": "theme", "value": "x" * 1001, "at": NOW},
        {"kind": "sound", "key": "s1", "value": True, "at": NOW},
        {"kind": "pin", "key": "a b", "value": True, "at": NOW},
        {"kind": "pin", "key": "s1", "value": True, "at": -1},
        {"kind": "pin", "key": "s1", "value": True, "at": NOW, "person": "ada"},
    ],
)
async def test_a_preference_that_is_none_is_refused_and_nothing_of_its_request_is_kept(
    hub: Front, wrong: Json
) -> None:
    async with hub.client() as ada:
        right = {"kind": "pin", "key": "s0", "value": True, "at": NOW}
        answer = await ada.patch("/api/preferences", json={"changes": [right, wrong]})
        assert answer.status_code == 400
        assert await values(ada) == {}


async def test_limits_forget_old_marks_and_refuse_further_drafts(
    hub: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = PreferenceKind
    monkeypatch.setattr(store, "MOST_KEPT", {kinds.PIN: 2, kinds.READ: 2})
    monkeypatch.setattr(store, "MOST_ALLOWED", {kinds.DRAFT: 2, kinds.SETTING: 1})
    async with hub.client() as ada:
        for at in range(4):
            await change(ada, {"kind": "read", "key": f"s{at}", "value": 1, "at": NOW + at - 10})
        assert {key for _, key in await values(ada)} == {"s2", "s3"}
        await change(ada, draft("one", key="a"), draft("two", key="b"))
        too_many = await ada.patch("/api/preferences", json={"changes": [draft("3", key="c")]})
        assert (too_many.status_code, too_many.json()["code"]) == (409, "too_many")
        version = (await ada.get("/api/preferences")).json()["version"]
        await change(ada, draft("", base=version, key="b"))
        await change(ada, draft("3", key="c"))
        monkeypatch.setattr(store, "MOST_DRAFT_CHARACTERS", 100)
        large = await ada.patch("/api/preferences", json={"changes": [draft("x" * 99, key="a")]})
        assert large.status_code == 409


# --- the library ---------------------------------------------------------------------------------


async def test_a_saved_prompt_is_private_until_it_is_shared_and_only_author_and_owner_change_it(
    hub: Front,
) -> None:
    async with (
        hub.client(Role.OWNER) as owner,
        hub.client(Role.OPERATOR) as ops,
        hub.client(Role.VIEWER) as viewer,
    ):
        new = {"name": "Review", "text": "Review the changes."}
        assert (await ops.put("/api/library/prompts/p1", json=new)).status_code == 200
        assert (await owner.get("/api/library")).json()["prompts"] == []
        # Nobody learns that the id is taken by a private prompt, and nobody takes it over.
        assert (await owner.put("/api/library/prompts/p1", json=new)).status_code == 404
        assert (await owner.delete("/api/library/prompts/p1")).status_code == 404
        [mine] = (await ops.get("/api/library")).json()["prompts"]
        assert (mine["by"], mine["may_change"], mine["shared"]) == ("the operator", True, False)

        shared = {**new, "shared": True, "version": mine["version"]}
        assert (await ops.put("/api/library/prompts/p1", json=shared)).status_code == 200
        assert (await ops.put("/api/library/prompts/p1", json=shared)).status_code == 200  # again
        [seen] = (await viewer.get("/api/library")).json()["prompts"]
        assert (seen["text"], seen["may_change"]) == ("Review the changes.", False)
        assert (await viewer.put("/api/library/prompts/p2", json=new)).status_code == 403
        assert (await viewer.delete("/api/library/prompts/p1")).status_code == 403

        stale = {**shared, "text": "Other."}
        assert (await owner.put("/api/library/prompts/p1", json=stale)).status_code == 409
        fresh = {**stale, "version": seen["version"]}
        assert (await owner.put("/api/library/prompts/p1", json=fresh)).status_code == 200
        [changed] = (await ops.get("/api/library")).json()["prompts"]
        assert (changed["text"], changed["by"]) == ("Other.", "the operator")
        assert (await owner.delete("/api/library/prompts/p1")).json()["prompts"] == []
        gone = {**fresh, "version": changed["version"]}
        assert (await ops.put("/api/library/prompts/p1", json=gone)).status_code == 409


async def test_templates_need_the_right_to_start_sessions_and_can_skip_no_permission(
    hub: Front,
) -> None:
    new = {
        "name": "Fix a bug",
        "prompt": "Fix it.",
        "spec": {"directory": "/work", "model": "opus", "mode": "plan", "worktree": "fix"},
    }
    async with hub.client(Role.OWNER) as owner, hub.client(Role.OPERATOR) as ops:
        made = await owner.put("/api/library/templates/t1", json=new)
        assert made.status_code == 200
        [template] = made.json()["templates"]
        assert template["spec"]["worktree"] == "fix"
        assert (await ops.put("/api/library/templates/t2", json=new)).status_code == 403
        assert (await ops.delete("/api/library/templates/t1")).status_code == 403
        for member, value in (
            ("mode", "bypassPermissions"),
            ("env", {"TOKEN": "x"}),
            ("skip_permissions", True),
            ("model", "a\nb"),
        ):
            hostile = {**new, "spec": {**new["spec"], member: value}}  # type: ignore[dict-item]
            answer = await owner.put("/api/library/templates/t3", json=hostile)
            assert answer.status_code == 400, member
        assert (await owner.delete("/api/library/templates/t1")).json()["templates"] == []


async def test_names_ids_and_numbers_of_entries_have_limits(
    hub: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MOST_ENTRIES", 1)
    async with hub.client() as ada:
        good = {"name": "one", "text": "x"}
        assert (await ada.put("/api/library/prompts/a", json=good)).status_code == 200
        more = await ada.put("/api/library/prompts/b", json=good)
        assert (more.status_code, more.json()["code"]) == (409, "too_many")
        for wrong in ({**good, "name": "a\nb"}, {**good, "text": ""}, {"name": "x"}):
            assert (await ada.put("/api/library/prompts/a", json=wrong)).status_code == 400
        assert (await ada.put("/api/library/prompts/..%2Fa", json=good)).status_code in {400, 404}
        long = {**good, "text": "x" * 100_001}
        assert (await ada.put("/api/library/prompts/a", json=long)).status_code == 400


async def test_other_devices_of_the_person_are_told_at_once_and_those_of_others_are_not(
    hub: Front,
) -> None:
    dark = {"kind": "setting", "key": "theme", "value": "dark", "at": NOW}
    async with (
        hub.stream() as desk,
        hub.stream() as silent,
        hub.stream(Role.VIEWER) as other,
        hub.client() as phone,
    ):
        for talk, wanted in ((desk, True), (silent, False), (other, True)):
            await talk.follow(all=True, personal=wanted)
        version = (await change(phone, dark))["version"]
        assert await desk.hear("personal") == {"t": "personal", "version": version}
        # What comes after it would come later.
        session = await hub.deck.have_session()
        for talk in (silent, other):
            event = (await talk.events(1))[0]
            assert event["session"] == session
            assert not any(frame["t"] == "personal" for frame in talk._kept)
