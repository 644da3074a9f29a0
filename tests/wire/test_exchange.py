"""Requests in both directions: each ends exactly once, whatever the order of what happens."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from quarterdeck.domain.errors import UsageError
from quarterdeck.wire.commands import GetSettings, Initialize, Interrupt, McpStatus, SetModel
from quarterdeck.wire.exchange import (
    ANSWER_BYTES,
    FEWEST_ANSWERS,
    REMEMBERED_ANSWERS,
    OurRequests,
    Ours,
    RecentIds,
    TheirRequests,
    request_ids,
)
from quarterdeck.wire.peer import Asked, Event, Peer, RequestEnded, Withdrawn
from quarterdeck.wire.versions import release
from support.lines import (
    asks_permission,
    cancels,
    error_answer,
    success_answer,
)


def test_ids_are_unique_across_controllers() -> None:
    first, second = request_ids(), request_ids()
    ids = [first(), first(), second(), second()]
    assert len(set(ids)) == 4


def test_a_request_of_ours_ends_once() -> None:
    ours = OurRequests()
    ours.begin(Ours("a", "interrupt", b"line"))
    assert [request.request_id for request in ours.open] == ["a"]
    assert ours.end("a") is not None
    assert ours.end("a") is None
    assert ours.open == ()


def test_an_id_that_is_open_cannot_be_used_again() -> None:
    ours = OurRequests()
    ours.begin(Ours("a", "interrupt", b""))
    with pytest.raises(UsageError, match="already in use"):
        ours.begin(Ours("a", "interrupt", b""))


def test_the_first_answer_wins() -> None:
    theirs = TheirRequests()
    assert theirs.begin("x")
    assert theirs.answer("x", b"first")
    assert not theirs.answer("x", b"second")
    assert not theirs.withdraw("x")
    assert theirs.answer_line("x") == b"first"


def test_a_withdrawn_request_cannot_be_answered() -> None:
    theirs = TheirRequests()
    theirs.begin("x")
    assert theirs.withdraw("x")
    assert not theirs.answer("x", b"late")
    assert theirs.answer_line("x") is None


def test_old_answers_are_forgotten_in_bounded_memory() -> None:
    theirs = TheirRequests()
    for n in range(REMEMBERED_ANSWERS + 10):
        theirs.begin(str(n))
        theirs.answer(str(n), b"answer")
    assert len(theirs.answers()) == REMEMBERED_ANSWERS
    assert theirs.answer_line("0") is None


def test_large_answers_are_dropped_earlier_but_their_ids_are_remembered() -> None:
    theirs = TheirRequests()
    count = 2 * FEWEST_ANSWERS
    large = b"x" * (2 * ANSWER_BYTES // count)
    for n in range(count):
        theirs.begin(str(n))
        theirs.answer(str(n), large)
        theirs.begin(f"{n}-withdrawn")
        theirs.withdraw(f"{n}-withdrawn")
    assert FEWEST_ANSWERS <= len(theirs.answers()) <= ANSWER_BYTES // len(large) < count
    assert theirs.answer_line("0") is None
    assert not theirs.begin("0"), "it has ended all the same"
    assert theirs.answer_line(str(count - 1)) == large


def test_recent_ids_remember_at_least_their_size_and_at_most_half_as_many_again() -> None:
    recent = RecentIds(100)
    for n in range(1000):
        assert recent.complete == (n < 150)
        assert recent.add(str(n))
        assert len(recent.remembered) <= 150
        assert all(str(each) in recent for each in range(max(0, n - 99), n + 1))
    assert not recent.add("999")


def test_the_newest_ids_leave_a_margin_of_older_ones_that_are_known_too() -> None:
    recent = RecentIds(100)
    for n in range(100):
        recent.add(str(n))
    assert recent.newest == recent.remembered, "as long as none is forgotten"
    for n in range(100, 1000):
        recent.add(str(n))
        newest = sorted(map(int, recent.newest))
        assert newest == list(range(n - len(newest) + 1, n + 1))
        if not recent.complete:
            assert len(recent.remembered) - len(newest) >= 50


class EachRequestEndsOnce(RuleBasedStateMachine):
    """Any interleaving of requests, answers, cancellations, reconnects and the loss of the link."""

    @initialize()
    def start(self) -> None:
        self.peer = Peer(version=release(120), resumable=True)
        self.sent: list[str] = []
        self.ended: dict[str, int] = {}
        self.asked: dict[str, int] = {}
        self.settled: dict[str, int] = {}
        self.their_ids = 0
        self.closed = False
        self.take_request(Initialize())

    def take_request(
        self, command: Initialize | Interrupt | SetModel | GetSettings | McpStatus
    ) -> None:
        self.sent.append(self.peer.request(command))
        self.peer.data_to_send()

    def take(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case RequestEnded(request_id=request_id):
                    self.ended[request_id] = self.ended.get(request_id, 0) + 1
                case Asked(request=request):
                    self.asked[request.request_id] = self.asked.get(request.request_id, 0) + 1
                case Withdrawn(request_id=request_id):
                    self.settled[request_id] = self.settled.get(request_id, 0) + 1
                case _:
                    pass
        self.peer.data_to_send()

    @rule(which=st.sampled_from([Interrupt(), SetModel(model="opus"), GetSettings(), McpStatus()]))
    def we_ask(self, which: Interrupt | SetModel | GetSettings | McpStatus) -> None:
        if not self.closed:
            self.take_request(which)

    @rule(index=st.integers(0, 30), good=st.booleans())
    def the_cli_answers(self, index: int, good: bool) -> None:
        """In any order, and as often as it likes."""
        request_id = self.sent[index % len(self.sent)]
        line = success_answer(request_id) if good else error_answer(request_id, "no")
        self.take(self.peer.receive_data(line))

    @rule(index=st.integers(0, 30))
    def we_give_up(self, index: int) -> None:
        self.take(self.peer.give_up(self.sent[index % len(self.sent)], "enough"))

    @rule()
    def the_cli_asks(self) -> None:
        self.their_ids += 1
        self.take(self.peer.receive_data(asks_permission(f"their-{self.their_ids}")))

    @rule(index=st.integers(1, 30))
    def the_cli_repeats_itself(self, index: int) -> None:
        if self.their_ids:
            self.take(
                self.peer.receive_data(asks_permission(f"their-{1 + index % self.their_ids}"))
            )

    @rule(index=st.integers(1, 30))
    def the_cli_withdraws(self, index: int) -> None:
        self.take(self.peer.receive_data(cancels(f"their-{index}")))

    @rule(index=st.integers(1, 30))
    def we_answer(self, index: int) -> None:
        request_id = f"their-{index}"
        if self.peer.refuse(request_id, "no"):
            self.settled[request_id] = self.settled.get(request_id, 0) + 1
        self.peer.data_to_send()

    @rule()
    def the_link_comes_back(self) -> None:
        if not self.closed:
            self.take(self.peer.link_resumed())

    @rule()
    def the_link_ends(self) -> None:
        self.closed = True
        self.take(self.peer.link_closed("gone"))

    @invariant()
    def nothing_ends_twice(self) -> None:
        assert all(times == 1 for times in self.ended.values())
        assert all(times == 1 for times in self.settled.values())
        assert all(times == 1 for times in self.asked.values())
        assert set(self.settled) <= set(self.asked)

    @invariant()
    def everything_has_ended_once_the_link_has(self) -> None:
        if self.closed:
            assert set(self.sent) <= set(self.ended)
            assert set(self.asked) == set(self.settled)

    def teardown(self) -> None:
        if hasattr(self, "peer"):
            self.the_link_ends()
            self.everything_has_ended_once_the_link_has()


TestEachRequestEndsOnce = EachRequestEndsOnce.TestCase
