"""Lines with halves of characters."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.wire.mend import mend

# Text as JavaScript knows it: halves of characters, whole ones, and backslashes between them.
texts = st.lists(
    st.sampled_from(["\ud83d", "\ude00", "\U0001f600", "\\", "ud83d", '"', "a", "ä"]), max_size=20
).map("".join)


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        (rb'"cut \ud83d"', rb'"cut \ufffd"'),
        (rb'"\uDE00 late"', rb'"\ufffd late"'),
        (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\ude00\ud83d"', rb'"\ufffd\ufffd"'),
        (rb'"\\\ud83dx"', rb'"\\\ufffdx"'),
    ],
)
def test_a_half_becomes_the_replacement_character(text: bytes, mended: bytes) -> None:
    assert mend(text) == mended


@pytest.mark.parametrize(
    "text", [rb'{"a":"b"}', rb'"\ud83d\ude00"', rb'"\\ud83d"', rb'"\\\\ud83d"', rb'"\ud7ff"', b""]
)
def test_a_line_without_halves_needs_no_mending(text: bytes) -> None:
    assert mend(text) is None


@given(texts)
def test_a_mended_line_reads_as_the_text_with_its_halves_replaced(text: str) -> None:
    line = json.dumps({"text": text}).encode()
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert msgspec.json.decode(mend(line) or line) == {"text": whole}


@given(st.binary(max_size=60))
def test_mending_never_raises(line: bytes) -> None:
    mended = mend(line)
    assert mended is None or mended != line
