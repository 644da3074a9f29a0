from __future__ import annotations

import pytest

from quarterdeck.fronts.http import Role
from support.front import Front


async def test_an_owner_lets_somebody_in_and_takes_it_back(hub: Front) -> None:
    async with hub.client() as owner:
        made = await owner.post("/api/tokens", json={"name": "ada's phone", "role": "operator"})
        assert made.status_code == 200
        bearer = {"Authorization": f"Bearer {made.json()['token']}"}
        async with hub.client(None) as guest:
            me = (await guest.get("/api/whoami", headers=bearer)).json()
        assert (me["name"], me["role"]) == ("ada's phone", "operator")

        listed = (await owner.get("/api/tokens")).json()["tokens"]
        [given] = [grant for grant in listed if grant["name"] == "ada's phone"]
        assert made.json()["token"] not in str(listed)
        left = (await owner.delete(f"/api/tokens/{given['id']}")).json()["tokens"]
        assert given["id"] not in {grant["id"] for grant in left}
        async with hub.client(None) as guest:
            assert (await guest.get("/api/whoami", headers=bearer)).status_code == 401
        assert (await owner.delete(f"/api/tokens/{given['id']}")).status_code == 404


async def test_nobody_locks_themselves_out_by_mistake(hub: Front) -> None:
    async with hub.client() as owner:
        mine = (await owner.get("/api/tokens")).json()["tokens"]
        answers = [await owner.delete(f"/api/tokens/{grant['id']}") for grant in mine]
        assert sum(answer.status_code == 400 for answer in answers) == 1
        assert (await owner.get("/api/whoami")).status_code == 200


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.VIEWER])
async def test_only_an_owner_sees_or_changes_who_has_access(hub: Front, role: Role) -> None:
    async with hub.client(role) as client:
        answers = [
            await client.get("/api/tokens"),
            await client.post("/api/tokens", json={"name": "me", "role": "owner"}),
            await client.delete("/api/tokens/anything"),
        ]
    assert [answer.status_code for answer in answers] == [403, 403, 403]


@pytest.mark.parametrize(
    "body",
    [
        {"name": "x", "role": "runner"},
        {"name": "", "role": "viewer"},
        {"name": "a\nb", "role": "viewer"},
    ],
)
async def test_what_is_no_person_is_not_let_in(hub: Front, body: dict[str, str]) -> None:
    async with hub.client() as owner:
        assert (await owner.post("/api/tokens", json=body)).status_code == 400
