"""Schedules over HTTP: who may do what, and what is shown."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest
from msgspec import Struct

from quarterdeck.fronts.http import Access, Listen, Role, make_app, serve
from quarterdeck.protocol.schedules import InboundHook
from support.bounds import SECONDS
from support.front import Front
from support.guarded import Clock
from support.schedules import NINE, Planned, running_hub, schedule

NEW = {"name": "nightly", "prompt": "Run the tests.", "directory": "/work", "cron": "0 * * * *"}


class World(Struct):
    """A hub with schedules, and clients of each role."""

    planned: Planned
    client: Callable[[Role], httpx.AsyncClient]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with contextlib.AsyncExitStack() as stack:
        planned = await stack.enter_async_context(
            running_hub(Planned(tmp_path, Clock(NINE), ["the owner"]))
        )
        access = Access(tmp_path / "access")
        app = make_app(planned.hub, access, scheduling=planned.scheduler)
        url = await stack.enter_async_context(serve(app, Listen(port=0)))

        def client(role: Role) -> httpx.AsyncClient:
            token = access.make_token(f"the {role.value}", role)
            given = {"authorization": f"Bearer {token}"}
            return httpx.AsyncClient(base_url=url, headers=given, timeout=SECONDS, verify=False)

        yield World(planned, client)


async def test_a_schedule_is_added_listed_run_paused_and_removed(world: World) -> None:
    planned = world.planned
    async with world.client(Role.OWNER) as client:
        made = (await client.post("/api/schedules", json=NEW)).json()
        assert (made["owner"], made["source"], made["kind"]) == ("the owner", "api", "cron")
        assert made["next"] == int((NINE + 3600) * 1000)
        again = await client.post("/api/schedules", json=NEW)
        assert again.json() == made
        run = (await client.post("/api/schedules/nightly/run", json={"id": "k"})).json()
        same = (await client.post("/api/schedules/nightly/run", json={"id": "k"})).json()
        assert run["id"] == same["id"]
        await planned.at(0)
        (listed,) = (await client.get("/api/schedules")).json()["schedules"]
        assert (listed["running"], listed["last"]["state"]) == (1, "started")
        paused = (await client.post("/api/schedules/nightly/pause")).json()
        assert (paused["paused"], paused["paused_by"], paused["next"]) == (True, "the owner", None)
        resumed = (await client.post("/api/schedules/nightly/resume")).json()
        assert resumed["paused"] is False
        left = await client.delete("/api/schedules/nightly")
        assert left.json() == {"schedules": []}
        assert (await client.post("/api/schedules/nightly/run")).status_code == 404


async def test_the_history_is_read_page_by_page(world: World) -> None:
    await world.planned.have(schedule())
    for _ in range(5):
        await world.planned.at(3600)
    async with world.client(Role.VIEWER) as client:
        path = "/api/schedules/nightly/firings"
        first = (await client.get(path, params={"limit": 3})).json()
        rest = (await client.get(path, params={"limit": 3, "before": first["next"]})).json()
    assert [each["reason"] for each in first["firings"]] == ["still_running"] * 3
    assert [each["state"] for each in rest["firings"]] == ["skipped", "started"]
    assert rest["next"] is None


@pytest.mark.parametrize(
    ("role", "codes"),
    [
        (Role.VIEWER, [200, 403, 403, 403, 403, 403]),
        (Role.OPERATOR, [200, 403, 200, 403, 403, 403]),
        (Role.OWNER, [200, 200, 200, 200, 200, 200]),
    ],
)
async def test_who_starts_sessions_needs_the_right_to_manage(
    world: World, role: Role, codes: list[int]
) -> None:
    await world.planned.scheduler.add(schedule("there"), "the owner")
    async with world.client(role) as client:
        found = [
            await client.get("/api/schedules"),
            await client.post("/api/schedules", json=NEW),
            await client.post("/api/schedules/there/pause"),
            await client.post("/api/schedules/there/resume"),
            await client.post("/api/schedules/there/run"),
            await client.delete("/api/schedules/there"),
        ]
    assert [each.status_code for each in found] == codes


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"cron": "61 * * * *"}, "cron: not a cron expression"),
        ({"timezone": "Mars/Base"}, "timezone: there is no time zone"),
        ({"every": "1h"}, "one of cron, every and at"),
        ({"owner": "somebody"}, "owner: a schedule belongs"),
        ({"mode": "bypassPermissions"}, "mode: bypassPermissions is never used"),
        ({"directory": "relative"}, "directory: must be an absolute path"),
        ({"skip_permissions": True}, "skip_permissions"),
        ({"name": "../x"}, "name"),
        ({"max_running": 0}, "max_running"),
    ],
)
async def test_what_is_not_valid_is_refused_with_its_member(
    world: World, change: dict[str, object], says: str
) -> None:
    async with world.client(Role.OWNER) as client:
        answer = await client.post("/api/schedules", json=NEW | change)
    assert answer.status_code == 400
    assert says in answer.json()["detail"]


async def test_a_webhook_is_listed_without_its_secret(world: World) -> None:
    hook = InboundHook(name="ci", prompt="Look.", directory="/work", secret_file="/secret/place")
    await world.planned.have(hook)
    async with world.client(Role.VIEWER) as client:
        answer = await client.get("/api/schedules")
    (listed,) = answer.json()["schedules"]
    assert (listed["kind"], listed["when"], listed["next"]) == ("webhook", "/in/ci", None)
    assert "/secret/place" not in answer.text


async def test_a_server_without_schedules_says_so(hub: Front) -> None:
    async with hub.client(Role.OWNER) as client:
        for answer in (await client.get("/api/schedules"), await client.post("/api/schedules")):
            assert answer.status_code == 404
