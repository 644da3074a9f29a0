import msgspec
import pytest
from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.wire import codec
from quarterdeck.wire.answers import allow, deny
from quarterdeck.wire.base import Message, Unknown
from quarterdeck.wire.command_base import UnknownCommand
from quarterdeck.wire.commands import Interrupt
from quarterdeck.wire.outbound import (
    HUMAN,
    Answer,
    BashCommand,
    CancelRequest,
    KeepAlive,
    Priority,
    Prompt,
    PromptBody,
    Request,
    UpdateEnvironment,
    document_block,
    image_block,
    text_block,
)


def written(message: Message) -> object:
    line = codec.encode(message)
    assert b"\n" not in line
    return msgspec.json.decode(line)


def test_a_text_prompt_has_all_that_every_version_wants() -> None:
    assert written(Prompt.of("Hello\nthere", uuid="u1")) == {
        "type": "user",
        "message": {"role": "user", "content": "Hello\nthere"},
        "parent_tool_use_id": None,
        "uuid": "u1",
    }


def test_a_prompt_may_carry_text_images_and_documents() -> None:
    prompt = Prompt.of(
        [
            text_block("Look:"),
            image_block(b"\x89PNG", "image/png"),
            document_block(b"%PDF", title="T"),
            Raw(b'{"type":"text",\n"text":"raw"}'),
        ],
        uuid="u1",
    )

    assert written(prompt) == {
        "type": "user",
        "message": {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look:"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="},
                },
                {
                    "type": "document",
                    "source": {
                        "type": "base64",
                        "media_type": "application/pdf",
                        "data": "JVBERg==",
                    },
                    "title": "T",
                },
                {"type": "text", "text": "raw"},
            ],
        },
        "parent_tool_use_id": None,
        "uuid": "u1",
    }


def test_the_newer_members_of_a_prompt_have_the_wires_names() -> None:
    prompt = Prompt.of(
        "x", priority=Priority.LATER, origin=HUMAN, should_query=False, client_composed=True
    )

    line = written(prompt)

    assert isinstance(line, dict)
    assert line["priority"] == "later"
    assert line["origin"] == {"kind": "human"}
    assert line["shouldQuery"] is False
    assert line["client_composed"] is True
    assert "uuid" not in line


def test_a_prompt_without_content_is_never_made() -> None:
    with pytest.raises(UsageError, match="at least one block"):
        Prompt.of([])


@pytest.mark.parametrize("content", [b"5", b"null", b'{"type":"text"}', b"[1]", b'[{"text":"x"}]'])
def test_a_prompt_of_another_shape_is_never_made(content: bytes) -> None:
    with pytest.raises(UsageError):
        PromptBody(content=Raw(content))


@pytest.mark.parametrize("block", [b"{}", b"1", b'{"type":"text","text":""}'])
def test_a_prompt_has_a_limited_number_of_blocks(block: bytes) -> None:
    with pytest.raises(UsageError, match="at most 1000 blocks"):
        PromptBody(content=Raw(b"[" + b",".join([block] * 1001) + b"]"))


def test_a_prompt_of_many_blocks_is_made() -> None:
    content = Raw(b"[" + b",".join([b'{"type":"text","text":""}'] * 1000) + b"]")
    assert PromptBody(content=content).content == content


def test_an_empty_text_is_a_prompt() -> None:
    assert bytes(Prompt.of("").message.content) == b'""'


def test_blocks_that_hold_nothing_are_never_made() -> None:
    with pytest.raises(UsageError):
        image_block(b"", "image/png")
    with pytest.raises(UsageError):
        image_block(b"x", "text/plain")
    with pytest.raises(UsageError):
        document_block(b"x", "pdf")


def test_a_request_holds_its_command() -> None:
    request = Request.of("r1", Interrupt())

    assert written(request) == {
        "type": "control_request",
        "request_id": "r1",
        "request": {"subtype": "interrupt"},
    }
    assert request.request == Interrupt()


