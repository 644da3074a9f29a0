"""Content blocks and the bodies that hold them."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from quarterdeck.wire.base import UnknownPart
from quarterdeck.wire.content import (
    AssistantBody,
    Block,
    DocumentBlock,
    ImageBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    UserBody,
    blocks,
    decode_assistant_body,
    decode_content,
    decode_usage,
    decode_user_body,
)
from support.lossless import plain


def raw(value: object) -> Raw:
    return Raw(json.dumps(value, ensure_ascii=False).encode())


EVERY_BLOCK: list[dict[str, object]] = [
    {"type": "text", "text": "hi", "citations": [{"type": "char_location"}]},
    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
    {"type": "redacted_thinking", "data": "eA=="},
    {"type": "tool_use", "id": "t", "name": "Bash", "input": {"b": 1, "a": 2}, "caller": {}},
    {"type": "tool_result", "tool_use_id": "t", "content": "out", "is_error": True},
    {"type": "server_tool_use", "id": "t", "name": "web_search", "input": {"query": "x"}},
    {"type": "mcp_tool_use", "id": "t", "name": "add", "server_name": "calc", "input": {}},
    {"type": "mcp_tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "3"}]},
    {"type": "web_search_tool_result", "tool_use_id": "t", "content": [{"url": "u"}]},
    {"type": "web_fetch_tool_result", "tool_use_id": "t", "content": {"url": "u"}},
    {"type": "code_execution_tool_result", "tool_use_id": "t", "content": {"stdout": ""}},
    {"type": "bash_code_execution_tool_result", "tool_use_id": "t", "content": {"stdout": ""}},
    {"type": "text_editor_code_execution_tool_result", "tool_use_id": "t", "content": {}},
    {"type": "tool_search_tool_result", "tool_use_id": "t", "content": {}},
    {"type": "advisor_tool_result", "tool_use_id": "t", "content": {}},
    {"type": "tool_reference", "tool_name": "Bash"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
    {"type": "document", "source": {"type": "url", "url": "https://x.test"}, "title": "T"},
    {"type": "search_result", "source": "s", "title": "t", "content": []},
    {"type": "container_upload", "file_id": "f"},
    {"type": "compaction", "content": "so far"},
]


@pytest.mark.parametrize("block", EVERY_BLOCK, ids=lambda block: str(block["type"]))
def test_every_block_of_the_api_is_known_and_encodes_as_it_came(block: dict[str, object]) -> None:
    decoded = blocks.decode(raw(block))
    assert not isinstance(decoded, UnknownPart)
    assert plain(decoded) == block


def test_the_examples_cover_every_block_type() -> None:
    tags = {member.__struct_config__.tag for member in Block.__args__}
    assert tags == {block["type"] for block in EVERY_BLOCK}


def test_a_tools_input_is_kept_byte_for_byte() -> None:
    source = b'{"z" : 1.0,"a":[ ],"u":"\\u00e4"}'
    block = blocks.decode(b'{"type":"tool_use","id":"t","name":"X","input":' + source + b"}")
    assert isinstance(block, ToolUseBlock)
    assert bytes(block.input) == source


def test_a_string_is_content_too() -> None:
    body = decode_user_body(raw({"role": "user", "content": "hello"}))
    assert body.content == "hello"
    assert body.text == "hello"
    assert body.blocks == (TextBlock(text="hello"),)


def test_an_unknown_block_hides_no_other() -> None:
    content = [
        {"type": "text", "text": "one"},
        {"type": "hologram", "depth": 3},
        {"type": "text", "text": "two"},
    ]
    body = decode_assistant_body(raw({"role": "assistant", "content": content}))
    first, strange, last = body.content
    assert first == TextBlock(text="one")
    assert last == TextBlock(text="two")
    assert isinstance(strange, UnknownPart)
    assert strange.kind == "hologram"
    assert json.loads(bytes(strange.json)) == content[1]
    assert body.text == "one\ntwo"


@pytest.mark.parametrize(
    "misfit",
    [
        {"type": "text", "text": 5},
        {"type": "tool_use"},
        {"text": "no type"},
        {"type": 7},
        5,
        "x",
        [],
    ],
)
def test_a_block_that_fits_no_type_is_kept_with_the_reason(misfit: object) -> None:
    (block,) = decode_assistant_body(raw({"content": [misfit]})).content
    assert isinstance(block, UnknownPart)
    assert block.error
    assert json.loads(bytes(block.json)) == misfit


@pytest.mark.parametrize("content", [b"5", b"true", b'{"type":"text"}', b"1e400", b'"\xff"'])
def test_content_of_another_shape_is_one_unknown_part(content: bytes) -> None:
    found = decode_content(Raw(content))
    assert isinstance(found, tuple)
    assert [type(part) for part in found] == [UnknownPart]


@pytest.mark.parametrize("json_text", [b"", b"null"])
def test_content_that_is_not_there_is_empty(json_text: bytes) -> None:
    assert decode_content(Raw(json_text)) == ""
    assert UserBody(content_json=Raw(json_text)).blocks == ()
    assert AssistantBody(content_json=Raw(json_text)).content == ()


@pytest.mark.parametrize("body", [b"5", b'"x"', b"[]", b'{"role":5}', b"\xff", b'{"role":"\xff"}'])
def test_a_body_that_cannot_be_read_is_empty_and_keeps_the_reason(body: bytes) -> None:
    for decoded in (decode_user_body(Raw(body)), decode_assistant_body(Raw(body))):
        assert decoded.error
        assert decoded.text == ""


def test_a_body_that_was_read_has_no_error() -> None:
    assert decode_user_body(raw({"role": "user", "content": "x"})).error is None
    assert decode_assistant_body(Raw(b"null")).error is None


def test_a_tool_result_is_a_string_or_blocks() -> None:
    text = blocks.decode(raw({"type": "tool_result", "tool_use_id": "t", "content": "out"}))
    assert isinstance(text, ToolResultBlock)
    assert text.content == "out"
    assert text.is_error is None
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
    words = [{"type": "text", "text": "a"}, image, {"type": "text", "text": "b"}]
    several = blocks.decode(raw({"type": "tool_result", "tool_use_id": "t", "content": words}))
    assert isinstance(several, ToolResultBlock)
    assert several.text == "a\nb"
    assert [type(block) for block in several.content] == [TextBlock, ImageBlock, TextBlock]


def test_a_tool_result_without_content_is_empty() -> None:
    block = blocks.decode(raw({"type": "tool_result", "tool_use_id": "t"}))
    assert isinstance(block, ToolResultBlock)
    assert block.content == ""


def test_a_message_says_why_it_stopped_and_what_it_took() -> None:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 10, "cache_creation_input_tokens": None}
    body = decode_assistant_body(
        raw({"id": "m", "type": "message", "stop_reason": "tool_use", "usage": usage})
    )
    assert body.stop_reason is StopReason.TOOL_USE
    assert body.usage.context_tokens == 13
    assert body.usage.output_tokens is None
    assert not body.synthetic


def test_a_reason_to_stop_that_is_new_keeps_its_word() -> None:
    body = decode_assistant_body(raw({"stop_reason": "bored"}))
    assert body.stop_reason is not None
    assert body.stop_reason == "bored"
    assert not body.stop_reason.known


def test_text_of_the_cli_itself_is_told_from_the_models() -> None:
    assert decode_assistant_body(raw({"model": "<synthetic>"})).synthetic


def test_usage_that_cannot_be_read_spoils_nothing_else() -> None:
    content = [{"type": "text", "text": "still here"}]
    body = decode_assistant_body(raw({"content": content, "usage": [1]}))
    assert body.text == "still here"
    assert body.usage == Usage()
    assert body.usage.error
    assert decode_usage(raw({"input_tokens": "many"})).error


def test_a_body_is_decoded_once() -> None:
    body = decode_assistant_body(raw({"content": [{"type": "thinking", "thinking": "x"}]}))
    assert body.content is body.content
    assert body.content == (ThinkingBlock(thinking="x"),)


def test_a_document_keeps_its_source() -> None:
    source = {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}
    block = blocks.decode(raw({"type": "document", "source": source}))
    assert isinstance(block, DocumentBlock)
    assert block.source is not None
    assert block.source.kind == "base64"
    assert plain(block.source) == source


def test_a_call_of_a_tool_gives_its_arguments_as_plain_values() -> None:
    call = blocks.decode(raw({"type": "tool_use", "id": "t", "name": "X", "input": {"a": [1]}}))
    assert isinstance(call, ToolUseBlock)
    assert call.arguments == {"a": [1]}
    assert ToolUseBlock(id="t", name="X").arguments == {}
