"""Views on the stream: what a follower has is what the HTTP API gives at the same event."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import httpx
import pytest
from msgspec import Raw

from quarterdeck.fronts.http import Role
from quarterdeck.fronts.http.views import PendingViews, ViewCache
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionState
from support.bounds import SECONDS
from support.front import Front, Json, Talk
from support.raw_client import MEGABYTE, raw_client
from support.small_deck import SmallDeck

COUNTED = ("head", "news", "updated")
"""What every event changes."""


async def view_at(talk: Talk, session: str, head: int) -> Json:
    """The next view of a session that has the event `head` in it."""
    while True:
        for view in (await talk.hear("views"))["sessions"]:
            if view["session"] == session and view["head"] >= head:
                return dict(view)


async def shape_of(client: httpx.AsyncClient, session: str) -> Json:
    """The session as the HTTP API gives it now, without what the stream leaves out."""
    found: Json = (await client.get(f"/api/sessions/{session}")).json()
    return found | {"offers": None}


def without_counts(view: Json) -> Json:
    """What is left of a view without the members that every event changes."""
    return {name: value for name, value in view.items() if name not in COUNTED}


def script(deck: SmallDeck, session: str) -> list[Callable[[], Awaitable[object]]]:
    """A session's life, step by step."""

    async def event(*events: ev.Event) -> None:
        await deck.journal.append(session, events)

    async def answer() -> None:
        (ask,) = await deck.asks()
        await deck.submit(
            cmd.AnswerAsk(ask=ask.opened.ask, answer=cmd.AllowAnswer(), by="me", role="owner")
        )

    run = f"run-{session}"
    return [
        lambda: event(ev.StateChanged(state=SessionState.IDLE)),
        lambda: deck.submit(
            cmd.SendPrompt(session=session, prompt="p1", content=Raw(b'"do"'), by="me")
        ),
        lambda: event(ev.PromptSent(prompt="p1", run=run)),
        lambda: event(ev.StateChanged(state=SessionState.WORKING)),
        lambda: event(ev.PromptTaken(prompt="p1")),
        lambda: deck.ask(session),
        answer,
        lambda: event(ev.Switched(mode="plan", model="opus")),
        lambda: event(ev.LinkLost(run=run, reason="gone")),
        lambda: event(ev.LinkFound(run=run)),
        lambda: deck.submit(cmd.RenameSession(session=session, name="another", by="me")),
        lambda: deck.submit(
            cmd.ChangeSession(session=session, auto_approve=("Read",), ask_timeout=5.0, by="me")
        ),
        lambda: event(ev.StateChanged(state=SessionState.IDLE)),
        lambda: deck.submit(cmd.StopSession(session=session, by="me")),
        lambda: deck.submit(cmd.ArchiveSession(session=session, by="me")),
        lambda: deck.submit(cmd.ResumeSession(session=session, by="me")),
    ]


# V1
@pytest.mark.parametrize("everything", [False, True])
async def test_a_follower_has_the_view_that_the_http_api_gives_at_every_step(
    hub: Front, everything: bool
) -> None:
    session = await hub.deck.have_session(env={"KEY": "hush"})
    async with hub.stream(Role.VIEWER) as talk, hub.client() as client:
        if everything:
            await talk.follow(all=True)
        else:
            await talk.follow(sessions={session: 0})
            assert await view_at(talk, session, 3) == await shape_of(client, session)
        for step in script(hub.deck, session):
            await step()
            shape = await shape_of(client, session)
            assert await view_at(talk, session, shape["head"]) == shape
            assert shape["spec"]["env"] == {"KEY": "…"}


async def test_a_view_comes_after_the_answer_and_before_a_long_history(hub: Front) -> None:
    session = await hub.deck.have_session()
    await hub.deck.say(session, *map(str, range(1200)))
    async with hub.stream() as talk:
        await talk.say(t="follow", id="f", sessions={session: 0})
        kinds = [await talk.hear("following", "views", "events") for _ in range(3)]
        assert [frame["t"] for frame in kinds] == ["following", "views", "events"]
        assert kinds[1]["sessions"][0]["head"] == 1203
        read = len(kinds[2]["events"])
        await talk.events(1203 - read)
        await hub.deck.submit(cmd.RenameSession(session=session, name="new", by="me"))
        # The history sent no view of its own: the next one is of the last event.
        (view,) = (await talk.hear("views"))["sessions"]
        assert (view["head"], view["name"]) == (1204, "new")


async def test_a_new_session_gives_its_view_to_who_follows_all(hub: Front) -> None:
    old = await hub.deck.have_session("old")
    async with hub.stream() as talk, hub.client() as client:
        await talk.follow(all=True)
        new = await hub.deck.have_session("new")
        (view,) = (await talk.hear("views"))["sessions"]
        assert view == await shape_of(client, new)
        assert view["session"] != old


# V2
async def test_a_line_of_a_cli_sends_no_view(hub: Front) -> None:
    session = await hub.deck.have_session()
    async with hub.stream() as talk:
        await talk.follow(sessions={session: 3}, epoch=hub.deck.epoch)
        first = await view_at(talk, session, 3)
        await hub.deck.say(session, "a", "b")
        await talk.events(2)
        await hub.deck.submit(cmd.RenameSession(session=session, name="new", by="me"))
        (after,) = (await talk.hear("views"))["sessions"]
        assert after["head"] == 6
        assert without_counts(after) == without_counts(first) | {"name": "new"}


