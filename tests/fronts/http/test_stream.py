"""The stream as `docs/reference/stream.md` has it: an id of that page stands before each test."""

from __future__ import annotations

import asyncio
from pathlib import Path

import anyio
import msgspec
import pytest

from quarterdeck.domain.errors import Conflict, JournalError
from quarterdeck.fronts.http import Pace, Role
from quarterdeck.fronts.http.connection import UNAVAILABLE
from quarterdeck.protocol.commands import SendPrompt
from quarterdeck.protocol.events import PromptQueued
from quarterdeck.protocol.session_view import SessionView
from support.bounds import SECONDS
from support.front import PATIENT, Front, Json, front
from support.waiting import until
from support.web_sockets import connect


def numbers(events: list[Json], session: str) -> list[int]:
    """The numbers of a session's events, in the order in which they came."""
    return [event["seq"] for event in events if event["session"] == session]


# S1
async def test_the_first_frame_says_epoch_person_and_limits(hub: Front) -> None:
    async with hub.stream(Role.VIEWER) as talk:
        assert talk.greeting == {
            "t": "hello",
            "protocol": 1,
            "epoch": hub.deck.epoch,
            "name": "the viewer",
            "role": "viewer",
            "beat_seconds": 15.0,
            "limits": {
                "frame_bytes": 262144,
                "sessions": 1000,
                "commands": 16,
                "silence_seconds": PATIENT.silence_seconds,
            },
        }


# F1
async def test_a_session_is_followed_from_a_number_and_then_live(hub: Front) -> None:
    one, other = await hub.deck.have_session(), await hub.deck.have_session()
    async with hub.stream() as talk:
        answer = await talk.follow(sessions={one: 1}, epoch=hub.deck.epoch)
        assert answer["sessions"] == {one: {"status": "ok", "head": 3}}
        assert answer["all"] is False
        await hub.deck.say(other, "not this")
        await hub.deck.say(one, "this")
        events = await talk.events(3)
    assert [event["session"] for event in events] == [one] * 3
    assert numbers(events, one) == [2, 3, 4]
    assert events[-1]["event"]["line"]["text"] == "this"


# F2
async def test_all_are_followed_from_now_on_and_new_ones_too(hub: Front) -> None:
    old = await hub.deck.have_session()
    async with hub.stream() as talk:
        assert (await talk.follow(all=True))["all"] is True
        await hub.deck.say(old, "a")
        new = await hub.deck.have_session()
        events = await talk.events(4)
    assert numbers(events, old) == [4]
    assert numbers(events, new) == [1, 2, 3]


# F3
async def test_all_are_followed_and_some_from_their_number(hub: Front) -> None:
    one, other = await hub.deck.have_session(), await hub.deck.have_session()
    await hub.deck.say(one, *map(str, range(1200)))
    async with hub.stream() as talk:
        await talk.follow(all=True, sessions={one: 0})
        await hub.deck.say(one, "last")
        await hub.deck.say(other, "x")
        events = await talk.events(1205)
    assert numbers(events, one) == list(range(1, 1205))
    assert numbers(events, other) == [4]


