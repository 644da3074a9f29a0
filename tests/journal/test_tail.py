"""The newest events, and the bell."""

from __future__ import annotations

import anyio

from quarterdeck.journal.tail import Tail
from quarterdeck.protocol.events import Noted
from quarterdeck.protocol.stored_events import Stored
from support.bounds import SECONDS


def event(session: str, seq: int, position: int, size: int = 10) -> Stored:
    note = Noted(level="info", text="x")
    return Stored(session=session, seq=seq, position=position, at=0, event=note, json=b"x" * size)


def filled(count: int, *, most_events: int = 100, most_bytes: int = 10_000, size: int = 10) -> Tail:
    """A tail to which the events of two sessions in turn were published."""
    tail = Tail(0, {}, most_events=most_events, most_bytes=most_bytes)
    for position in range(1, count + 1):
        session = "ab"[(position - 1) % 2]
        tail.publish([event(session, (position + 1) // 2, position, size)])
    return tail


def test_what_follows_a_number_is_given_up_to_the_limit() -> None:
    tail = filled(20)
    assert [each.seq for each in tail.recent("a", 3, 4)] == [4, 5, 6, 7]
    assert [each.seq for each in tail.recent("b", 8, 100)] == [9, 10]
    assert [each.position for each in tail.recent_of_all(17, 100)] == [18, 19, 20]
    assert tail.recent("a", 10, 5) == tail.recent_of_all(20, 5) == tail.recent("c", 0, 5) == []
    assert (tail.position, tail.heads) == (20, {"a": 10, "b": 10})


def test_nothing_is_given_when_what_comes_first_is_gone() -> None:
    tail = filled(20, most_events=10)
    assert len(tail) == 10
    assert tail.recent("a", 4, 5) == []
    assert [each.seq for each in tail.recent("a", 5, 5)] == [6, 7, 8, 9, 10]
    assert tail.recent_of_all(9, 5) == []
    assert [each.position for each in tail.recent_of_all(10, 2)] == [11, 12]


def test_the_bytes_are_bounded_too_and_one_that_is_too_large_is_not_kept() -> None:
    tail = filled(20, most_bytes=55)
    assert len(tail) == 5
    tail.publish([event("a", 11, 21, size=56)])
    assert len(tail) == 0
    assert tail.position == 21
    tail.publish([event("a", 12, 22)])
    assert [each.seq for each in tail.recent("a", 11, 5)] == [12]
    assert tail.recent("a", 10, 5) == []


async def test_only_followers_of_a_session_are_woken_by_it() -> None:
    tail = filled(2)
    woken: list[str] = []

    async def listen(name: str, sessions: list[str] | None) -> None:
        await tail.wait(sessions)
        woken.append(name)

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(listen, "all", None)
            group.start_soon(listen, "a", ["a"])
            group.start_soon(listen, "a and b", ["a", "b"])
            group.start_soon(listen, "c", ["c"])
            await anyio.wait_all_tasks_blocked()
            tail.publish([event("b", 2, 3)])
            await anyio.wait_all_tasks_blocked()
            assert sorted(woken) == ["a and b", "all"]
            tail.close()
    assert sorted(woken) == ["a", "a and b", "all", "c"]


async def test_whoever_stops_waiting_leaves_nothing_behind() -> None:
    tail = filled(2)
    for _ in range(3):
        with anyio.move_on_after(0.01):
            await tail.wait(["a", "b"])
        with anyio.move_on_after(0.01):
            await tail.wait(None)
    assert not tail._listening
    assert not tail._everything
