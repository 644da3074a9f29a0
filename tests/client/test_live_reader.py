"""Text in progress for a slow reader: merged by block, bounded, and never with a hole in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.client.live_reader import LiveReader
from quarterdeck.protocol.stream_frames import Live
from quarterdeck.protocol.views import Deltas


def live(text: str, message: str = "m1", *, whole: bool = False) -> Live:
    return Live(deltas=(Deltas(session="s1", message=message, text=text),), whole=whole)


def test_pieces_of_a_block_are_merged_until_they_are_read() -> None:
    reader = LiveReader()
    for text in ("a", "b", "c"):
        reader.put(live(text))
    reader.put(live("x", "m2"))
    assert reader.take() == [live("abc"), live("x", "m2")]
    assert reader.take() == []
    reader.put(live("d"))
    assert reader.take() == [live("d")]


def test_the_whole_text_so_far_takes_the_place_of_what_was_not_read() -> None:
    reader = LiveReader()
    reader.put(live("ab"))
    reader.put(live("abcd", whole=True))
    reader.put(live("e"))
    assert reader.take() == [live("abcde", whole=True)]


def test_a_block_that_is_given_up_comes_again_only_as_a_whole() -> None:
    reader = LiveReader(most=4)
    reader.put(live("12345"))
    reader.put(live("6"))
    assert reader.take() == []
    reader.put(live("567", whole=True))
    reader.put(live("8"))
    assert reader.take() == [live("5678", whole=True)]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["m1", "m2"]), st.text("ab", min_size=1, max_size=4), st.booleans()
        )
    )
)
def test_a_reader_that_joins_the_texts_never_has_a_text_with_a_hole(
    said: list[tuple[str, str, bool]],
) -> None:
    reader, texts, read = LiveReader(most=6), {"m1": "", "m2": ""}, dict[str, str]()
    for message, text, reads in said:
        texts[message] += text
        reader.put(live(text, message))
        if reads:
            given_now = {frame.deltas[0].message: frame.deltas[0].text for frame in reader.take()}
            for each, more in given_now.items():
                read[each] = read.get(each, "") + more
    for message, text in read.items():
        assert texts[message].startswith(text)
