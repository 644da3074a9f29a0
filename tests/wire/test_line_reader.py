"""Lines out of chunks."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.wire import codec
from quarterdeck.wire.base import Message
from quarterdeck.wire.line_reader import KEPT_OF_OVERSIZED, Line, LineReader, OversizedLine

# Bytes that matter to framing, mixed with some that do not.
streams = st.lists(
    st.sampled_from(
        [b"\n", b"\r", b"\r\n", b" ", b"\t", b"{", b"{}", b'{"a":1}', b"x", b"\xc3", b"\xa4"]
    )
    | st.binary(max_size=6),
    max_size=40,
).map(b"".join)


def read(chunks: list[bytes], max_line: int = 1 << 20) -> list[Line]:
    reader = LineReader(max_line)
    lines = [line for chunk in chunks for line in reader.feed(chunk)]
    last = reader.end()
    return lines if last is None else [*lines, last]


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    return [stream[start:stop] for start, stop in pairwise(edges)]


def test_a_chunk_of_several_lines_gives_each_of_them_in_order() -> None:
    assert LineReader().feed(b'{"a":1}\n{"b":2}\n') == [b'{"a":1}', b'{"b":2}']


def test_half_a_line_waits_for_its_other_half() -> None:
    reader = LineReader()
    assert reader.feed(b'{"a"') == []
    assert reader.feed(b":") == []
    assert reader.feed(b'1}\n{"b"') == [b'{"a":1}']
    assert reader.feed(b":2}\n") == [b'{"b":2}']


def test_a_character_cut_in_two_is_whole_again() -> None:
    line = json.dumps({"text": "ä😀"}, ensure_ascii=False).encode()
    for place in range(len(line)):
        assert read([line[:place], line[place:] + b"\n"]) == [line]


def test_an_empty_chunk_changes_nothing() -> None:
    assert read([b"", b'{"a"', b"", b":1}", b"", b"\n", b""]) == [b'{"a":1}']


def test_a_carriage_return_before_the_line_feed_is_taken_off() -> None:
    assert read([b'{"a":1}\r\n{"b":2}\r\n']) == [b'{"a":1}', b'{"b":2}']


def test_a_carriage_return_and_its_line_feed_may_come_apart() -> None:
    assert read([b'{"a":1}\r', b'\n{"b":2}\n']) == [b'{"a":1}', b'{"b":2}']


def test_a_carriage_return_inside_a_line_stays() -> None:
    assert read([b"{\r}\n"]) == [b"{\r}"]


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b" \n", b" \t \r\n", b"\n\n\n", b"\x0b\x0c\n"])
def test_blank_lines_are_dropped_wherever_they_are(blank: bytes) -> None:
    assert read([blank + b"{}\n" + blank + b"[]\n" + blank]) == [b"{}", b"[]"]


def test_a_line_that_is_no_object_is_a_line_all_the_same() -> None:
    assert read([b"oops\n{}\n~\n"]) == [b"oops", b"{}", b"~"]


def test_the_end_gives_the_line_that_was_begun() -> None:
    reader = LineReader()
    assert reader.feed(b'{"a":1}\n{"cut') == [b'{"a":1}']
    assert reader.end() == b'{"cut'
    assert reader.end() is None


@pytest.mark.parametrize("stream", [b"", b"{}\n", b"{}\n \t", b"{}\n\r"])
def test_the_end_gives_nothing_after_a_whole_line_or_blanks(stream: bytes) -> None:
    reader = LineReader()
    reader.feed(stream)
    assert reader.end() is None


def test_a_reader_goes_on_after_its_end() -> None:
    reader = LineReader()
    reader.feed(b"cut")
    reader.end()
    assert reader.feed(b"{}\n") == [b"{}"]


def test_a_line_of_exactly_the_limit_is_whole() -> None:
    assert read([b"12345678\n"], max_line=8) == [b"12345678"]


def test_a_line_over_the_limit_says_its_size_and_the_next_line_is_read() -> None:
    assert read([b"123456789\n{}\n"], max_line=8) == [OversizedLine(9, b"123456789"), b"{}"]


def test_a_line_over_the_limit_is_found_while_it_comes_in_pieces() -> None:
    chunks = [b"{}\n1234", b"5678", b"9abc", b"def\n", b"{}\n"]
    assert read(chunks, max_line=8) == [b"{}", OversizedLine(15, b"123456789abcdef"), b"{}"]


def test_an_unfinished_line_over_the_limit_is_reported_at_the_end() -> None:
    assert read([b"1234", b"56789"], max_line=8) == [OversizedLine(9, b"123456789")]


def test_of_a_line_over_the_limit_only_the_head_stays_in_memory() -> None:
    reader = LineReader(10_000)
    for _ in range(1000):
        assert reader.feed(b"x" * 1000) == []
    assert len(reader._unfinished.getvalue()) == KEPT_OF_OVERSIZED
    assert reader.feed(b"\n") == [OversizedLine(1_000_000, b"x" * KEPT_OF_OVERSIZED)]


def test_a_line_of_10_mb_in_small_chunks_comes_whole() -> None:
    line = b'{"x":"' + b"y" * 10_000_000 + b'"}'
    stream = line + b"\n"
    chunks = [stream[start : start + 65536] for start in range(0, len(stream), 65536)]
    assert read(chunks, max_line=1 << 24) == [line]


def test_a_limit_below_one_byte_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        LineReader(0)


@given(streams, st.lists(st.integers(0, 1000), max_size=12), st.integers(1, 30))
def test_lines_do_not_depend_on_how_the_stream_was_cut(
    stream: bytes, places: list[int], max_line: int
) -> None:
    assert read(cut(stream, places), max_line) == read([stream], max_line)


@given(streams)
def test_lines_are_what_a_plain_split_gives(stream: bytes) -> None:
    expected = [line.removesuffix(b"\r") for line in stream.split(b"\n")]
    assert read([stream]) == [line for line in expected if line and not line.isspace()]


@given(streams, st.lists(st.integers(0, 1000), max_size=12))
def test_messages_do_not_depend_on_how_the_stream_was_cut(stream: bytes, places: list[int]) -> None:
    def messages(chunks: list[bytes]) -> list[tuple[Message, bytes]]:
        found = []
        for line in read(chunks, max_line=20):
            if isinstance(line, OversizedLine):
                message: Message = codec.from_oversized(line)
            else:
                message = codec.from_cli(line)
            found.append((message, message.raw))
        return found

    assert messages(cut(stream, places)) == messages([stream])