# V3
async def test_a_slow_reader_gets_the_newest_view_and_not_the_older_ones(hub: Front) -> None:
    sessions = [await hub.deck.have_session() for _ in range(3)]
    async with raw_client(hub) as slow, hub.stream() as quick, hub.client() as client:
        await slow.say(t="follow", id="1", sessions=dict.fromkeys(sessions, 0))
        seen: dict[str, int] = {}
        while len(seen) < 3:
            frame = await slow.hear()
            if frame["t"] == "views":
                seen |= {view["session"]: view["head"] for view in frame["sessions"]}
        await quick.follow(all=True)
        await hub.deck.say(sessions[0], *("z" * MEGABYTE for _ in range(24)))  # it is stuck
        for number in range(200):
            for session in sessions:
                rename = cmd.RenameSession(session=session, name=f"name {number}", by="me")
                await hub.deck.submit(rename)
        await view_at(quick, sessions[2], 203)
        pending = 0
        views: list[Json] = []
        while {view["session"] for view in views if view["name"] == "name 199"} != {*sessions}:
            frame = await slow.hear()
            if frame["t"] == "views":
                views += frame["sessions"]
                pending += 1
        assert pending < 20  # of 600 changes
        for session in sessions:
            newest = [view for view in views if view["session"] == session][-1]
            assert newest == await shape_of(client, session)


# V4
async def test_a_deleted_session_gives_no_view(hub: Front) -> None:
    session, other = await hub.deck.have_session(), await hub.deck.have_session()
    async with hub.stream() as talk:
        await talk.follow(sessions={session: 3, other: 3}, epoch=hub.deck.epoch)
        await view_at(talk, session, 3)
        await hub.deck.journal.delete(session, by="me")
        (event,) = await talk.events(1)
        assert event["event"]["kind"] == "session.deleted"
        await hub.deck.submit(cmd.RenameSession(session=other, name="new", by="me"))
        views = (await talk.hear("views"))["sessions"]
        while views[-1]["name"] != "new":
            views = (await talk.hear("views"))["sessions"]
        assert {view["session"] for view in views} == {other}


# V5
async def test_views_are_left_out_for_who_does_not_want_them(hub: Front) -> None:
    session = await hub.deck.have_session()
    async with hub.stream() as talk:
        await talk.follow(sessions={session: 3}, epoch=hub.deck.epoch, views=False)
        for name in ("a", "b"):
            await hub.deck.submit(cmd.RenameSession(session=session, name=name, by="me"))
            assert (await talk.hear("views", "events"))["t"] == "events"


async def test_an_unfollowed_session_gives_no_view(hub: Front) -> None:
    session, other = await hub.deck.have_session(), await hub.deck.have_session()
    async with hub.stream() as talk:
        await talk.follow(sessions={session: 3, other: 3}, epoch=hub.deck.epoch)
        await view_at(talk, other, 3)
        await talk.say(t="unfollow", id="u", sessions=[session])
        await talk.hear("following")
        for each in (session, other):
            await hub.deck.submit(cmd.RenameSession(session=each, name="new", by="me"))
        view = await view_at(talk, other, 4)
        assert view["name"] == "new"


async def test_a_hub_that_stops_while_views_are_due_ends_the_connection_with_1012(
    hub: Front,
) -> None:
    sessions = [await hub.deck.have_session() for _ in range(3)]
    async with hub.stream() as talk:
        await talk.follow(sessions=dict.fromkeys(sessions, 0))
        await hub.deck.submit(cmd.RenameSession(session=sessions[0], name="new", by="me"))
        await hub.deck.journal.close()
        assert await talk.closed() == 1012


class InMemory(SmallDeck):
    """A deck that holds one view in memory, and counts the reads of others."""

    held: SessionView | None = None
    reads = 0

    def view(self, session: str) -> SessionView | None:
        return self.held

    async def session(self, session: str) -> SessionView:
        self.reads += 1
        return await super().session(session)


async def test_many_clients_that_need_the_same_view_read_it_once() -> None:
    deck = InMemory()
    session = await deck.have_session()
    cache = ViewCache(deck)
    deck.reads = 0
    frames: list[str | None] = []

    async def follow() -> None:
        pending = PendingViews(cache)
        pending.begin({session: 3})
        frames.append(await pending.take())
        assert not pending.pending

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(follow)
    assert deck.reads == 1
    assert len(set(frames)) == 1
    await deck.workers.close()


async def test_a_view_in_memory_is_sent_unless_an_event_is_missing_in_it() -> None:
    deck = InMemory()
    session = await deck.have_session("old")
    deck.held = await deck.session(session)
    cache = ViewCache(deck)
    await deck.submit(cmd.RenameSession(session=session, name="new", by="me"))
    first = await cache.with_event(session, 3)
    assert first is not None
    assert (first.head, b'"name":"old"' in first.json) == (3, True)
    second = await cache.with_event(session, 4)
    assert second is not None
    assert (second.head, b'"name":"new"' in second.json) == (4, True)
    await deck.workers.close()
