from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.links.pipes import KEPT_LINES, LONGEST_LINE, StderrTail


def test_only_the_last_lines_are_kept_and_long_ones_are_cut() -> None:
    tail = StderrTail()
    for number in range(1000):
        tail.feed(f"line {number}\n".encode())
    tail.feed(b"x" * 1_000_000)
    tail.feed(b"x" * 1_000_000 + b"\nafter\n")
    assert len(tail.lines) == KEPT_LINES
    assert tail.lines[-1] == "after"
    assert tail.lines[-2] == "x" * LONGEST_LINE + " …"
    assert tail.lines[-3] == "line 999"


@given(st.lists(st.binary(max_size=30)))
def test_lines_do_not_depend_on_how_the_bytes_were_cut(pieces: list[bytes]) -> None:
    heard: list[str] = []
    whole, cut = StderrTail(), StderrTail(heard.append)
    whole.feed(b"".join(pieces))
    for piece in pieces:
        cut.feed(piece)
    assert cut.lines == whole.lines
    cut.end()
    whole.end()
    assert cut.lines == whole.lines == tuple(heard[-KEPT_LINES:])
