"""Why JSON was refused, in plain words."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import pytest

from quarterdeck.domain.decode_errors import LONGEST, describe


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    a: str
    b: Annotated[int, msgspec.Meta(ge=1, le=5)] = 1
    c: Literal["x", "y"] = "x"
    d: tuple[int, ...] = ()
    e: Annotated[str, msgspec.Meta(min_length=1, max_length=3, pattern="^a")] = "a"
    f: str | int | None = None
    g: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    h: dict[str, bool] = {}

    def __post_init__(self) -> None:
        """One of them may be wrong beside another."""
        if self.a == "wrong":
            raise ValueError("a: must be right")
        if self.a == "odd":
            raise ValueError("these do not go together")


class Outer(msgspec.Struct):
    inner: Inner


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "inner: missing"),
        ('{"inner":{}}', "inner.a: missing"),
        ('{"inner":{"a":"","z":1}}', "inner.z: unknown field"),
        ('{"inner":{"a":1}}', "inner.a: expected text, got a whole number"),
        ('{"inner":{"a":"","b":0}}', "inner.b: expected a whole number of at least 1"),
        ('{"inner":{"a":"","b":9}}', "inner.b: expected a whole number of at most 5"),
        ('{"inner":{"a":"","c":"z"}}', "inner.c: 'z' is not one of its values"),
        ('{"inner":{"a":"","d":[1,null]}}', "inner.d[1]: expected a whole number, got null"),
        ('{"inner":{"a":"","e":""}}', "inner.e: expected text with a length of at least 1"),
        ('{"inner":{"a":"","e":"abcd"}}', "inner.e: expected text with a length of at most 3"),
        ('{"inner":{"a":"","e":"b"}}', "inner.e: expected text that matches '^a'"),
        ('{"inner":{"a":"","f":[]}}', "inner.f: expected a whole number, text or null, got a list"),
        ('{"inner":{"a":"","g":0}}', "inner.g: expected a number above 0.0"),
        (
            '{"inner":{"a":"","h":{"x":1}}}',
            "inner.h[...]: expected true or false, got a whole number",
        ),
        ('{"inner":{"a":"wrong"}}', "inner.a: must be right"),
        ('{"inner":{"a":"odd"}}', "inner: these do not go together"),
        ("[]", "expected an object, got a list"),
        ("{", "not JSON: it is not complete"),
        ('{"inner" 1}', "not JSON: expected ':' (byte 9)"),
    ],
)
def test_the_member_comes_first_and_then_what_is_wrong_with_it(text: str, says: str) -> None:
    with pytest.raises(msgspec.DecodeError) as caught:
        msgspec.json.decode(text, type=Outer)
    assert describe(caught.value) == says


@pytest.mark.parametrize(
    ("text", "begins", "ends"),
    [
        (
            '{"inner":{"a":"","c":"' + "x" * 1_000_000 + '"}}',
            "inner.c: 'xxx",
            "not one of its values",
        ),
        ('{"inner":{"' + "x" * 1_000_000 + '":1}}', "inner.xxx", "unknown field"),
    ],
    ids=["value", "name"],
)
def test_a_long_name_or_value_is_not_repeated_whole(text: str, begins: str, ends: str) -> None:
    with pytest.raises(msgspec.DecodeError) as caught:
        msgspec.json.decode(text, type=Outer)
    said = describe(caught.value)
    assert said.startswith(begins)
    assert said.endswith(ends)
    assert len(said) < LONGEST + 100
