"""A turn whose end may have been lost: when it is over, and when it is not."""

from __future__ import annotations

import pytest

from quarterdeck.hub.turns import SETTLE_MS, LostTurn
from quarterdeck.wire import codec


def doubted() -> LostTurn:
    turn = LostTurn()
    turn.link_resumed(lost=True, busy=True)
    return turn


def test_an_answered_interrupt_and_then_nothing_means_that_the_turn_is_over() -> None:
    turn = doubted()
    assert not turn.is_over(10**9)
    turn.note_interrupt(1000)
    assert not turn.is_over(1000 + SETTLE_MS - 1)
    assert turn.is_over(1000 + SETTLE_MS)


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"keep_alive"}',
        b'{"type":"control_response","response":{"subtype":"success","request_id":"r"}}',
        b'{"type":"user","message":{"role":"user","content":"x"},"isReplay":true,"uuid":"u"}',
    ],
)
def test_what_an_idle_cli_says_too_is_no_sign_of_a_turn(line: bytes) -> None:
    turn = doubted()
    turn.note_interrupt(0)
    turn.receive(codec.from_cli(line))
    assert turn.is_over(SETTLE_MS)


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"system","subtype":"init","session_id":"s","uuid":"u"}',
        b'{"type":"user","message":{"role":"user","content":"x"},"uuid":"u"}',
        b'{"type":"result","subtype":"success","uuid":"u"}',
        b'{"type":"control_cancel_request","request_id":"r"}',
    ],
)
def test_what_belongs_to_a_turn_ends_the_doubt(line: bytes) -> None:
    turn = doubted()
    turn.note_interrupt(0)
    turn.receive(codec.from_cli(line))
    assert not turn.is_over(10**9)


def test_an_interrupt_proves_nothing_where_nothing_was_lost() -> None:
    turn = LostTurn()
    turn.link_resumed(lost=False, busy=True)
    turn.note_interrupt(0)
    assert not turn.is_over(10**9)
    idle = LostTurn()
    idle.link_resumed(lost=True, busy=False)
    idle.note_interrupt(0)
    assert not idle.is_over(10**9)


def test_a_doubt_outlives_another_reconnect() -> None:
    turn = doubted()
    turn.note_interrupt(0)
    turn.link_resumed(lost=False, busy=True)
    assert not turn.is_over(10**9)  # the interrupt may have been lost with the link
    turn.note_interrupt(0)
    assert turn.is_over(SETTLE_MS)
