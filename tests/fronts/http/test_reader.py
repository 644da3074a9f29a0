"""What a client of the stream is given of the past, when the journal alone still has it."""

from __future__ import annotations

import pytest

from support.front import Front


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
