from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import httpx
import msgspec
import pytest

from quarterdeck.fronts.http import Role, sse
from support.bounds import SECONDS
from support.front import Front, Json


@asynccontextmanager
async def events(hub: Front, session: str, **headers: str) -> AsyncIterator[AsyncIterator[Json]]:
    """The fields of each server-sent event, as they come."""
    async with (
        hub.client(Role.VIEWER, accept="text/event-stream", **headers) as client,
        client.stream("GET", f"/api/sessions/{session}/events") as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield _parsed(answer)


async def _parsed(answer: httpx.Response) -> AsyncIterator[Json]:
    fields: Json = {}
    async for line in answer.aiter_lines():
        name, _, value = line.partition(": ")
        if line:
            fields[name] = value
        else:
            yield fields
            fields = {}


async def test_history_and_then_each_event_as_it_happens(hub: Front) -> None:
    session = await hub.deck.have_session()
    with anyio.fail_after(SECONDS):
        async with events(hub, session) as coming:
            assert await anext(coming) == {"retry": "2000"}
            for seq in (1, 2, 3):
                assert (await anext(coming))["id"] == f"{hub.deck.epoch}:{seq}"
            await hub.deck.say(session, "hello")
            told = await anext(coming)
    event = msgspec.json.decode(told["data"])
    assert (event["seq"], event["event"]["line"]["text"]) == (4, "hello")


async def test_a_client_goes_on_after_the_last_event_that_it_had(hub: Front) -> None:
    session = await hub.deck.have_session()
    last = {"last-event-id": f"{hub.deck.epoch}:2"}
    with anyio.fail_after(SECONDS):
        async with events(hub, session, **last) as coming:
            await anext(coming)
            assert (await anext(coming))["id"] == f"{hub.deck.epoch}:3"


@pytest.mark.parametrize(
    ("last", "reason"), [("other:1", "epoch"), ("{epoch}:9", "ahead"), ("1", "epoch")]
)
async def test_an_id_that_means_nothing_here_is_a_gap(hub: Front, last: str, reason: str) -> None:
    session = await hub.deck.have_session()
    given = {"last-event-id": last.format(epoch=hub.deck.epoch)}
    with anyio.fail_after(SECONDS):
        async with events(hub, session, **given) as coming:
            told = [each async for each in coming]
    assert told[1:] == [{"event": "gap", "data": f'{{"reason":"{reason}"}}'}]


@pytest.mark.parametrize("last", ["nonsense", "a:-1", "a:" + "9" * 30])
async def test_an_id_that_is_none_is_refused(hub: Front, last: str) -> None:
    session = await hub.deck.have_session()
    headers = {"accept": "text/event-stream", "last-event-id": last}
    async with hub.client() as client:
        answer = await client.get(f"/api/sessions/{session}/events", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


async def test_a_session_that_is_not_there_is_told_before_anything_is_streamed(hub: Front) -> None:
    async with hub.client(accept="text/event-stream") as client:
        answer = await client.get("/api/sessions/nobody/events")
    assert answer.status_code == 404


async def test_a_silent_stream_is_kept_alive(hub: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "BEAT_SECONDS", 0.05)
    session = await hub.deck.have_session()
    with anyio.fail_after(SECONDS):
        async with events(hub, session, **{"last-event-id": f"{hub.deck.epoch}:3"}) as coming:
            await anext(coming)
            assert await anext(coming) == {"": "beat"}


async def test_the_stream_ends_with_the_hub(hub: Front) -> None:
    session = await hub.deck.have_session()
    with anyio.fail_after(SECONDS):
        async with events(hub, session) as coming:
            for _ in range(4):
                await anext(coming)
            await hub.deck.journal.close()
            assert [each async for each in coming] == []
