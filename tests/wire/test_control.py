import msgspec
import pytest
from msgspec import Raw

from quarterdeck.wire.control import (
    ControlCancel,
    ControlRequest,
    ControlResponse,
    Outcome,
    Reply,
    decode_reply,
)
from quarterdeck.wire.requests import CanUseTool, UnknownRequest


def request_of(line: bytes) -> ControlRequest:
    return msgspec.json.decode(line, type=ControlRequest)


def response_of(line: bytes) -> ControlResponse:
    return msgspec.json.decode(line, type=ControlResponse)


def test_a_request_is_typed_by_its_subtype() -> None:
    message = request_of(
        b'{"request":{"input":{"command":"ls"},"tool_name":"Bash","tool_use_id":"t1",'
        b'"subtype":"can_use_tool"},"request_id":"r1","type":"control_request"}'
    )

    assert message.request_id == "r1"
    assert isinstance(message.request, CanUseTool)
    assert message.request.tool_name == "Bash"
    assert message.request is message.request


@pytest.mark.parametrize(
    ("body", "subtype"),
    [
        (b'{"subtype":"frobnicate","x":1}', "frobnicate"),
        (b'{"subtype":7}', ""),
        (b"{}", ""),
        (b"null", ""),
        (b"[1]", ""),
    ],
)
def test_a_request_that_cannot_be_read_keeps_its_id(body: bytes, subtype: str) -> None:
    message = request_of(b'{"type":"control_request","request_id":"r1","request":' + body + b"}")

    assert message.request_id == "r1"
    assert message.request == UnknownRequest(subtype=subtype, json=Raw(body))


def test_a_request_without_id_or_body_is_a_value_all_the_same() -> None:
    message = request_of(b'{"type":"control_request"}')

    assert message.request_id == ""
    assert isinstance(message.request, UnknownRequest)


def test_a_success_has_its_body() -> None:
    reply = response_of(
        b'{"type":"control_response","response":{"subtype":"success","request_id":"r1",'
        b'"response":{"mode":"plan"}}}'
    ).response

    assert reply.ok
    assert reply.error is None
    assert reply.request_id == "r1"
    assert reply.response_json == Raw(b'{"mode":"plan"}')


def test_a_success_may_have_no_body() -> None:
    reply = decode_reply(Raw(b'{"subtype":"success","request_id":"r1"}'))

    assert reply.ok
    assert reply.response_json is None


def test_an_error_says_why_and_with_which_code() -> None:
    reply = decode_reply(
        Raw(b'{"subtype":"error","request_id":"r1","error":"no","error_code":"invalid_mode"}')
    )

    assert not reply.ok
    assert (reply.error, reply.error_code) == ("no", "invalid_mode")


def test_an_error_without_a_reason_gets_one() -> None:
    assert decode_reply(Raw(b'{"subtype":"error","request_id":"r1"}')).error is not None
    assert decode_reply(Raw(b'{"request_id":"r1"}')).error is not None
    assert decode_reply(Raw(b'{"subtype":"later","request_id":"r1"}')).error is not None


@pytest.mark.parametrize(
    "body",
    [
        b'{"subtype":"error","request_id":"r1","error":{"text":"no"}}',
        b'{"subtype":5,"request_id":"r1"}',
        b'{"subtype":"success","request_id":"r1","pending_permission_requests":7}',
    ],
)
def test_an_answer_that_cannot_be_read_ends_its_request(body: bytes) -> None:
    reply = decode_reply(Raw(body))

    assert reply.request_id == "r1"
    assert not reply.ok
    assert reply.error is not None
    assert "cannot be decoded" in reply.error


@pytest.mark.parametrize("body", [b"null", b"[]", b'{"request_id":9}'])
def test_an_answer_without_an_id_is_an_error_for_nobody(body: bytes) -> None:
    reply = response_of(b'{"type":"control_response","response":' + body + b"}").response

    assert reply.request_id == ""
    assert not reply.ok


def test_the_open_requests_come_with_an_error_too() -> None:
    reply = decode_reply(
        Raw(
            b'{"subtype":"error","error":"Already initialized","request_id":"i2",'
            b'"pending_permission_requests":[{"type":"control_request","request_id":"p1",'
            b'"request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"x"},'
            b'"tool_use_id":"t1"}}],'
            b'"pending_user_dialog_requests":[{"type":"control_request","request_id":"d1",'
            b'"request":{"subtype":"request_user_dialog","dialog_kind":"k","payload":{}}}],'
            b'"pending_elicitation_requests":["odd"]}'
        )
    )

    asked, dialog, odd = reply.pending_requests()

    assert asked.request_id == "p1"
    assert isinstance(asked.request, CanUseTool)
    assert asked.raw.startswith(b'{"type":"control_request","request_id":"p1"')
    assert dialog.request_id == "d1"
    assert odd.request_id == ""
    assert isinstance(odd.request, UnknownRequest)


def test_a_reply_that_we_make_always_names_its_outcome_and_its_request() -> None:
    assert (
        msgspec.json.encode(Reply(request_id="r", error="no"))
        == b'{"subtype":"error","request_id":"r","error":"no"}'
    )
    assert Reply(subtype=Outcome.SUCCESS).ok


def test_a_cancellation_names_its_request() -> None:
    line = b'{"type":"control_cancel_request","request_id":"r1"}'

    assert msgspec.json.decode(line, type=ControlCancel).request_id == "r1"
    assert msgspec.json.encode(ControlCancel(request_id="r1")) == line
