"""Two services on one PostgreSQL: what a team notices of it, and what it does not."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.abc
import httpx2
import msgspec
import pytest
from msgspec.structs import replace

from quarterdeck.config import Settings
from quarterdeck.config.settings import JournalSettings, ServerSettings, WebhookSettings
from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.http import Role
from quarterdeck.hub import fleet
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.journal.ownership import hold_lease
from quarterdeck.journal.postgres import PostgresJournal
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.protocol.shapes import HubAlarm
from quarterdeck.runner import Limits, Runner
from quarterdeck.service import together
from quarterdeck.service.service import Service, run_service, serve_options_of
from quarterdeck.service.together import Together, digest, machine_name
from support.bounds import SECONDS
from support.fault_world import World
from support.runners import QUICK, TIMES

pytestmark = pytest.mark.anyio


def settings_for(url: str, **more: Any) -> Settings:
    return Settings(server=ServerSettings(port=0), journal=JournalSettings(url=url), **more)


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(SECONDS):
        while not await holds():  # noqa: ASYNC110 - other hubs make it true
            await anyio.sleep(0.02)


async def test_two_services_are_one_for_people_and_machines(
    tmp_path: Path,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(together, "COMPARE_SECONDS", 0.1)
    monkeypatch.setattr(together, "RENEW_SECONDS", 0.1)
    caplog.set_level(logging.INFO)
    hook = WebhookSettings(url="http://127.0.0.1:9/nobody")
    options = serve_options_of(settings_for(postgres_url, webhooks=(hook,)), runner=False)
    other = replace(options, settings=settings_for(postgres_url))
    leave, gone = anyio.Event(), anyio.Event()

    async def first(*, task_status: anyio.abc.TaskStatus[Service]) -> None:
        async with run_service(tmp_path / "a", options) as service:
            task_status.started(service)
            await leave.wait()
        gone.set()

    async with anyio.create_task_group() as group:
        a: Service = await group.start(first)
        hubs = AsyncExitStack()
        b = await hubs.enter_async_context(run_service(tmp_path / "b", other))
        token = a.access.make_token("box", Role.RUNNER)
        person = a.access.make_token("ada", Role.OWNER)
        await until(lambda: known(b, token))
        runner = Runner(
            tmp_path / "runner",
            [a.address, b.address],
            token,
            "box",
            limits=Limits(memory_floor=0),
            times=TIMES,
            redial=QUICK,
        )
        group.start_soon(runner.run)
        headers = {"authorization": f"Bearer {person}"}
        async with httpx2.AsyncClient(
            base_url=b.address, headers=headers, timeout=SECONDS
        ) as client:

            async def machines() -> list[str]:
                found = (await client.get("/api/machines")).json()["machines"]
                return [each["name"] for each in found if each["connected"]]

            async def there() -> bool:
                return await machines() == ["box"]

            await until(there)
            world = World(tmp_path, *cast("tuple[Any, Any, Any]", (None, None, None)))
            spec = replace(world.spec("s", 3), machine=None)
            body = {"session": "s", "prompt": "begin", "spec": msgspec.to_builtins(spec)}
            made = await client.post("/api/sessions", json=body)
            assert made.status_code == 200, made.text
            assert (await b.hub.session("s")).spec.machine == "box"
            assert b.hub.view("s") is None, "it is the other hub's"

            async def settled() -> bool:
                """Answer all questions here; whether the turn is over."""
                for ask in (await b.hub.session("s")).asks:
                    url = f"/api/asks/{ask}/answer"
                    answered = await client.post(url, json={"answer": {"answer": "allow"}})
                    assert answered.status_code in {200, 409}, answered.text
                view = await b.hub.session("s")
                return view.state is SessionState.IDLE and not view.unsent

            await until(settled)
            run = (await b.hub.session("s")).run
            # The difference of their configurations is told.
            alarm = f"the hub at {b.address} has another quarterdeck.toml"
            await until(lambda: logged(caplog, alarm))
            assert not await logged(caplog, "another policy.toml")

            async def alarmed() -> bool:
                found = (await client.get("/api/machines")).json()["alarms"]
                return bool(found == [{"code": "other_configuration", "hub": a.address}])

            await until(alarmed)
            # What a person makes at the other hub is here at once.
            async with httpx2.AsyncClient(
                base_url=a.address, headers=headers, timeout=SECONDS
            ) as at_a:
                new = {"name": "nightly", "every": "30d", "prompt": "tidy", "directory": "/"}
                made = await at_a.post("/api/schedules", json=new)
                assert made.status_code == 200, made.text
                draft = {"kind": "draft", "key": "s", "value": "half", "at": 1}
                typed = await at_a.patch("/api/preferences", json={"changes": [draft]})
                assert typed.status_code == 200, typed.text
                prompt = {"name": "one", "text": "do it", "shared": True}
                saved = await at_a.put("/api/library/prompts/p1", json=prompt)
                assert saved.status_code == 200, saved.text
            await until(lambda: shared_at(client))
            # The first hub is gone: its runner dials the other one, and its duties are taken.
            leave.set()
            with anyio.fail_after(SECONDS):
                await gone.wait()

            async def moved() -> bool:
                return b.hub.view("s") is not None and await there()

            await until(moved)
            assert await shared_at(client), "also when the hub is gone where it was made"
            paused = await client.post("/api/schedules/nightly/pause")
            assert paused.json()["paused"], paused.text
            turns = (await b.hub.session("s")).turns
            prompt = {"prompt": "00000000-0000-4000-8000-000000000009", "content": "more"}
            sent = await client.post("/api/sessions/s/prompts", json=prompt)
            assert sent.status_code == 200, sent.text

            async def done() -> bool:
                return await settled() and (await b.hub.session("s")).turns > turns

            await until(done)
            assert (await b.hub.session("s")).run == run, "its process did not notice"
            stopped = await client.post("/api/sessions/s/stop")
            assert stopped.status_code == 200, stopped.text
            await until(lambda: ended(b))
        runner.stop()
        with anyio.fail_after(SECONDS):
            await runner.ended.wait()
        await hubs.aclose()


async def shared_at(client: httpx2.AsyncClient) -> bool:
    """Whether a hub has what was made at another one."""
    schedules = (await client.get("/api/schedules")).json()["schedules"]
    preferences = (await client.get("/api/preferences")).json()["preferences"]
    prompts = (await client.get("/api/library")).json()["prompts"]
    assert [each["value"] for each in preferences] == ["half"]
    assert [each["text"] for each in prompts] == ["do it"]
    return [each["name"] for each in schedules] == ["nightly"]


async def known(service: Service, token: str) -> bool:
    return service.access.runner_named(token) == "box"


async def ended(service: Service) -> bool:
    return (await service.hub.session("s")).state is SessionState.ENDED


async def logged(caplog: pytest.LogCaptureFixture, text: str) -> bool:
    return text in caplog.text


async def test_a_duty_is_done_by_one_hub_and_taken_over_when_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "RENEW_SECONDS", 0.05)
    monkeypatch.setattr(together, "LEASE_SECONDS", 0.4)
    journal = MemoryJournal()
    settings = settings_for("postgresql://nowhere/x")
    for name in "ab":
        (tmp_path / name).mkdir()
    two = [
        Together(each, settings, tmp_path / name, b"s" * 32)
        for name, each in (("a", journal), ("b", journal.beside()))
    ]
    working: list[int] = []

    async def work(number: int) -> None:
        working.append(number)
        try:
            await anyio.sleep_forever()
        finally:
            working.remove(number)

    async def one() -> bool:
        assert len(working) <= 1
        return len(working) == 1

    async with anyio.create_task_group() as group:
        scopes = [anyio.CancelScope(), anyio.CancelScope()]

        async def serve(number: int) -> None:
            with scopes[number]:
                await two[number].on_duty("bot", lambda: work(number))

        for number in (0, 1):
            group.start_soon(serve, number)
        await until(one)
        (was,) = working
        scopes[was].cancel()

        async def taken() -> bool:
            return working == [1 - was]

        await until(taken)
        group.cancel_scope.cancel()
    finished: list[str] = []

    async def brief() -> None:
        finished.append("done")

    with anyio.fail_after(SECONDS):
        await two[0].on_duty("brief", brief)
    assert finished == ["done"]
    place = two[0].place("webhooks")
    assert await place.load() is None
    await place.save(7)
    assert await two[1].place("webhooks").load() == 7


async def test_a_hub_that_stood_still_past_its_lease_records_nothing_and_stops(
    tmp_path: Path,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(together, "RENEW_SECONDS", 3600.0)  # it does not look by itself
    monkeypatch.setattr(together, "LEASE_SECONDS", 0.05)
    settings = settings_for(postgres_url)
    async with (
        await PostgresJournal.open(postgres_url) as one,
        # The clock of the other machine is an hour behind: leases run by that of the database.
        await PostgresJournal.open(postgres_url, clock=lambda: time.time() - 3600) as other,
    ):
        for name in "ab":
            (tmp_path / name).mkdir()
        a = Together(one, settings, tmp_path / "a", b"s" * 32)
        b = Together(other, settings, tmp_path / "b", b"s" * 32)
        begun, wake = anyio.Event(), anyio.Event()
        recorded: list[str] = []

        async def work() -> None:
            place = a.place("duty")
            await place.save(1)
            begun.set()
            await wake.wait()  # as a process that was stopped, and goes on
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(place.save, 2)
            recorded.append("never")

        async with anyio.create_task_group() as group:
            group.start_soon(a.on_duty, "duty", work)
            with anyio.fail_after(SECONDS):
                await begun.wait()
                while (taken := await other.take_lease("duty", b.fleet.id, 60)) is None:  # noqa: ASYNC110 - the database makes it true
                    await anyio.sleep(0.01)
            with hold_lease(taken):
                await b.place("duty").save(7)
            wake.set()
            await until(lambda: logged(caplog, f"lease duty belongs to hub {b.fleet.id}"))
            assert await b.place("duty").load() == 7
            assert recorded == []
            group.cancel_scope.cancel()


async def test_nothing_is_kept_of_a_hub_that_was_killed_long_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = MemoryJournal()
    settings = settings_for("postgresql://nowhere/x")
    one = Together(journal, settings, tmp_path, b"s" * 32)
    for hub in ("killed", "other"):
        await journal.announce(hub, f"http://{hub}")
    for hub in (one.fleet.id, "killed", "other", "older than the announcements"):
        await journal.share("configurations", hub, b"{}")
    await one._forget_dead()
    assert {place.hub for place in await journal.hubs()} == {"killed", "other"}
    left = (await journal.shared_changes("configurations")).changes
    assert {change.key for change in left} == {one.fleet.id, "killed", "other"}
    monkeypatch.setattr(fleet, "FORGET_SECONDS", 0.0)
    await one._forget_dead()
    assert await journal.hubs() == []
    left = (await journal.shared_changes("configurations")).changes
    assert [(change.key, change.value) for change in left] == [(one.fleet.id, b"{}")]


async def test_a_hub_that_others_cannot_reach_is_an_alarm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = MemoryJournal()
    one = Together(journal, settings_for("postgresql://nowhere/x"), tmp_path, b"s" * 32)
    one.fleet.reached_at("http://127.0.0.1:8765")
    policies = Policies()
    await one._compare_once(policies)
    assert "journal.hub_address" not in caplog.text, "it is alone"
    await journal.announce("other", "http://127.0.0.1:1")
    await one._compare_once(policies)
    assert one.alarms() == (), "it may have just begun"
    assert (
        "announces the address http://127.0.0.1:8765, where hubs on other machines" in caplog.text
    )
    await one._compare_once(policies)
    assert one.alarms() == (HubAlarm(code="unreachable", hub="http://127.0.0.1:1"),)
    assert "does not answer this hub: set its journal.hub_address" in caplog.text
    assert caplog.text.count("announces the address") == 1
    await journal.forget_hub("other")
    await one._compare_once(policies)
    assert one.alarms() == ()
    await one._client.close()


def test_a_machine_has_a_name_of_its_own_which_stays(tmp_path: Path) -> None:
    settings = settings_for("postgresql://nowhere/x")
    names = {
        machine_name(tmp_path / name, settings) for name in ("a", "b") if _made(tmp_path / name)
    }
    assert len(names) == 2
    assert machine_name(tmp_path / "a", settings) in names
    assert "local" not in names
    kept = replace(settings, journal=replace(settings.journal, machine="local"))
    assert machine_name(tmp_path / "a", kept) == "local"


def _made(folder: Path) -> bool:
    folder.mkdir()
    return True


def test_hubs_may_differ_in_their_addresses_and_in_nothing_that_counts() -> None:
    one = settings_for("postgresql://nowhere/x")
    elsewhere = replace(one, server=ServerSettings(port=1234))
    assert digest(one) == digest(elsewhere)
    assert digest(one) != digest(replace(one, webhooks=(WebhookSettings(url="http://x"),)))
    with pytest.raises(UsageError):
        JournalSettings(hub_address="http://x")
