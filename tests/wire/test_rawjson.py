import random
import re

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.wire import rawjson
from quarterdeck.wire.base import Part, UnknownPart
from quarterdeck.wire.rawjson import (
    MOST_BLOCKS,
    always,
    are_few_typed,
    dump,
    elements,
    few_elements,
    has_lone_surrogate,
    has_type,
    is_null,
    is_object,
    members,
    plain_object,
    replace_lone_surrogates,
    same_json,
    subtype_of,
)


def test_json_over_several_lines_becomes_one_line() -> None:
    pretty = Raw(b'{\n  "a": 1.0,\r\n  "b": "x\\ny"\n}')

    assert bytes(dump(pretty)) == b'{"a":1.0,"b":"x\\ny"}'


def test_json_on_one_line_stays_as_it_is_byte_for_byte() -> None:
    spaced = Raw(b'{ "a" : 1e5, "b" : "\\ud800" }')

    assert dump(spaced) is spaced


@pytest.mark.parametrize("bad", [b"", b"{", b'{"a":1} x', b'"\xff"', b"nul"])
def test_bytes_that_are_no_json_are_refused(bad: bytes) -> None:
    with pytest.raises(UsageError):
        dump(Raw(bad))


def test_a_value_that_json_cannot_say_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be encoded as JSON"):
        dump({"a": object()})


def test_a_part_that_we_do_not_know_is_written_as_it_came() -> None:
    assert dump(UnknownPart(kind="x", json=Raw(b'{"x":1}'))) == Raw(b'{"x":1}')


@pytest.mark.parametrize(
    ("json", "mended"),
    [
        (rb'"a\ud83d"', rb'"a\ufffd"'),
        (rb'"\uDE00\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\\ud83d \n\" \u00e9"', rb'"\\ud83d \n\" \u00e9"'),
    ],
)
def test_half_a_surrogate_pair_is_mended_and_nothing_else(json: bytes, mended: bytes) -> None:
    assert replace_lone_surrogates(json) == mended
    assert isinstance(msgspec.json.decode(mended), str)


def mended_one_by_one(json: bytes) -> bytes:
    """The same, escape by escape: slow, and easy to see that it is right."""
    escape = re.compile(
        rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
        rb"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
        re.DOTALL,
    )
    return escape.sub(lambda found: b"\\ufffd" if found["half"] else found[0], json)


@pytest.mark.parametrize("part", [16, 17, 31, 256 * 1024])
def test_surrogates_are_found_wherever_a_long_text_is_parted(
    monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(rawjson, "PART", part)
    chosen = random.Random(1)
    tokens = [rb"\ud800", rb"\uDC00", rb"\udbff", rb"\udfff", rb"\\", rb"\n", b"a", rb"\u0041"]
    tokens += [b"ud800", "é".encode(), rb"\"", rb"\ud7ff", rb"\ue000"]
    for _ in range(3000):
        json = b"".join(chosen.choices(tokens, k=chosen.randrange(30)))
        assert replace_lone_surrogates(json) == mended_one_by_one(json)
        assert has_lone_surrogate(json) == (mended_one_by_one(json) != json)


def test_a_line_with_a_null_byte_is_left_alone() -> None:
    assert replace_lone_surrogates(b'"\0\\ud800"') == b'"\0\\ud800"'
    assert not has_lone_surrogate(b'"\0\\ud800"')


@pytest.mark.parametrize(
    "content",
    [
        b"[]",
        b"[null]",
        b"[1]",
        b"{}",
        b'[{"type":"text"}, null]',
        b'[{"type":"text"}, {}]',
        b'[{"type":"text"}, [1]]',
        b"[" + b",".join([b'{"type":"text"}'] * (MOST_BLOCKS + 1)) + b"]",
        b'[{"type":"text"},{"type":null}]',
        b'[{"text":"a","type":"text"}]',
        b"[" + b",".join([b'{"type":"text"}'] * MOST_BLOCKS) + b"]",
        b'"text"',
        b"[",
    ],
)
def test_one_pass_over_the_blocks_finds_what_three_find(content: bytes) -> None:
    blocks = few_elements(Raw(content))
    three = bool(blocks) and all(map(has_type, blocks or ()))
    assert are_few_typed(Raw(content)) == three


def test_the_shape_of_json_is_told_without_reading_it() -> None:
    assert is_object(Raw(b' {"a":1}'))
    assert not is_object(Raw(b"[]"))
    assert is_null(Raw(b" null "))
    assert subtype_of(Raw(b'{"subtype":"x"}')) == "x"
    assert subtype_of(Raw(b'{"subtype":5}')) == ""
    assert subtype_of(Raw(b"nonsense")) == ""
    assert members(Raw(b'{"a": [1]}')) == {"a": Raw(b"[1]")}
    assert members(Raw(b"[1]")) == {}
    assert elements(Raw(b"[1, 2]")) == [Raw(b"1"), Raw(b"2")]
    assert elements(Raw(b"{}")) is None


class Sample(Part):
    plain: str | None = None
    written: str | None = always(None)


def test_a_default_that_is_always_written_is_written() -> None:
    assert msgspec.json.encode(Sample()) == b'{"written":null}'


def test_an_object_becomes_plain_values_and_whatever_is_none_an_empty_one() -> None:
    assert plain_object(Raw(b'{"a":[1,{"b":null}]}')) == {"a": [1, {"b": None}]}
    assert plain_object(Raw(rb'{"a":"\ud83d"}')) == {"a": "\ufffd"}
    for other in (b"", b"[1]", b'"a"', b"{", b"\xff"):
        assert plain_object(Raw(other)) == {}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (b'{"a":1,"b":[2]}', b'{ "b": [ 2 ], "a": 1 }', True),
        (b'{"a":"\\u0078"}', b'{"a":"x"}', True),
        (b'{"a":1}', b'{"a":true}', False),
        (b'{"a":1}', b'{"a":"1"}', False),
        (b'{"a":[1,2]}', b'{"a":[2,1]}', False),
        (b'{"a":"\\ud800"}', b'{"a":"\\ud800"}', True),
        (b'{"a":"\\ud800"}', b'{"a":"\\ud801"}', False),
        (b"[" * 5000, b"[" * 5001, False),
    ],
)
def test_json_is_compared_by_what_it_says(one: bytes, other: bytes, same: bool) -> None:
    assert same_json(Raw(one), Raw(other)) is same
