"""Questions as typed values, and the answers that each version takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from quarterdeck.agent.asks import Allow, Deny, PlanAsk, QuestionsAsk, ToolAsk, to_ask, to_result
from quarterdeck.domain.errors import UsageError
from quarterdeck.wire.answers import AllowResult, DenyResult, PermissionResult
from quarterdeck.wire.base import UnknownPart
from quarterdeck.wire.permissions import (
    AddRules,
    Destination,
    PermissionBehavior,
    PermissionMode,
    SetMode,
)
from quarterdeck.wire.requests import CanUseTool
from quarterdeck.wire.values import PermissionRule
from quarterdeck.wire.versions import release

RULE = AddRules(
    rules=(PermissionRule(tool_name="Bash", rule_content="ls:*"),),
    behavior=PermissionBehavior.ALLOW,
    destination=Destination.SESSION,
)


def ask_for(tool: str, tool_input: bytes, **more: Any) -> ToolAsk | QuestionsAsk | PlanAsk:
    request = CanUseTool(tool_name=tool, input=Raw(tool_input), **more)
    return to_ask("q", request)


def result_of(
    decision: Allow | Deny, *, version: int | None = 325, bypass: bool = False
) -> PermissionResult:
    ask = ask_for("Bash", b'{"command" : "ls"}')
    known = release(version) if version else None
    return to_result(ask, decision, version=known, bypass_allowed=bypass)


def test_an_input_that_does_not_fit_its_tool_is_a_plain_question() -> None:
    assert isinstance(ask_for("AskUserQuestion", b'{"questions":"?"}'), ToolAsk)
    assert isinstance(ask_for("ExitPlanMode", b'{"plan":7}'), ToolAsk)
    assert isinstance(ask_for("ExitPlanMode", b"{}"), PlanAsk)


def test_the_action_is_one_line_whatever_the_input_says() -> None:
    ask = ask_for("Bash", json.dumps({"command": "ls\n\x1b[31mrm -rf /"}).encode())
    assert "\n" not in ask.action.title
    assert "\x1b" not in ask.action.title


def test_an_allow_carries_the_input_as_it_came() -> None:
    result = result_of(Allow())
    assert isinstance(result, AllowResult)
    assert bytes(result.updated_input) == b'{"command" : "ls"}'


def test_a_deny_always_has_a_message() -> None:
    result = result_of(Deny(""))
    assert isinstance(result, DenyResult)
    assert result.message


def test_rules_go_along_with_an_allow() -> None:
    result = result_of(Allow(updates=[RULE]))
    assert isinstance(result, AllowResult)
    assert result.updates == (RULE,)


def test_always_takes_what_the_cli_suggests_unless_told_otherwise() -> None:
    suggested = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
    ask = ask_for("Write", b"{}", permission_suggestions=(Raw(json.dumps(suggested).encode()),))
    assert isinstance(ask, ToolAsk)
    mode = SetMode(mode=PermissionMode.ACCEPT_EDITS, destination=Destination.SESSION)
    assert ask.always().updates == (mode,)
    assert ask.always(RULE).updates == (RULE,)


def test_always_means_the_tool_for_the_session_where_the_cli_suggests_nothing() -> None:
    ask = ask_for("mcp__shop__buy", b"{}")
    assert isinstance(ask, ToolAsk)
    (rule,) = ask.always().updates
    assert rule == AddRules(
        rules=(PermissionRule(tool_name="mcp__shop__buy"),),
        behavior=PermissionBehavior.ALLOW,
        destination=Destination.SESSION,
    )
    assert ask.allow().updates == ()


def test_the_input_can_be_looked_into_and_changed_as_a_mapping() -> None:
    ask = ask_for("Bash", b'{"command":"ls","timeout":1}')
    assert isinstance(ask, ToolAsk)
    assert ask.arguments == {"command": "ls", "timeout": 1}
    result = to_result(
        ask, ask.allow({**ask.arguments, "timeout": 2}), version=None, bypass_allowed=False
    )
    assert isinstance(result, AllowResult)
    assert json.loads(bytes(result.updated_input)) == {"command": "ls", "timeout": 2}
    assert ask_for("Bash", b"[1]").arguments == {}


@pytest.mark.parametrize(("version", "kept"), [(37, 0), (62, 0), (None, 0), (120, 1), (325, 1)])
def test_an_update_of_tomorrow_is_left_out_where_it_would_spoil_the_whole_answer(
    version: int | None, kept: int
) -> None:
    unknown = UnknownPart(kind="x", json=Raw(b'{"type":"ofTomorrow"}'))
    result = result_of(Allow(updates=[unknown]), version=version)
    assert isinstance(result, AllowResult)
    assert len(result.updates) == kept


def test_a_mode_that_the_version_lacks_is_refused() -> None:
    auto = SetMode(mode=PermissionMode.AUTO, destination=Destination.SESSION)
    with pytest.raises(UsageError, match="auto"):
        result_of(Allow(updates=[auto]), version=62)
    result_of(Allow(updates=[auto]), version=325)


def test_bypass_needs_leave_from_the_start() -> None:
    bypass = SetMode(mode=PermissionMode.BYPASS_PERMISSIONS, destination=Destination.SESSION)
    with pytest.raises(UsageError, match="bypass"):
        result_of(Allow(updates=[bypass]), version=62)
    result_of(Allow(updates=[bypass]), version=62, bypass=True)


def test_a_plan_is_approved_in_a_mode_revised_or_rejected() -> None:
    plan = ask_for("ExitPlanMode", b'{"plan":"1. think"}')
    assert isinstance(plan, PlanAsk)
    assert plan.plan.plan == "1. think"
    assert plan.approve().updates == ()
    (mode,) = plan.approve(PermissionMode.ACCEPT_EDITS).updates
    assert isinstance(mode, SetMode)
    assert plan.revise("smaller") == Deny("smaller")
    assert plan.reject().interrupt


def test_questions_are_answered_by_their_text_or_skipped() -> None:
    question = {
        "question": "Which?",
        "options": [{"label": "A"}, {"label": "B"}],
        "multiSelect": True,
    }
    ask = ask_for("AskUserQuestion", json.dumps({"questions": [question]}).encode())
    assert isinstance(ask, QuestionsAsk)
    answered = ask.answer({"Which?": ["A", "B"]}, notes={"Which?": "both"})
    assert isinstance(answered.input, Raw)
    assert json.loads(bytes(answered.input))["answers"] == {"Which?": "A, B"}
    assert ask.skip().message
    with pytest.raises(UsageError, match="there is no question"):
        ask.answer({"What?": "A"})
