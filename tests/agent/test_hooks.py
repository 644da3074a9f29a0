"""Hooks as functions: registered, called, and closed when they fail."""

from __future__ import annotations

import json
from typing import Any, cast

import anyio
import msgspec
import pytest
from msgspec import Raw

from quarterdeck.agent.hooks import (
    Hook,
    HookFailed,
    HookFunction,
    HookTable,
    add_context,
    allow_call,
    ask_about_call,
    block,
    deny_call,
    end_turn,
)
from quarterdeck.domain.errors import UsageError
from quarterdeck.wire.hook_outputs import AsyncOutput, HookDecision, SyncOutput
from quarterdeck.wire.hooks import HookEvent, PreToolUseInput, UnknownHook
from quarterdeck.wire.requests import HookCallback

pytestmark = pytest.mark.anyio


def call(event: HookEvent, callback_id: str = "hook-0") -> HookCallback:
    body: dict[str, object] = {
        "hook_event_name": event.value,
        "session_id": "s",
        "tool_name": "Bash",
        "tool_input": {},
    }
    return HookCallback(callback_id=callback_id, input=Raw(json.dumps(body).encode()))


async def answer(function: HookFunction, event: HookEvent = HookEvent.PRE_TOOL_USE) -> Any:
    table = HookTable([Hook(event=event, function=function)])
    return json.loads(msgspec.json.encode(await table.call(call(event))))


def test_hooks_are_announced_by_event_with_their_matchers() -> None:
    table = HookTable(
        [
            Hook(event=HookEvent.PRE_TOOL_USE, function=lambda _: None, matcher="Bash", timeout=5),
            Hook(event=HookEvent.STOP, function=lambda _: None),
            Hook(event=HookEvent.PRE_TOOL_USE, function=lambda _: None),
        ]
    )
    said = json.loads(msgspec.json.encode(table.matchers()))
    assert said == {
        "PreToolUse": [
            {"matcher": "Bash", "hookCallbackIds": ["hook-0"], "timeout": 5},
            {"hookCallbackIds": ["hook-2"]},
        ],
        "Stop": [{"hookCallbackIds": ["hook-1"]}],
    }


def test_what_is_no_function_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="Stop"):
        HookTable([Hook(event=HookEvent.STOP, function=cast("Any", "rm"))])


async def test_a_hook_gets_its_input_typed_and_may_have_no_opinion() -> None:
    seen: list[object] = []
    assert await answer(seen.append) == {}
    assert isinstance(seen[0], PreToolUseInput)
    assert seen[0].tool_name == "Bash"


async def test_a_hook_may_be_async_and_answer_later() -> None:
    async def later(_: object) -> AsyncOutput:
        await anyio.lowlevel.checkpoint()
        return AsyncOutput()

    assert await answer(later) == {"async": True}


async def test_a_hook_decides() -> None:
    blocked = SyncOutput(decision=HookDecision.BLOCK, reason="no")
    assert await answer(lambda _: blocked) == {"decision": "block", "reason": "no"}


def failing(_: object) -> None:
    raise ZeroDivisionError("oops")


async def test_a_hook_that_fails_says_no_where_no_can_be_said() -> None:
    said = (await answer(failing, HookEvent.PRE_TOOL_USE))["hookSpecificOutput"]
    assert said["permissionDecision"] == "deny"
    assert "oops" in said["permissionDecisionReason"]
    said = (await answer(failing, HookEvent.PERMISSION_REQUEST))["hookSpecificOutput"]
    assert said["decision"]["behavior"] == "deny"
    assert (await answer(failing, HookEvent.USER_PROMPT_SUBMIT))["decision"] == "block"


async def test_a_hook_that_fails_elsewhere_is_reported() -> None:
    with pytest.raises(HookFailed, match="oops"):
        await answer(failing, HookEvent.STOP)


