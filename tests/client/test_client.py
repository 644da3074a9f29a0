"""The public client against the real HTTP front: requests, following, turns, reconnecting."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.client import HubClient, HubRefused, SessionClient
from quarterdeck.domain.errors import LinkClosed, LinkRefused, RequestCancelled, UsageError
from quarterdeck.fronts.http import Role
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from quarterdeck.protocol.shapes import SessionChanges
from quarterdeck.wire.messages import Assistant
from support.bounds import SECONDS
from support.front import Front, front

pytestmark = pytest.mark.anyio

LINE = {
    "type": "assistant",
    "uuid": "u1",
    "session_id": "c1",
    "message": {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "opus",
        "content": [{"type": "text", "text": "Done."}],
        "stop_reason": None,
        "usage": {},
    },
}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Front]:
    async with front(tmp_path) as running:
        yield running


@asynccontextmanager
async def client_of(served: Front, role: Role = Role.OWNER) -> AsyncIterator[HubClient]:
    token = served.access.make_token(f"the {role.value}", role)
    with anyio.fail_after(SECONDS):
        async with HubClient(served.url, token) as hub:
            yield hub


async def run_turn(served: Front, session: str, prompt: str, *, failed: bool = False) -> None:
    """What the hub journals while a CLI works on a prompt."""
    run = f"run-{session}"
    said = ev.Said(run=run, number=1, line=Raw(msgspec.json.encode(LINE)))
    ended = ev.TurnEnded(prompts=(prompt,), failed=failed, outcome="success", cost_usd=0.5)
    await served.deck.journal.append(
        session, [ev.PromptSent(prompt=prompt, run=run), ev.PromptTaken(prompt=prompt), said, ended]
    )


async def test_every_request_of_the_api_has_its_method(served: Front) -> None:
    async with client_of(served) as hub:
        session = await hub.create(
            SessionSpec(directory="/tmp", name="one"), session="one", prompt="do it"
        )
        assert session.id == "one"
        again = await hub.create(SessionSpec(directory="/tmp"), session="one")
        assert again.id == "one"
        assert [shape.session async for shape in hub.sessions()] == ["one"]
        assert (await session.change(SessionChanges(name="two", archived=True))).name == "two"
        assert [shape.name async for shape in hub.sessions(archived=True)] == ["two"]
        turn = await session.prompt("more", id="p1")
        assert [prompt.prompt for prompt in await session.prompts()] == [turn.prompt] == ["p1"]
        await session.change_prompt("p1", [{"type": "text", "text": "less"}])
        (queued,) = await session.prompts()
        assert bytes(queued.content) == b'[{"type":"text","text":"less"}]'
        await session.cancel_prompt("p1")
        assert bytes(await session.control({"subtype": "x"})) == b'{"ok":true}'
        ask = await served.deck.ask("one")
        (card,) = await session.asks()
        assert card.opened.ask == ask
        await session.answer(card, cmd.DenyAnswer(message="no"))
        with pytest.raises(HubRefused) as refused:
            await session.answer(ask, cmd.AllowAnswer())
        assert refused.value.problem.code == "already_answered"
        await session.interrupt()
        await session.stop()
        await session.resume()
        fork = await session.fork(name="copy")
        assert (await fork.read()).parent == "one"
        await session.stop()
        await session.delete()
        with pytest.raises(HubRefused, match="one"):
            await session.read()
        assert [machine.name for machine in await hub.machines()] == ["here"]
        assert (await hub.whoami()).name == "the owner"
        assert (await hub.health()).ok
        assert [row.used.asks for row in (await hub.usage()).rows] == [1]
        assert [shape async for shape in hub.audit("nobody")] == []


async def test_a_viewer_is_refused_by_its_role(served: Front) -> None:
    await served.deck.have_session()
    async with client_of(served, Role.VIEWER) as hub:
        (shape,) = [shape async for shape in hub.sessions()]
        with pytest.raises(HubRefused) as refused:
            await hub.session(shape.session).interrupt()
        assert refused.value.problem.code == "forbidden"


async def test_a_session_is_followed_by_the_views_of_the_hub(served: Front) -> None:
    id_ = await served.deck.have_session("one")
    async with client_of(served) as hub, hub.session(id_) as session:
        assert session.view == replace(await session.read(), offers=None)
        await hub.submit(cmd.RenameSession(session=id_, name="two"))
        await session.wait_for(lambda view: view.name == "two")
        await served.deck.journal.append(id_, [ev.StateChanged(state=SessionState.IDLE)])
        idle = await session.wait_for(lambda view: view.state is SessionState.IDLE)
        assert idle == replace(await session.read(), offers=None)


async def test_the_turn_of_a_prompt_gives_its_messages_and_its_end(served: Front) -> None:
    id_ = await served.deck.have_session()
    async with client_of(served) as hub, hub.session(id_) as session:
        turn = await session.prompt("Run the tests.")
        await run_turn(served, id_, turn.prompt)
        messages = [message async for message in turn]
        assert [type(message) for message in messages] == [Assistant]
        assert (await turn.result()).cost_usd == 0.5


async def test_only_the_messages_of_its_own_turn_are_given(served: Front) -> None:
    id_ = await served.deck.have_session()
    async with client_of(served) as hub, hub.session(id_) as session:
        first, second = await session.prompt("a"), await session.prompt("b")
        await run_turn(served, id_, first.prompt)
        await run_turn(served, id_, second.prompt)
        assert len([message async for message in second]) == 1
        assert (await first.result()).prompts == (first.prompt,)


async def test_a_prompt_that_was_sent_before_has_the_turn_that_it_had(served: Front) -> None:
    id_ = await served.deck.have_session()
    async with client_of(served) as hub, hub.session(id_) as session:
        turn = await session.prompt("do", id="p")
        await run_turn(served, id_, turn.prompt)
        await turn.result()


@pytest.mark.parametrize("how", ["cancelled", "ended"])
async def test_a_turn_that_never_ends_raises(served: Front, how: str) -> None:
    id_ = await served.deck.have_session()
    async with client_of(served) as hub, hub.session(id_) as session:
        turn = await session.prompt("do")
        if how == "cancelled":
            await session.cancel_prompt(turn.prompt)
            with pytest.raises(RequestCancelled):
                await turn.result()
        else:
            sent = ev.PromptSent(prompt=turn.prompt, run=f"run-{id_}")
            await served.deck.journal.append(id_, [sent])
            await session.stop()
            with pytest.raises(LinkClosed, match="stopped"):
                await turn.result()


async def test_events_are_read_from_the_history_and_then_as_they_happen(served: Front) -> None:
    id_ = await served.deck.have_session()
    await served.deck.say(id_, *map(str, range(1500)))
    async with client_of(served) as hub, hub.session(id_) as session:
        await served.deck.say(id_, "new")
        numbers: list[int] = []
        async with aclosing(session.events(0)) as events:
            async for shape in events:
                numbers.append(shape.seq)
                if shape.seq == 1504:
                    await served.deck.say(id_, *map(str, range(1200)))  # more than the tail has
                if shape.seq == 2704:
                    break
        assert numbers == list(range(1, 2705))


async def test_text_in_progress_is_read_while_it_is_generated(served: Front) -> None:
    id_ = await served.deck.have_session()
    async with client_of(served) as hub, hub.session(id_) as session:
        await session.wait_for(lambda _: served.deck.listeners > 0)
        heard = ""
        async with aclosing(session.live()) as live:
            served.deck.type(id_, "Hel")
            async for frame in live:
                heard = frame.deltas[0].text if frame.whole else heard + frame.deltas[0].text
                if heard == "Hello":
                    break
                if heard == "Hel":
                    served.deck.type(id_, "lo")
        assert heard == "Hello"


async def test_events_end_with_the_session(served: Front) -> None:
    id_ = await served.deck.have_session()
    async with client_of(served) as hub, hub.session(id_) as session:
        head = session.view.head
        await session.stop()
        await session.wait_for(lambda view: view.run is None)
        await session.delete()
        kinds = [type(shape.event) async for shape in session.events(head)]
        assert kinds == [ev.RunEnded, ev.SessionDeleted]


async def test_two_readers_of_one_session_do_not_hold_each_other_up(served: Front) -> None:
    id_ = await served.deck.have_session()
    async with client_of(served) as hub, hub.session(id_) as session:
        slow, quick = session.events(0), session.events(0)
        first = await anext(slow)
        await served.deck.say(id_, *map(str, range(50)))
        seen = [(await anext(quick)).seq for _ in range(53)]
        assert (first.seq, seen) == (1, list(range(1, 54)))
        assert (await anext(slow)).seq == 2
        for reader in (slow, quick):
            await reader.aclose()


async def test_who_loses_access_is_told_so(served: Front) -> None:
    id_ = await served.deck.have_session()
    async with client_of(served) as hub, hub.session(id_) as session:
        for grant in served.access.grants():
            served.access.revoke(grant.id)
        with pytest.raises(HubRefused) as refused:
            await session.wait_for(lambda view: view.name == "never")
        assert refused.value.problem.code == "unauthorized"


async def test_what_is_not_followed_has_no_view(served: Front) -> None:
    async with client_of(served) as hub:
        session = hub.session("any")
        assert isinstance(session, SessionClient)
        with pytest.raises(UsageError, match="not followed"):
            _ = session.view
        with pytest.raises(HubRefused):
            async with session:
                pass


async def test_where_no_hub_is_the_link_is_refused() -> None:
    async with HubClient("http://127.0.0.1:9", "token") as hub:
        with pytest.raises(LinkRefused, match="no hub answers"):
            await hub.health()
    with pytest.raises(UsageError, match="not open"):
        await hub.health()
    with pytest.raises(UsageError, match="no address"):
        HubClient("nowhere", "token")


async def test_the_environment_names_the_hub(served: Front) -> None:
    token = served.access.make_token("me", Role.OWNER)
    given = {"QUARTERDECK_URL": served.url, "QUARTERDECK_TOKEN": token}
    async with HubClient.from_environment(given) as hub:
        assert (await hub.whoami()).name == "me"
    with pytest.raises(UsageError, match="QUARTERDECK_TOKEN"):
        HubClient.from_environment({"QUARTERDECK_URL": served.url})