def test_a_request_without_id_or_body_is_never_made() -> None:
    with pytest.raises(UsageError):
        Request.of("", Interrupt())
    with pytest.raises(UsageError):
        Request(request_id="r", request_json=Raw(b"null"))
    with pytest.raises(UsageError):
        Request.of("r", UnknownCommand(name="x", json=Raw(b"{}")))


def test_an_allow_has_the_one_shape_that_every_version_takes() -> None:
    assert written(Answer.success("r1", allow({"command": "ls"}))) == {
        "type": "control_response",
        "response": {
            "subtype": "success",
            "request_id": "r1",
            "response": {"behavior": "allow", "updatedInput": {"command": "ls"}},
        },
    }


def test_a_deny_and_an_error_say_why() -> None:
    assert written(Answer.success("r1", deny("no"))) == {
        "type": "control_response",
        "response": {
            "subtype": "success",
            "request_id": "r1",
            "response": {"behavior": "deny", "message": "no"},
        },
    }
    assert written(Answer.error("r1", "")) == {
        "type": "control_response",
        "response": {"subtype": "error", "request_id": "r1", "error": "failed"},
    }


def test_an_answer_over_several_lines_is_sent_as_one() -> None:
    assert b"\n" not in codec.encode(Answer.success("r1", Raw(b'{\n"a":1}')))


def test_an_answer_without_id_or_body_is_never_made() -> None:
    with pytest.raises(UsageError):
        Answer.success("", allow({}))
    with pytest.raises(UsageError):
        Answer.error("", "no")
    with pytest.raises(UsageError):
        Answer.success("r1", Raw(b"null"))
    with pytest.raises(UsageError):
        Answer(response_json=Raw(b"null"))


def test_the_small_messages_are_written_as_they_should() -> None:
    assert written(CancelRequest(request_id="r")) == {
        "type": "control_cancel_request",
        "request_id": "r",
    }
    assert written(KeepAlive()) == {"type": "keep_alive"}
    assert written(UpdateEnvironment(variables={})) == {
        "type": "update_environment_variables",
        "variables": {},
    }


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b'{"message":{"content":"x","role":"user","extra":1},"type":"user","new":[1]}', Prompt),
        (
            (
                b'{"type":"user","message":{"role":"user","content":[{"type":"hologram"}]},'
                b'"session_id":"","parent_tool_use_id":null,"isSynthetic":true,"priority":"soon"}'
            ),
            Prompt,
        ),
        (b'{"type":"control_request","request_id":"r","request":{"subtype":"new","x":1}}', Request),
        (b'{"type":"control_response","response":{"subtype":"allow"}}', Answer),
        (b'{"type":"control_cancel_request","request_id":"r"}', CancelRequest),
        (b'{"type":"keep_alive","t":1}', KeepAlive),
        (b'{"type":"update_environment_variables","variables":{"K":"V"}}', UpdateEnvironment),
        (b'{"type":"bash_command","command":"ls"}', BashCommand),
    ],
)
def test_lines_of_another_controller_are_read_and_passed_on_unchanged(
    line: bytes, kind: type[Message]
) -> None:
    message = codec.to_cli(line)

    assert type(message) is kind
    assert codec.encode(message) == line


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"user"}',
        b'{"type":"user","message":{"role":"assistant","content":"x"}}',
        b'{"type":"user","message":{"role":"user","content":[]}}',
        b'{"type":"user","message":{"role":"user","content":5}}',
        b'{"type":"control_request","request_id":"r"}',
        b'{"type":"control_request","request_id":"r","request":null}',
        b'{"type":"control_response"}',
        b'{"type":"control_response","request_id":"r","approved":true}',
        b'{"type":"update_environment_variables"}',
        b'{"type":"assistant","message":{}}',
    ],
)
def test_a_line_that_would_end_some_version_is_no_message_for_it(line: bytes) -> None:
    message = codec.to_cli(line)

    assert isinstance(message, Unknown)
    assert message.raw == line


def test_a_command_of_a_new_subtype_keeps_its_name() -> None:
    message = codec.to_cli(
        b'{"type":"control_request","request_id":"r","request":{"subtype":"new"}}'
    )

    assert isinstance(message, Request)
    assert isinstance(message.request, UnknownCommand)
    assert message.request.subtype == "new"
