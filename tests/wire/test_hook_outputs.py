import msgspec
import pytest
from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.wire.hook_outputs import (
    AllowDecision,
    AsyncOutput,
    DenyDecision,
    HookDecision,
    HookPermission,
    PermissionRequestOutput,
    PostToolUseOutput,
    PreToolUseOutput,
    SpecificOutput,
    SyncOutput,
)
from quarterdeck.wire.hooks import HookEvent


def test_no_opinion_is_an_empty_object() -> None:
    assert msgspec.json.encode(SyncOutput()) == b"{}"


def test_a_hook_that_goes_on_by_itself_says_so() -> None:
    assert msgspec.json.encode(AsyncOutput()) == b'{"async":true}'
    assert msgspec.json.encode(AsyncOutput(async_timeout=9)) == b'{"async":true,"asyncTimeout":9}'


def test_the_general_members_have_the_wires_names() -> None:
    output = SyncOutput(
        continue_=False,
        stop_reason="enough",
        suppress_output=True,
        decision=HookDecision.BLOCK,
        reason="no",
        system_message="hm",
    )

    assert msgspec.json.decode(msgspec.json.encode(output)) == {
        "continue": False,
        "stopReason": "enough",
        "suppressOutput": True,
        "decision": "block",
        "reason": "no",
        "systemMessage": "hm",
    }


def test_a_decision_about_a_tool_names_its_event() -> None:
    output = SyncOutput(
        specific=PreToolUseOutput(
            permission_decision=HookPermission.ALLOW,
            permission_decision_reason="fine",
            updated_input=Raw(b'{"command":"ls"}'),
        )
    )

    assert msgspec.json.decode(msgspec.json.encode(output)) == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "permissionDecisionReason": "fine",
            "updatedInput": {"command": "ls"},
        }
    }


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (AllowDecision(updated_input=Raw(b"{}")), {"behavior": "allow", "updatedInput": {}}),
        (DenyDecision(message="no"), {"behavior": "deny", "message": "no"}),
    ],
)
def test_a_hook_may_settle_a_permission(
    decision: AllowDecision | DenyDecision, expected: dict[str, object]
) -> None:
    output = SyncOutput(specific=PermissionRequestOutput(decision=decision))

    assert msgspec.json.decode(msgspec.json.encode(output)) == {
        "hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": expected}
    }


def test_a_changed_output_of_an_mcp_tool_has_its_odd_name() -> None:
    output = PostToolUseOutput(updated_mcp_tool_output=Raw(b"[]"))

    assert (
        msgspec.json.encode(output) == b'{"hookEventName":"PostToolUse","updatedMCPToolOutput":[]}'
    )


def test_every_specific_output_belongs_to_an_event_and_is_read_back() -> None:
    structs = SpecificOutput.__args__

    assert len(structs) == 22
    for struct in structs:
        assert HookEvent(str(struct.__struct_config__.tag)).known


def test_an_input_that_is_no_object_is_refused() -> None:
    with pytest.raises(UsageError):
        PreToolUseOutput(updated_input=Raw(b"[]"))
    with pytest.raises(UsageError):
        AllowDecision(updated_input=Raw(b"7"))
