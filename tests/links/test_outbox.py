from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.links.websocket.outbox import Outbox


def taken(outbox: Outbox, now: float) -> list[bytes]:
    found = []
    while (data := outbox.take(now)) is not None:
        found.append(data)
    return found


def test_what_was_written_is_written_again_until_the_other_end_was_heard_after_it() -> None:
    outbox = Outbox(proof_seconds=1.0)
    outbox.put(b"a")
    assert taken(outbox, 10.0) == [b"a"]
    outbox.put(b"b")
    assert taken(outbox, 10.5) == [b"b"]
    outbox.confirm(11.2)  # proves a, which was written more than a second before, and not b
    outbox.put(b"c")
    outbox.requeue()
    assert taken(outbox, 20.0) == [b"b", b"c"]
    outbox.requeue()
    assert taken(outbox, 21.0) == [b"b", b"c"]
    outbox.confirm(22.0)
    outbox.requeue()
    assert outbox.empty


def test_what_waits_makes_it_full_and_what_is_in_doubt_is_forgotten_from_the_oldest() -> None:
    outbox = Outbox(limit=10)
    outbox.put(b"12345")
    before = outbox.full
    outbox.put(b"67890")
    assert (before, outbox.full) == (False, True)
    taken(outbox, 0.0)
    assert not outbox.full
    outbox.put(b"abc")
    taken(outbox, 0.0)
    outbox.requeue()
    assert taken(outbox, 1.0) == [b"67890", b"abc"]
    outbox.put(b"x" * 100)  # one line over the limit is kept all the same
    taken(outbox, 1.0)
    outbox.requeue()
    assert taken(outbox, 2.0) == [b"x" * 100]


def test_what_was_written_long_before_a_loss_was_noticed_has_arrived() -> None:
    outbox = Outbox(alive_seconds=45.0)
    for number in range(4):
        outbox.put(b"%d" % number)
        taken(outbox, number * 20.0)
    outbox.connection_lost(70.0)
    outbox.requeue()
    assert taken(outbox, 80.0) == [b"2", b"3"]


@given(st.lists(st.sampled_from(["put", "take", "hear", "reconnect"]), max_size=60))
def test_no_line_is_lost_and_their_order_is_kept_whatever_happens(steps: list[str]) -> None:
    outbox = Outbox(proof_seconds=1.0)
    lines: list[bytes] = []
    connection: list[bytes] = []  # what the present connection was given
    now, proven = 0.0, 0
    written_at: dict[bytes, float] = {}
    for step in steps:
        now += 0.4
        match step:
            case "put":
                lines.append(b"%d" % len(lines))
                outbox.put(lines[-1])
            case "take":
                if (data := outbox.take(now)) is not None:
                    connection.append(data)
                    written_at[data] = now
            case "hear":
                outbox.confirm(now)
                while proven < len(lines) and (
                    lines[proven] in connection and written_at[lines[proven]] <= now - 1.0
                ):
                    proven += 1
            case _:
                outbox.requeue()
                connection = []
    outbox.requeue()
    assert taken(outbox, now) == lines[proven:]
