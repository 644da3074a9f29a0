"""The routes of Web Push, with the real front behind them and a push service on loopback."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import Raw

from quarterdeck.fronts.http import Role
from quarterdeck.fronts.push import Push
from quarterdeck.protocol.commands import AllowAnswer, AnswerAsk
from quarterdeck.protocol.events import AskKind, AskOpened
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
    async with front(folder / "data", deck=deck, push=push) as hub, push.run():
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


async def test_the_browser_that_was_told_answers_once_and_nobody_else_with_its_notification(
    tmp_path: Path,
) -> None:
    async with push_service() as service, pushing(tmp_path) as hub:
        session = await hub.deck.have_session()
        async with hub.client(None) as ada, hub.client(None) as other:
            keys = {}
            for client in (ada, other):
                code = hub.access.make_code("ada", Role.OPERATOR)
                made = await client.post("/login", json={"code": code})
                keys[client] = {"x-quarterdeck-page-key": made.json()["page_key"]}
            ours = {"origin": hub.url}
            subscribed = await ada.post(
                SUBSCRIPTIONS,
                json={**body(service), "buttons": True},
                headers={**keys[ada], **ours},
            )
            assert subscribed.status_code == 200
            ask = f"{session}.one"
            opened = AskOpened(
                ask=ask,
                run="run",
                request_id="r",
                ask_kind=AskKind.TOOL,
                tool="Bash",
                title="make",
                request=Raw(b'{"input":{"command":"make test"}}'),
            )
            await hub.deck.journal.append(session, [opened])
            (note,) = await service.until(1)
            answer = {"token": note["answer"], "answer": "allow"}
            path = "/push/answer"
            # A stolen token without the cookie, with another login's, from a strange page.
            async with hub.client(None) as thief:
                assert (await thief.post(path, json=answer)).status_code == 401
            assert (await other.post(path, json=answer, headers=ours)).status_code == 401
            strange = {"origin": "https://evil.example"}
            assert (await ada.post(path, json=answer, headers=strange)).status_code == 403
            assert (await ada.post(path, json=answer)).status_code == 403
            # The cookie alone opens nothing, and nothing lasting can be asked for.
            for wrong in ({**answer, "token": "x"}, {**answer, "answer": "always"}, {}):
                refused = await ada.post(path, json=wrong, headers=ours)
                assert refused.status_code in {400, 401}
            assert (await ada.get("/api/whoami", headers=ours)).status_code == 401
            done = await ada.post(path, json=answer, headers=ours)
            assert done.status_code == 200, done.text
            assert (await ada.post(path, json=answer, headers=ours)).status_code == 401
    [command] = [each for each in hub.deck.submitted if isinstance(each, AnswerAsk)]
    assert (command.ask, command.by, command.role) == (ask, "ada", "operator")
    assert command.answer == AllowAnswer()


async def test_a_viewer_gets_no_buttons(tmp_path: Path) -> None:
    async with push_service() as service, pushing(tmp_path) as hub:
        session = await hub.deck.have_session()
        async with hub.client(Role.VIEWER) as viewer:
            await viewer.post(SUBSCRIPTIONS, json={**body(service), "buttons": True})
            wrong = {**body(service), "kinds": ["everything"]}
            assert (await viewer.post(SUBSCRIPTIONS, json=wrong)).status_code == 400
        await hub.deck.ask(session)
        (note,) = await service.until(1)
        assert "answer" not in note
