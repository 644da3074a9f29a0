"""Lines of frontends: what they ask for, and what is wrong with the others."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.fronts.relay.errors import BadLine
from quarterdeck.fronts.relay.inbound import (
    LINE_BYTES,
    MOST_LINES,
    AnswerLine,
    CancelLine,
    KeepAliveLine,
    PromptLine,
    RequestLine,
    parse,
    split,
)
from support.examples import examples


def line(**members: Any) -> bytes:
    return json.dumps(members).encode()


def prompt(content: object = "hi", **more: Any) -> bytes:
    return line(type="user", message={"role": "user", "content": content}, **more)


def test_a_message_has_one_line_or_several() -> None:
    assert split('{"a":1}') == split(b'{"a":1}\n') == split('{"a":1}\r\n\n') == [b'{"a":1}']
    assert split('{"a":1}\n\n{"b":2}') == [b'{"a":1}', b'{"b":2}']
    assert split("") == split("\n \t\n") == []
    with pytest.raises(BadLine, match="at most"):
        split("x\n" * (MOST_LINES + 1))


def test_prompts_in_both_forms() -> None:
    asked = parse(prompt("Fix it", session_id="", parent_tool_use_id=None))
    assert isinstance(asked, PromptLine)
    assert (bytes(asked.content), asked.session_id, asked.uuid) == (b'"Fix it"', "", "")
    blocks = [{"type": "text", "text": "see"}, {"type": "image", "source": {}}]
    asked = parse(prompt(blocks, session_id="s1", uuid="u1", priority="next"))
    assert isinstance(asked, PromptLine)
    assert json.loads(bytes(asked.content)) == blocks
    assert (asked.session_id, asked.uuid, asked.priority) == ("s1", "u1", "next")


def test_only_a_prompt_may_be_a_large_line() -> None:
    text = "x" * LINE_BYTES
    asked = parse(prompt(text, uuid="u1", unknown={"a": 1}))
    assert isinstance(asked, PromptLine)
    assert (len(bytes(asked.content)), asked.uuid) == (len(text) + 2, "u1")
    for bad in (
        line(type="control_request", request_id="r1", request={"subtype": "x", "a": text}),
        line(type="control_response", response={"request_id": "r1", "a": text}),
        line(**{f"m{number}": number for number in range(200_000)}),
    ):
        with pytest.raises(BadLine, match="no prompt") as refused:
            parse(bad)
        assert refused.value.code == "too_large"


def test_the_other_lines() -> None:
    request = {"subtype": "set_model", "model": "haiku"}
    called = parse(line(type="control_request", request_id="r1", request=request))
    assert isinstance(called, RequestLine)
    assert (called.request_id, called.subtype) == ("r1", "set_model")
    assert json.loads(bytes(called.request)) == request
    answered = parse(line(type="control_response", request_id="q", approved=True, session_id="s"))
    assert isinstance(answered, AnswerLine)
    assert (answered.given.request_id, answered.session_id) == ("q", "s")
    assert parse(line(type="control_cancel_request", request_id="r1")) == CancelLine(
        request_id="r1"
    )
    assert parse(line(type="keep_alive")) == KeepAliveLine()


WRONG: dict[str, tuple[bytes, str, str]] = {
    "plain text": (b"hello", "not_json", ""),
    "half an object": (b'{"type":"user"', "not_json", ""),
    "two objects": (b"{}{}", "not_json", ""),
    "not UTF-8": (b'{"type":"\xff"}', "not_json", ""),
    "a byte order mark": (b"\xef\xbb\xbf" + prompt(), "not_json", ""),
    "half a surrogate pair as a type": (b'{"type":"\\ud83d"}', "not_json", ""),
    "null": (b"null", "bad_line", ""),
    "a number": (b"42", "bad_line", ""),
    "a list": (b"[]", "bad_line", ""),
    "no type": (b"{}", "bad_line", "type"),
    "a number for a type": (b'{"type":1}', "bad_line", "type"),
    "an unknown type": (line(type="frobnicate"), "unknown_type", "type"),
    "a line of the CLI": (line(type="assistant", message={}), "unknown_type", "type"),
    "a status": (line(type="status", text="claude code connected"), "unknown_type", "type"),
    "an environment": (
        line(type="update_environment_variables", variables={"PATH": "/tmp"}),
        "not_allowed",
        "type",
    ),
    "a prompt without a message": (line(type="user"), "bad_line", "message"),
    "a text for a message": (line(type="user", message="hi"), "bad_line", "message"),
    "another role": (
        line(type="user", message={"role": "assistant", "content": "x"}),
        "bad_line",
        "message.role",
    ),
    "no content": (line(type="user", message={"role": "user"}), "bad_line", "message.content"),
    "a number for content": (prompt(7), "bad_line", "message.content"),
    "no blocks": (prompt([]), "bad_line", "message.content"),
    "a block without a type": (
        prompt([{"type": "text", "text": "a"}, {"text": "b"}]),
        "bad_line",
        "message.content[1].type",
    ),
    "a subagent's prompt": (
        prompt(parent_tool_use_id="t"), "not_allowed", "parent_tool_use_id"
    ),
    "no question to the model": (prompt(shouldQuery=False), "not_allowed", "shouldQuery"),
    "nobody's prompt": (prompt(isSynthetic=True), "not_allowed", "isSynthetic"),
    "a uuid with a blank": (prompt(uuid="a b"), "bad_line", "uuid"),
    "an unknown priority": (prompt(priority="soon"), "bad_line", "priority"),
    "a number for a session": (prompt(session_id=1), "bad_line", "session_id"),
    "a request without a body": (
        line(type="control_request", request_id="r"), "bad_line", "request"
    ),
    "a request without an id": (
        line(type="control_request", request={"subtype": "interrupt"}),
        "no_request_id",
        "request_id",
    ),
    "a request without a subtype": (
        line(type="control_request", request_id="r", request={}),
        "bad_line",
        "request.subtype",
    ),
    "an answer without anything": (
        line(type="control_response"), "no_request_id", "response.request_id"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG, ids=str)
def test_a_wrong_line_is_refused_with_what_and_where(case: str) -> None:
    wrong, code, where = WRONG[case]
    with pytest.raises(BadLine) as refused:
        parse(wrong)
    assert (refused.value.code, refused.value.where) == (code, where)
    assert str(refused.value)


def test_a_line_that_is_nested_too_deeply_is_refused() -> None:
    deep = b'{"type":"user","message":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(BadLine):
        parse(deep)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["type", "message", "role", "content", "request", "request_id", "response", "subtype",
             "behavior", "approved", "permission", "allow", "updatedInput", "session_id", "x"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip
_types = st.sampled_from(["user", "control_request", "control_response", "keep_alive", "other"])


@settings(max_examples=examples(300))
@given(kind=_types, rest=st.dictionaries(st.text(max_size=12), _values, max_size=4), body=_values)
async def test_no_line_raises_anything_else(kind: str, rest: dict[str, Any], body: Any) -> None:
    for made in ({**rest, "type": kind}, {"type": kind, "response": body, "request": body}):
        with contextlib.suppress(BadLine):
            parse(json.dumps(made).encode())


@settings(max_examples=examples(300))
@given(st.binary(max_size=60))
async def test_no_bytes_raise_anything_else(data: bytes) -> None:
    for each in split(data):
        with contextlib.suppress(BadLine):
            parse(each)
