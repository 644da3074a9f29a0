import msgspec
import pytest
from msgspec import Raw

from quarterdeck.wire.base import UnknownPart
from quarterdeck.wire.hooks import PreToolUseInput
from quarterdeck.wire.permissions import SetMode
from quarterdeck.wire.requests import (
    CanUseTool,
    DecisionReasonType,
    Elicitation,
    HookCallback,
    McpMessage,
    OauthTokenRefresh,
    RequestUserDialog,
    UnknownRequest,
    decode_request,
)

INPUT = b'{ "command": "rm  -rf x", "n": 1.0 }'


def test_a_tools_input_is_kept_byte_for_byte() -> None:
    request = decode_request(
        Raw(
            b'{"subtype":"can_use_tool","tool_name":"Bash","tool_use_id":"t","input":'
            + INPUT
            + b"}"
        )
    )

    assert isinstance(request, CanUseTool)
    assert bytes(request.input) == INPUT


def test_a_permission_request_of_the_newest_version_is_read_whole() -> None:
    body = {
        "subtype": "can_use_tool",
        "tool_name": "mcp__calc__add",
        "input": {"a": 1},
        "tool_use_id": "t1",
        "permission_suggestions": [
            {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
            {"type": "new"},
        ],
        "blocked_path": "/x",
        "decision_reason": "because",
        "decision_reason_type": "workingDir",
        "agent_id": "a1",
        "title": "T",
        "display_name": "Add",
        "description": "adds",
        "mcp_server": {"name": "calc", "source": "sdk"},
        "requires_user_interaction": True,
        "suppress_always_allow_rule": True,
        "default_to_no": True,
        "classifier_approvable": False,
        "matched_ask_rule": {"source": "userSettings", "tool_name": "Bash", "rule_content": "x"},
        "decision_reason_rule_source": "session",
        "server_policy_ask_only": True,
        "computer_folder": {"path": "/p", "computer_name": "c"},
        "tool_kind": ["anything"],
    }

    request = decode_request(Raw(msgspec.json.encode(body)))

    assert isinstance(request, CanUseTool)
    assert msgspec.json.decode(msgspec.json.encode(request)) == body
    assert request.decision_reason_type is DecisionReasonType.WORKING_DIR
    mode, new = request.suggestions
    assert isinstance(mode, SetMode)
    assert isinstance(new, UnknownPart)


def test_the_smallest_permission_request_is_enough() -> None:
    request = decode_request(Raw(b'{"subtype":"can_use_tool","tool_name":"Bash"}'))

    assert isinstance(request, CanUseTool)
    assert request.input == Raw(b"{}")
    assert request.suggestions == ()


@pytest.mark.parametrize("odd", [b"5", b"[]", b'"x"', b"null"])
def test_an_input_that_is_no_object_makes_no_permission_request(odd: bytes) -> None:
    request = decode_request(
        Raw(b'{"subtype":"can_use_tool","tool_name":"Bash","input":' + odd + b"}")
    )

    assert isinstance(request, UnknownRequest)
    assert request.subtype == "can_use_tool"
    assert request.error is not None


def test_the_input_of_a_hook_is_typed_by_its_event() -> None:
    request = decode_request(
        Raw(
            b'{"subtype":"hook_callback","callback_id":"h1","tool_use_id":"t1","input":'
            b'{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}}'
        )
    )

    assert isinstance(request, HookCallback)
    assert isinstance(request.hook_input, PreToolUseInput)
    assert request.hook_input.tool_input == Raw(b'{"command":"ls"}')


def test_json_rpc_is_passed_on_as_it_came() -> None:
    message = b'{"jsonrpc":"2.0",  "method":"tools/list","id":1}'
    request = decode_request(
        Raw(b'{"subtype":"mcp_message","server_name":"calc","message":' + message + b"}")
    )

    assert isinstance(request, McpMessage)
    assert bytes(request.message) == message


def test_forms_dialogs_and_token_requests_have_types() -> None:
    form = decode_request(
        Raw(
            b'{"subtype":"elicitation","mcp_server_name":"s","message":"m","mode":"form",'
            b'"requested_schema":{"type":"object"},"property_order":["a"]}'
        )
    )
    dialog = decode_request(
        Raw(b'{"subtype":"request_user_dialog","dialog_kind":"k","payload":{"a":1}}')
    )
    token = decode_request(Raw(b'{"subtype":"oauth_token_refresh","token_state":"refused"}'))

    assert isinstance(form, Elicitation)
    assert form.requested_schema == Raw(b'{"type":"object"}')
    assert isinstance(dialog, RequestUserDialog)
    assert dialog.payload == Raw(b'{"a":1}')
    assert token == OauthTokenRefresh(token_state="refused")


@pytest.mark.parametrize(
    "subtype",
    [
        "elicitation",
        "host_auth_token_refresh",
        "mcp_message",
        "oauth_token_refresh",
        "remote_control_work_secret",
        "remote_plumbing_call",
        "remote_tool_call",
        "remote_tools_probe",
        "remote_tools_reannounce",
        "request_user_dialog",
        "ui_copy",
        "ui_prompt_fill",
        "ui_prompt_paint",
        "ui_prompt_read",
        "ui_prompt_suggest",
        "ui_read_selection",
    ],
)
def test_every_subtype_that_the_cli_has_gives_a_typed_request(subtype: str) -> None:
    needed = {"server_name": "s", "mcp_server_name": "s", "dialog_kind": "k"}

    request = decode_request(Raw(msgspec.json.encode({"subtype": subtype, **needed})))

    assert not isinstance(request, UnknownRequest)


def test_a_known_subtype_that_does_not_fit_says_why() -> None:
    json = Raw(b'{"subtype":"mcp_message","server_name":5}')

    request = decode_request(json)

    assert isinstance(request, UnknownRequest)
    assert request.json == json
    assert request.error is not None
    assert "server_name" in request.error


@pytest.mark.parametrize("junk", [b"", b"nonsense", b"[" * 100_000, b'{"subtype":"\xff"}'])
def test_junk_is_an_unknown_request(junk: bytes) -> None:
    assert isinstance(decode_request(Raw(junk)), UnknownRequest)
