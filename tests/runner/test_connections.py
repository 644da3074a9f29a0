"""Connections through the proxy: the first at once, repetitions counted, all of them bounded."""

from __future__ import annotations

from quarterdeck.runner.connections import MOST_HOSTS, OTHERS, REPEAT_SECONDS, ConnectionLog, Entry


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_repetitions_are_counted_and_told_with_the_next_one_or_at_the_end() -> None:
    clock = Clock()
    log = ConnectionLog(clock)
    for _ in range(5):
        log.note("a.example", 443, allowed=True)
    log.note("a.example", 443, allowed=False)
    assert log.take() == [
        Entry(host="a.example", port=443, allowed=True),
        Entry(host="a.example", port=443, allowed=False),
    ]
    clock.now = REPEAT_SECONDS
    log.note("a.example", 443, allowed=True)
    assert log.take() == [Entry(host="a.example", port=443, allowed=True, count=5)]
    log.note("a.example", 443, allowed=True)
    assert log.take() == []
    log.finish()
    log.finish()
    assert log.take() == [Entry(host="a.example", port=443, allowed=True)]


def test_who_listens_late_is_told_of_what_came_before() -> None:
    log = ConnectionLog()
    log.note("a.example", 443, allowed=True)
    taken: list[Entry] = []
    log.listen(lambda: taken.extend(log.take()))
    log.note("b.example", 80, allowed=False)
    assert [entry.host for entry in taken] == ["a.example", "b.example"]


def test_an_agent_that_tries_every_host_makes_a_bounded_number_of_entries() -> None:
    log = ConnectionLog()
    for number in range(MOST_HOSTS * 3):
        log.note(f"{number}.example", 443, allowed=False)
    log.finish()
    entries = log.take()
    assert len(entries) == MOST_HOSTS + 2
    assert sum(entry.count for entry in entries) == MOST_HOSTS * 3
    assert entries[-1].host == OTHERS
