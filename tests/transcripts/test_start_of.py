"""Where the end of a long session file begins: found from its end on."""

from __future__ import annotations

import io
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.transcripts import lines
from quarterdeck.transcripts.lines import start_of


class Counted(io.BytesIO):
    """A file that counts what is read of it."""

    count = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.count += len(data)
        return data


def line(number: int, length: int) -> bytes:
    return b'{"parentUuid":"u%d","uuid":"u%d","text":"%b"}\n' % (number - 1, number, b"x" * length)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK", 300)
    monkeypatch.setattr(lines, "MARGIN", 2000)


@given(
    lengths=st.lists(st.integers(0, 700), min_size=1, max_size=30),
    chosen=st.sets(st.integers(0, 29), max_size=3),
)
def test_a_file_is_read_from_the_first_line_with_one_of_the_uuids(
    lengths: list[int], chosen: set[int]
) -> None:
    made = [line(number, length) for number, length in enumerate(lengths)]
    here = sorted(number for number in chosen if number < len(made))
    starts = [sum(map(len, made[:number])) for number in range(len(made))]
    found = start_of(io.BytesIO(b"".join(made)), {f"u{number}" for number in chosen})
    gaps = [starts[b] - starts[a] for a, b in itertools.pairwise(here)]
    if all(gap < 1500 for gap in gaps):
        assert found == (starts[here[0]] if here else 0)
    else:
        assert found in [starts[number] for number in here]


def test_little_is_read_of_a_large_file() -> None:
    made = [line(number, 100) for number in range(5000)]
    stream = Counted(b"".join(made))
    assert start_of(stream, {"u4990", "u4995"}) == sum(map(len, made[:4990]))
    assert stream.count < 10_000


def test_a_uuid_within_a_text_is_none_of_a_line() -> None:
    nested = b'{"uuid":"a","text":"{\\"uuid\\":\\"b\\"}"}\n'
    assert start_of(io.BytesIO(line(1, 5) + nested), {"b"}) == 0
    assert start_of(io.BytesIO(line(1, 5) + nested), {"a"}) == len(line(1, 5))


def test_an_empty_file_and_no_uuid_begin_at_the_beginning() -> None:
    assert start_of(io.BytesIO(), {"a"}) == 0
    assert start_of(io.BytesIO(line(1, 5)), set()) == 0