async def test_a_hook_that_gives_nonsense_has_failed_and_is_told_what_is_wanted() -> None:
    said = await answer(cast("Any", lambda _: {"decision": "approve"}))
    assert said["hookSpecificOutput"]["permissionDecision"] == "deny"
    reason = said["hookSpecificOutput"]["permissionDecisionReason"]
    assert "must return SyncOutput, AsyncOutput or None, got {'decision'" in reason


async def test_an_answer_for_another_event_counts_as_nonsense() -> None:
    said = await answer(lambda _: deny_call("no"), HookEvent.PERMISSION_REQUEST)
    assert said["hookSpecificOutput"]["decision"]["behavior"] == "deny"
    assert "returned an answer for PreToolUse" in said["hookSpecificOutput"]["decision"]["message"]
    with pytest.raises(HookFailed, match="an answer for PreToolUse"):
        await answer(lambda _: allow_call(), HookEvent.STOP)


def encoded(output: SyncOutput) -> Any:
    return json.loads(msgspec.json.encode(output))


def test_the_common_answers_are_one_call_each() -> None:
    assert encoded(allow_call()) == {
        "hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
    }
    assert encoded(deny_call("secret"))["hookSpecificOutput"] == {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "secret",
    }
    asked = encoded(ask_about_call("look"))["hookSpecificOutput"]
    assert (asked["permissionDecision"], asked["permissionDecisionReason"]) == ("ask", "look")
    assert encoded(block("no")) == {"decision": "block", "reason": "no"}
    assert encoded(end_turn("enough")) == {"continue": False, "stopReason": "enough"}


@pytest.mark.parametrize("changed", [{"command": "ls"}, Raw(b'{"command": "ls"}')])
def test_a_call_is_allowed_with_another_input(changed: dict[str, object] | Raw) -> None:
    said = encoded(allow_call(changed, "quieter"))["hookSpecificOutput"]
    assert said["updatedInput"] == {"command": "ls"}
    assert said["permissionDecisionReason"] == "quieter"
    with pytest.raises(UsageError, match="JSON object"):
        allow_call(Raw(b"[]"))


@pytest.mark.parametrize("event", [HookEvent.USER_PROMPT_SUBMIT, "PostToolUse", HookEvent.STOP])
def test_context_is_added_in_the_words_of_its_event(event: HookEvent | str) -> None:
    assert encoded(add_context(event, "Be brief."))["hookSpecificOutput"] == {
        "hookEventName": str(event),
        "additionalContext": "Be brief.",
    }


@pytest.mark.parametrize("event", [HookEvent.PERMISSION_REQUEST, "OfTomorrow"])
def test_an_event_that_takes_no_context_is_refused(event: HookEvent | str) -> None:
    with pytest.raises(UsageError, match=str(event)):
        add_context(event, "x")


async def test_a_hook_that_nobody_registered_is_reported() -> None:
    with pytest.raises(HookFailed, match="hook-9"):
        await HookTable([]).call(call(HookEvent.STOP, "hook-9"))


@pytest.mark.parametrize("event", list(HookEvent))
async def test_every_event_has_a_maker_that_is_typed_by_it(event: HookEvent) -> None:
    maker = getattr(Hook, event.name.lower())
    assert maker.kind.__struct_config__.tag == event.value
    seen: list[object] = []
    hook = maker(seen.append, matcher="Bash", timeout=3)
    assert (hook.event, hook.matcher, hook.timeout) == (event, "Bash", 3)
    given = maker.kind()
    hook.function(given)
    assert seen == [given]
    with pytest.raises(TypeError, match="no input of"):
        hook.function(UnknownHook())


async def test_a_typed_hook_denies_what_is_not_its_input() -> None:
    def check(call: PreToolUseInput) -> SyncOutput | None:
        return allow_call() if call.tool_name == "Bash" else None

    table = HookTable([Hook.pre_tool_use(check)])
    for event, verdict in ((HookEvent.PRE_TOOL_USE, "allow"), (HookEvent.STOP, "deny")):
        said = json.loads(msgspec.json.encode(await table.call(call(event))))
        assert said["hookSpecificOutput"]["permissionDecision"] == verdict