async def test_a_client_comes_back_to_a_journal_that_could_not_be_read(
    hub: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would wait for ever for a session that the hub does not follow."""
    one = await hub.deck.have_session()

    async def away(session: str) -> SessionView:
        raise JournalError(f"{session} cannot be read", code="away")

    async with hub.stream() as talk:
        with monkeypatch.context() as patch:
            patch.setattr(hub.deck, "session", away)
            await talk.say(t="follow", id="f", sessions={one: 0})
            with anyio.fail_after(SECONDS):
                await talk.socket.wait_closed()
        assert talk.socket.close_code == UNAVAILABLE
    async with hub.stream() as talk:
        assert (await talk.follow(sessions={one: 0}))["sessions"][one]["status"] == "ok"


# F8
async def test_all_are_followed_after_a_position_of_this_journal_only(hub: Front) -> None:
    one, other = await hub.deck.have_session(), await hub.deck.have_session()
    epoch, position = hub.deck.epoch, hub.deck.position
    async with hub.stream() as talk:
        for after, of in ((1, "another"), (1, None), (position + 1, epoch)):
            answer = await talk.follow(all=True, after=after, epoch=of)
            assert (answer["t"], answer["all"]) == ("following", False)
        assert (await talk.follow(all=True, after=2, epoch=epoch))["all"] is True
        await hub.deck.say(one, "new")
        events = await talk.events(position - 2 + 1)
    assert [event["position"] for event in events] == list(range(3, position + 2))
    assert numbers(events, one) == [3, 4]
    assert numbers(events, other) == [1, 2, 3]


# F4
@pytest.mark.parametrize(
    ("after", "epoch", "reason"),
    [(4, "right", "ahead"), (1, "wrong", "epoch"), (0, "wrong", "epoch"), (1, None, "epoch")],
)
async def test_a_number_that_means_nothing_here_is_a_gap(
    hub: Front, after: int, epoch: str | None, reason: str
) -> None:
    session = await hub.deck.have_session()
    told = {"right": hub.deck.epoch, "wrong": "another", None: None}[epoch]
    async with hub.stream() as talk:
        answer = await talk.follow(sessions={session: after, "nobody": 0}, epoch=told)
        assert answer["sessions"] == {
            session: {"status": "gap", "reason": reason, "head": 3},
            "nobody": {"status": "gap", "reason": "unknown"},
        }
        # It is not followed: what comes next is another's.
        other = await hub.deck.have_session()
        await talk.follow(sessions={other: 0})
        await hub.deck.say(session, "unseen")
        await hub.deck.say(other, "seen")
        events = await talk.events(4)
    assert {event["session"] for event in events} == {other}


# F5
async def test_what_is_followed_can_change_without_loss_or_double(hub: Front) -> None:
    one, other = await hub.deck.have_session(), await hub.deck.have_session()
    async with hub.stream() as talk:
        await talk.follow(sessions={one: 0})
        await hub.deck.say(one, "a", "b")
        await talk.follow(sessions={other: 3}, epoch=hub.deck.epoch)
        await hub.deck.say(one, "c")
        await hub.deck.say(other, "d")
        events = await talk.events(7)
        assert numbers(events, one) == [1, 2, 3, 4, 5, 6]
        assert numbers(events, other) == [4]
        await talk.say(t="unfollow", id="u", sessions=[one])
        assert (await talk.hear("following"))["id"] == "u"
        await hub.deck.say(one, "unseen")
        await hub.deck.say(other, "seen")
        assert numbers(await talk.events(1), other) == [5]
        await talk.follow(sessions={one: 5}, epoch=hub.deck.epoch)
        assert numbers(await talk.events(2), one) == [6, 7]


# F6
async def test_a_session_that_is_deleted_tells_so(hub: Front) -> None:
    session = await hub.deck.have_session()
    async with hub.stream() as talk:
        await talk.follow(sessions={session: 3}, epoch=hub.deck.epoch)
        await hub.deck.journal.delete(session, by="me")
        (event,) = await talk.events(1)
    assert event["event"]["kind"] == "session.deleted"


# F7
async def test_more_sessions_than_allowed_are_refused_by_name(tmp_path: Path) -> None:
    async with front(tmp_path, pace=Pace(sessions=1)) as hub:
        one, other = await hub.deck.have_session(), await hub.deck.have_session()
        async with hub.stream() as talk:
            answer = await talk.follow(sessions={one: 0, other: 0})
            assert (answer["t"], answer["problem"]["code"]) == ("failed", "bad_request")
            assert (await talk.follow(all=True))["all"] is True


# E1
async def test_events_that_come_together_share_a_frame_and_keep_their_order(hub: Front) -> None:
    session = await hub.deck.have_session()
    async with hub.stream() as talk:
        await talk.follow(sessions={session: 3}, epoch=hub.deck.epoch)
        await hub.deck.say(session, *map(str, range(400)))
        frame = await talk.hear("events")
    assert frame["epoch"] == hub.deck.epoch
    assert numbers(frame["events"], session) == list(range(4, 404))


# E2
async def test_a_line_of_ten_megabytes_arrives_whole(hub: Front) -> None:
    session = await hub.deck.have_session()
    async with hub.stream() as talk:
        await talk.follow(sessions={session: 3}, epoch=hub.deck.epoch)
        await hub.deck.say(session, "a" * 10_000_000, "b")
        first, second = await talk.hear("events"), await talk.hear("events")
    assert len(first["events"][0]["event"]["line"]["text"]) == 10_000_000
    assert second["events"][0]["event"]["line"]["text"] == "b"


# E3
async def test_secrets_of_a_spec_are_masked_on_the_stream(hub: Front) -> None:
    async with hub.stream() as talk:
        await talk.follow(all=True)
        await hub.deck.have_session(env={"KEY": "hush"})
        events = await talk.events(3)
    assert events[0]["event"]["spec"]["env"] == {"KEY": "…"}


# E4
async def test_clients_that_follow_the_same_get_the_same_and_others_their_own(hub: Front) -> None:
    one, other = await hub.deck.have_session(), await hub.deck.have_session()
    async with hub.stream() as first, hub.stream() as second, hub.stream() as third:
        await first.follow(all=True)
        await second.follow(all=True)
        await third.follow(sessions={other: 3}, epoch=hub.deck.epoch)
        for number in range(50):
            await hub.deck.say(one, f"one {number}")
            await hub.deck.say(other, f"other {number}", "more")
        everything = await first.events(150)
        assert await second.events(150) == everything
        assert numbers(everything, one) == list(range(4, 54))
        own = await third.events(100)
        assert own == [event for event in everything if event["session"] == other]


PICTURE = {"type": "base64", "media_type": "image/png", "data": "A" * 100_000}


def _with_picture(prompt: str) -> PromptQueued:
    content = msgspec.json.encode([{"type": "image", "source": PICTURE}])
    return PromptQueued(prompt=prompt, content=msgspec.Raw(content), by="ada")


# E5
async def test_pictures_are_paths_for_a_client_that_asks_for_it(hub: Front) -> None:
    session = await hub.deck.have_session()
    await hub.deck.journal.append(session, [_with_picture("p")])
    async with hub.stream() as plain, hub.stream() as lean:
        await plain.follow(sessions={session: 0})
        whole = await plain.events(4)
        # From the journal, and then as it happens.
        await lean.follow(sessions={session: 0}, pictures=False)
        replayed = await lean.events(4)
        await hub.deck.journal.append(session, [_with_picture("q")])
        (happened,) = await lean.events(1)
    assert whole[3]["event"]["content"][0]["source"] == PICTURE
    for event, number in ((replayed[3], 4), (happened, 5)):
        source = event["event"]["content"][0]["source"]
        path = f"/api/sessions/{session}/events/{number}/pictures/"
        assert source["url"].startswith(path)
        assert source == {**PICTURE, "data": "", "url": source["url"]}
    assert replayed[:3] == whole[:3]


# E6
async def test_large_frames_are_compressed_for_a_client_that_takes_them(hub: Front) -> None:
    session = await hub.deck.have_session()
    await hub.deck.say(session, "large" * 4000)
    async with hub.stream() as plain, hub.stream() as packing:
        await plain.follow(sessions={session: 0})
        await packing.follow(sessions={session: 0}, packed=True)
        replayed = await packing.events(4)
        await hub.deck.say(session, "small")
        await hub.deck.say(session, "larger" * 4000)
        happened = await packing.events(2)
        assert replayed + happened == await plain.events(6)
        assert packing.packed >= 1
        assert plain.packed == 0
    assert numbers(replayed + happened, session) == [1, 2, 3, 4, 5, 6]


# L1
async def test_live_text_comes_before_its_message_and_whoever_joins_gets_all(hub: Front) -> None:
    session = await hub.deck.have_session()
    async with hub.stream() as early:
        await early.follow(sessions={session: 3}, epoch=hub.deck.epoch)
        hub.deck.type(session, "Hel")
        hub.deck.type(session, "lo ")
        live = await early.hear("live")
        assert live["deltas"][0] | {"text": ""} == {"session": session, "message": "m1", "text": ""}
        async with hub.stream() as late, hub.stream() as everywhere:
            await late.follow(sessions={session: 3}, epoch=hub.deck.epoch)
            await everywhere.follow(all=True)
            for talk in (late, everywhere):
                whole = await talk.hear("live")
                assert whole["whole"] is True
                assert whole["deltas"] == [{"session": session, "message": "m1", "text": "Hello "}]
            hub.deck.type(session, "world")
            assert (await late.hear("live"))["deltas"][0]["text"] == "world"
            await hub.deck.say(session, "Hello world")
            hub.deck.type(session, "Next")
            await late.hear("events")
            assert (await late.hear("live"))["deltas"][0]["text"] == "Next"


# L2
async def test_live_text_is_left_out_for_who_does_not_want_it(hub: Front) -> None:
    session = await hub.deck.have_session()
    async with hub.stream() as talk:
        await talk.follow(sessions={session: 3}, epoch=hub.deck.epoch, live=False)
        hub.deck.type(session, "x")
        await hub.deck.say(session, "x")
        assert (await talk.hear("live", "events"))["t"] == "events"


# C1
async def test_a_command_is_done_and_acknowledged_by_its_id(hub: Front) -> None:
    session = await hub.deck.have_session()
    async with hub.stream(Role.OPERATOR) as talk:
        command = {"command": "prompt.send", "session": session, "prompt": "p", "content": "do"}
        await talk.say(t="command", id="1", command=command | {"by": "somebody else"})
        done = await talk.hear("done", "failed")
    assert done == {"t": "done", "id": "1", "outcome": {"session": session, "prompt": "p"}}
    assert hub.deck.submitted[-1].by == "the operator"


# C2
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ({"command": "session.interrupt", "session": "nobody"}, "not_found"),
        ({"command": "session.explode"}, "bad_request"),
        ({"command": "session.interrupt", "session": "x", "extra": 1}, "bad_request"),
        ({"command": "session.control", "session": "x", "request": 1, "timeout": 9}, "forbidden"),
        (
            {"command": "session.control", "session": "x", "request": 1, "timeout": 1e9},
            "bad_request",
        ),
        ({"command": "prompt.send", "session": "x", "prompt": "", "content": "a"}, "bad_request"),
        ("nonsense", "bad_request"),
    ],
)
async def test_a_command_that_cannot_be_done_fails_by_its_id(
    hub: Front, command: object, code: str
) -> None:
    async with hub.stream(Role.OPERATOR) as talk:
        await talk.say(t="command", id="1", command=command)
        failed = await talk.hear("done", "failed")
        assert (failed["id"], failed["problem"]["code"]) == ("1", code)
        await talk.follow(all=True)  # and the connection stays


# C3
async def test_a_viewer_answers_nothing(hub: Front) -> None:
    ask = await hub.deck.ask(await hub.deck.have_session())
    before = len(hub.deck.submitted)
    async with hub.stream(Role.VIEWER) as talk:
        answer = {"command": "ask.answer", "ask": ask, "answer": {"answer": "allow"}}
        await talk.say(t="command", id="1", command=answer)
        failed = await talk.hear("done", "failed")
    assert failed["problem"]["code"] == "forbidden"
    assert len(hub.deck.submitted) == before
    assert len(await hub.deck.asks()) == 1


# C4
async def test_a_conflict_has_the_code_of_the_hub(hub: Front) -> None:
    session = await hub.deck.have_session()
    hub.deck.fails = Conflict("already_answered", "by Ada")
    async with hub.stream() as talk:
        await talk.say(t="command", id="1", command={"command": "session.stop", "session": session})
        failed = await talk.hear("failed")
    assert (failed["problem"]["code"], failed["problem"]["detail"]) == (
        "already_answered",
        "by Ada",
    )


# C5
async def test_too_many_commands_at_once_are_refused_and_the_others_are_done(
    tmp_path: Path,
) -> None:
    async with front(tmp_path, pace=Pace(commands=2)) as hub:
        session = await hub.deck.have_session()
        hub.deck.hold = anyio.Event()
        async with hub.stream() as talk:
            for number in range(3):
                command = {"command": "session.interrupt", "session": session}
                await talk.say(t="command", id=str(number), command=command)
            failed = await talk.hear("failed")
            assert (failed["id"], failed["problem"]["code"]) == ("2", "too_many_commands")
            hub.deck.hold.set()
            assert {(await talk.hear("done"))["id"] for _ in range(2)} == {"0", "1"}


# C6
async def test_a_command_is_done_although_its_client_is_gone(hub: Front) -> None:
    session = await hub.deck.have_session()
    hub.deck.hold = anyio.Event()
    async with hub.stream() as talk:
        command = {"command": "prompt.send", "session": session, "prompt": "p", "content": "do"}
        await talk.say(t="command", id="1", command=command)
        with anyio.fail_after(SECONDS):
            await until(lambda: isinstance(hub.deck.submitted[-1], SendPrompt))
    follower = hub.deck.follow({session: 3})
    hub.deck.hold.set()
    with anyio.fail_after(SECONDS):
        (stored,) = await anext(follower)
    assert isinstance(stored.event, PromptQueued)


# B1
async def test_the_server_says_that_it_is_there(tmp_path: Path) -> None:
    async with front(tmp_path, pace=Pace(beat_seconds=0.05)) as hub, hub.stream() as talk:
        assert await talk.hear("beat") == {"t": "beat"}


def test_the_server_says_so_in_an_event_loop_that_somebody_else_has_started(
    tmp_path: Path,
) -> None:
    async def listen() -> None:
        async with front(tmp_path, pace=Pace(beat_seconds=0.05)) as hub, hub.stream() as talk:
            assert await talk.hear("beat") == {"t": "beat"}
            assert await talk.hear("beat") == {"t": "beat"}

    asyncio.run(listen())


# B2
async def test_a_client_that_is_silent_for_too_long_is_sent_away(tmp_path: Path) -> None:
    pace = Pace(beat_seconds=0.5, silence_seconds=2)
    async with (
        front(tmp_path, pace=pace) as hub,
        hub.stream() as silent,
        hub.stream() as awake,
        anyio.create_task_group() as tasks,
    ):

        async def stay_awake() -> None:
            while True:
                await awake.say(t="beat")
                await anyio.sleep(0.05)

        tasks.start_soon(stay_awake)
        assert await silent.closed() == 4408
        assert (await awake.follow(all=True))["all"] is True
        tasks.cancel_scope.cancel()


# B3
async def test_who_loses_access_loses_the_connection(tmp_path: Path) -> None:
    async with front(tmp_path, pace=Pace(beat_seconds=0.05)) as hub, hub.stream() as talk:
        hub.access.revoke(hub.access.grants()[0].id)
        assert await talk.closed() == 4401


# X1
@pytest.mark.parametrize(
    "garbage",
    [
        "",
        "{",
        "null",
        '{"t":"nonsense"}',
        '{"t":"follow"}',
        '{"t":"follow","id":"1","sessions":{"a":-1}}',
        '{"t":"follow","id":"1","sesions":{}}',
        '{"t":"command","id":""}',
        b"\xff\xfe",
        b'{"t":"command","id":"1","command":{"session":"\xff"}}',
        "[" * 100_000,
    ],
)
async def test_a_frame_that_cannot_be_read_ends_the_connection_with_a_reason(
    hub: Front, garbage: str | bytes
) -> None:
    async with hub.stream() as talk, hub.stream() as other:
        await talk.socket.send(garbage)
        error = await talk.hear("error")
        assert error["problem"]["code"] == "bad_request"
        assert error["problem"]["detail"].startswith("frame: ")
        assert await talk.closed() == 4400
        assert (await other.follow(all=True))["all"] is True


# X2
async def test_a_command_that_is_too_large_is_refused_and_another_frame_ends_the_connection(
    tmp_path: Path,
) -> None:
    async with front(tmp_path, pace=Pace(frame_bytes=1000)) as hub, hub.stream() as talk:
        await talk.say(t="command", id="1", command="x" * 2000)
        refused = (await talk.hear("failed"))["problem"]
        assert (refused["code"], refused["detail"]) == (
            "too_large",
            "a command has at most 1000 bytes",
        )
        await talk.say(t="follow", id="2" * 50, sessions={f"session-{n}": 0 for n in range(100)})
        assert "more than 1000" in (await talk.hear("error"))["problem"]["detail"]
        assert await talk.closed() == 4400


# X3
async def test_when_the_hub_stops_clients_are_told_to_come_back(hub: Front) -> None:
    async with hub.stream() as talk:
        await talk.follow(all=True)
        await hub.deck.journal.close()
        assert await talk.closed() == 1012


# X4
async def test_connections_leave_nothing_behind(hub: Front) -> None:
    token = hub.access.make_token("me", Role.OWNER)
    for _ in range(20):
        async with connect(
            f"ws://{hub.host}/api/stream",
            additional_headers={"authorization": f"Bearer {token}"},
            proxy=None,
        ) as socket:
            await socket.send(msgspec.json.encode({"t": "follow", "id": "1", "all": True}))
            await socket.recv()
            socket.transport.abort()
    with anyio.fail_after(SECONDS):
        await until(lambda: hub.streams() == 0)
    assert len(hub.deck.journal._tail._everything) <= 1  # the search index's, if it has begun
    assert hub.deck.listeners == 1  # the endpoint's, and no connection's
