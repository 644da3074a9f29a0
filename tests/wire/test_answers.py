import msgspec
import pytest
from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.wire.answers import (
    MAX_UPDATES,
    AllowResult,
    DecisionClassification,
    DialogAnswer,
    DialogBehavior,
    ElicitationAction,
    ElicitationAnswer,
    McpAnswer,
    OauthToken,
    allow,
    deny,
)
from quarterdeck.wire.base import UnknownPart
from quarterdeck.wire.permissions import Destination, PermissionMode, SetMode


def test_an_allow_always_carries_the_whole_input_byte_for_byte() -> None:
    assert (
        msgspec.json.encode(allow(Raw(b'{ "command": "ls" }')))
        == b'{"behavior":"allow","updatedInput":{ "command": "ls" }}'
    )
    assert msgspec.json.encode(allow({})) == b'{"behavior":"allow","updatedInput":{}}'


def test_an_allow_may_change_permissions_and_pass_on_what_we_do_not_know() -> None:
    new = Raw(b'{"type":"addTools"}')
    answer = allow(
        {"a": 1},
        updates=[
            SetMode(mode=PermissionMode.PLAN, destination=Destination.SESSION),
            UnknownPart(kind="addTools", json=new),
        ],
        tool_use_id="t1",
        classification=DecisionClassification.USER_PERMANENT,
    )

    assert msgspec.json.decode(msgspec.json.encode(answer)) == {
        "behavior": "allow",
        "updatedInput": {"a": 1},
        "updatedPermissions": [
            {"type": "setMode", "mode": "plan", "destination": "session"},
            {"type": "addTools"},
        ],
        "toolUseID": "t1",
        "decisionClassification": "user_permanent",
    }
    assert isinstance(answer.updates[0], SetMode)


@pytest.mark.parametrize("odd", [None, 5, "x", [1], Raw(b"null")])
def test_an_input_that_is_no_object_is_refused(odd: object) -> None:
    with pytest.raises(UsageError, match="object"):
        allow(odd)


def test_more_updates_than_a_cli_takes_are_refused() -> None:
    update = Raw(b'{"type":"setMode"}')
    AllowResult(updated_input=Raw(b"{}"), updates_json=(update,) * MAX_UPDATES)

    with pytest.raises(UsageError, match="4096"):
        AllowResult(updated_input=Raw(b"{}"), updates_json=(update,) * (MAX_UPDATES + 1))


def test_a_deny_always_says_why() -> None:
    assert msgspec.json.encode(deny("")) == b'{"behavior":"deny","message":""}'
    assert (
        msgspec.json.encode(deny("no", interrupt=True))
        == b'{"behavior":"deny","message":"no","interrupt":true}'
    )


def test_the_answers_to_servers_dialogs_and_tokens_have_their_shapes() -> None:
    assert (
        msgspec.json.encode(McpAnswer(mcp_response=Raw(b'{"id":1}')))
        == b'{"mcp_response":{"id":1}}'
    )
    assert (
        msgspec.json.encode(ElicitationAnswer(action=ElicitationAction.CANCEL))
        == b'{"action":"cancel"}'
    )
    assert (
        msgspec.json.encode(DialogAnswer(behavior=DialogBehavior.COMPLETED, result=Raw(b"[1]")))
        == b'{"behavior":"completed","result":[1]}'
    )
    assert msgspec.json.encode(OauthToken()) == b'{"accessToken":null}'


def test_an_answer_of_a_server_is_an_object() -> None:
    with pytest.raises(UsageError):
        McpAnswer(mcp_response=Raw(b"null"))
    with pytest.raises(UsageError):
        ElicitationAnswer(action=ElicitationAction.ACCEPT, content=Raw(b"5"))
