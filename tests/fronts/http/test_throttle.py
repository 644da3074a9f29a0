from __future__ import annotations

from quarterdeck.fronts.http.throttle import ADDRESSES, FAILURES, WINDOW_SECONDS, Throttle


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_address_waits_after_its_failures_and_others_do_not() -> None:
    clock = Clock()
    throttle = Throttle(clock=clock)
    for _ in range(FAILURES):
        assert throttle.wait("192.0.2.1") == 0
        throttle.note_failure("192.0.2.1")
    assert throttle.wait("192.0.2.1") == WINDOW_SECONDS
    assert throttle.wait("192.0.2.2") == 0
    clock.now += WINDOW_SECONDS
    assert throttle.wait("192.0.2.1") == 0
    throttle.note_failure("192.0.2.1")
    assert throttle.wait("192.0.2.1") == 0


def test_a_success_is_a_new_beginning() -> None:
    throttle = Throttle(clock=Clock())
    for _ in range(FAILURES):
        throttle.note_failure("a")
    throttle.note_success("a")
    assert throttle.wait("a") == 0


def test_a_whole_ipv6_network_counts_as_one() -> None:
    throttle = Throttle(clock=Clock())
    for number in range(FAILURES):
        throttle.note_failure(f"2001:db8::{number:x}")
    assert throttle.wait("2001:db8::ffff") > 0
    assert throttle.wait("2001:db8:0:1::1") == 0


def test_an_ipv4_address_in_ipv6_clothes_is_that_address() -> None:
    throttle = Throttle(clock=Clock())
    for _ in range(FAILURES):
        throttle.note_failure("::ffff:192.0.2.1")
    assert throttle.wait("192.0.2.1") > 0
    assert throttle.wait("::ffff:192.0.2.2") == 0


def test_memory_is_bounded_whatever_comes() -> None:
    throttle = Throttle(clock=Clock())
    for number in range(ADDRESSES * 2):
        throttle.note_failure(f"address {number}")
    assert len(throttle) == ADDRESSES
