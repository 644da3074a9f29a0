"""The routes of Web Push, with the real front behind them and a push service on loopback."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quarterdeck.fronts.http import Role
from quarterdeck.fronts.push import Push
from support.front import Front, front
from support.push_service import PushService, push_service
from support.small_deck import SmallDeck

pytestmark = pytest.mark.anyio

SUBSCRIPTIONS = "/api/push/subscriptions"


@contextlib.asynccontextmanager
async def pushing(folder: Path) -> AsyncIterator[Front]:
    """A front that sends push messages."""
    deck = SmallDeck()
    valid: list[Front] = []
    push = Push(
        deck,
        folder,
        grants=lambda: {grant.id for grant in valid[0].access.grants()},
        contact="mailto:ada@deck.example",
        loopback=True,
    )
    async with front(folder / "data", deck=deck, push=push) as hub, push.running():
        valid.append(hub)
        yield hub


def body(service: PushService) -> dict[str, object]:
    return {"endpoint": service.endpoint, "keys": service.keys}


@pytest.mark.parametrize("role", [Role.OWNER, Role.OPERATOR, Role.VIEWER])
async def test_whoever_may_read_is_told_for_as_long_as_they_want(
    tmp_path: Path, role: Role
) -> None:
    async with push_service() as service, push_service() as other, pushing(tmp_path) as hub:
        session = await hub.deck.have_session()
        async with hub.client(role) as client, hub.client() as owner:
            key = (await client.get("/api/push")).json()["key"]
            for each, who in ((service, client), (other, owner)):
                answer = await who.post(SUBSCRIPTIONS, json=body(each))
                assert answer.json() == {"key": key}
            await hub.deck.ask(session)
            await service.until(1)
            assert service.claims(service.receiver.came[0], key)["aud"] == service.origin
            gone = {"endpoint": service.endpoint}
            for _ in range(2):
                answer = await client.request("DELETE", SUBSCRIPTIONS, json=gone)
                assert answer.status_code == 200
            await hub.deck.ask(session)
            await other.until(2)
    assert len(service.receiver.came) == 1


async def test_a_token_that_is_taken_back_takes_its_subscriptions_along(tmp_path: Path) -> None:
    async with push_service() as service, push_service() as other, pushing(tmp_path) as hub:
        session = await hub.deck.have_session()
        async with hub.client(Role.VIEWER) as viewer, hub.client() as owner:
            await viewer.post(SUBSCRIPTIONS, json=body(service))
            await owner.post(SUBSCRIPTIONS, json=body(other))
            listed = (await owner.get("/api/tokens")).json()["tokens"]
            [theirs] = [grant["id"] for grant in listed if grant["role"] == "viewer"]
            await owner.delete(f"/api/tokens/{theirs}")
            await hub.deck.ask(session)
            await other.until(1)
    assert not service.receiver.came


async def test_what_cannot_be_a_subscription_is_refused_with_what_is_wrong(tmp_path: Path) -> None:
    async with push_service() as service, pushing(tmp_path) as hub, hub.client() as client:
        good = body(service)
        for part, what in (
            ({"endpoint": "http://push.example/x"}, "endpoint"),
            ({"keys": {"p256dh": "AAAA", "auth": service.keys["auth"]}}, "p256dh"),
            ({"keys": {"p256dh": service.keys["p256dh"], "auth": "AAAA"}}, "auth"),
            ({"expirationTime": None}, "expirationTime"),
        ):
            answer = await client.post(SUBSCRIPTIONS, json=good | part)
            assert answer.status_code == 400
            assert what in answer.json()["detail"]


async def test_a_hub_that_sends_no_push_messages_says_so(hub: Front) -> None:
    async with hub.client() as client:
        answers = [
            await client.get("/api/push"),
            await client.post(SUBSCRIPTIONS, json={}),
            await client.request("DELETE", SUBSCRIPTIONS, json={}),
        ]
    assert [answer.status_code for answer in answers] == [404, 404, 404]


async def test_a_runner_and_a_stranger_learn_nothing(tmp_path: Path) -> None:
    async with pushing(tmp_path) as hub:
        for role, status in ((Role.RUNNER, 403), (None, 401)):
            async with hub.client(role) as client:
                assert (await client.get("/api/push")).status_code == status
