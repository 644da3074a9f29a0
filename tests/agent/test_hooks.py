"""Hooks as functions: registered, called, and closed when they fail."""

from __future__ import annotations

import json
from typing import Any

import anyio
import msgspec
import pytest
from msgspec import Raw

from quarterdeck.agent.hooks import Hook, HookFailed, HookFunction, HookTable
from quarterdeck.domain.errors import UsageError
from quarterdeck.wire.hook_outputs import AsyncOutput, HookDecision, SyncOutput
from quarterdeck.wire.hooks import HookEvent, PreToolUseInput
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
        HookTable([Hook(event=HookEvent.STOP, function="rm")])  # type: ignore[arg-type]


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


async def test_a_hook_that_gives_nonsense_has_failed() -> None:
    said = await answer(lambda _: {"decision": "approve"})  # type: ignore[arg-type, return-value]
    assert said["hookSpecificOutput"]["permissionDecision"] == "deny"


async def test_a_hook_that_nobody_registered_is_reported() -> None:
    with pytest.raises(HookFailed, match="hook-9"):
        await HookTable([]).call(call(HookEvent.STOP, "hook-9"))
