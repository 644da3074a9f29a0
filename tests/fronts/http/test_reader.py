"""What a client of the stream is given of the past, when the journal alone still has it."""

from __future__ import annotations

import anyio
import pytest
from anyio import wait_all_tasks_blocked

from quarterdeck.fronts.http.reader import Reader
from quarterdeck.protocol.stored_events import RawEvents, Stored
from support.bounds import SECONDS
from support.front import Front
from support.small_deck import SmallDeck


@pytest.mark.parametrize("everything", [False, True])
async def test_history_that_is_only_in_the_journal_comes_whole_and_masked(
    hub: Front, everything: bool
) -> None:
    one, other = [await hub.deck.have_session(env={"KEY": "hush"}) for _ in range(2)]
    await hub.deck.say(one, *map(str, range(2000)))
    hub.deck.journal._tail.forget()  # as when the hub has just started
    await hub.deck.say(other, "recent")
    async with hub.stream() as talk:
        await talk.follow(all=everything, sessions={one: 0, other: 0})
        await hub.deck.say(one, "last")
        await hub.deck.say(other, "x")
        events = await talk.events(2009)
    for session, last in ((one, 2004), (other, 5)):
        numbers = [event["seq"] for event in events if event["session"] == session]
        assert numbers == list(range(1, last + 1))
    said = [event["event"] for event in events if event["session"] == one]
    assert said[0]["spec"]["env"] == {"KEY": "…"}
    assert [each["line"]["text"] for each in said[3:]] == [*map(str, range(2000)), "last"]


async def test_a_session_whose_past_is_wanted_is_not_told_of_by_what_came_at_that_moment() -> None:
    deck = SmallDeck()
    session = await deck.have_session()
    reader = Reader(deck)
    reader.follow({}, everything=True)
    found: list[Stored] = []

    async def read() -> None:
        while len(found) < 5:
            batch = await reader.next()
            assert not isinstance(batch, RawEvents)  # all of it is in memory
            found.extend(batch)

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await wait_all_tasks_blocked()
            await deck.say(session, "this wakes the reader")
            reader.follow({session: 0}, everything=True)
            await wait_all_tasks_blocked()
            await deck.say(session, "next")
    assert [stored.seq for stored in found] == [1, 2, 3, 4, 5]
