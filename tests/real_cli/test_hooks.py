"""Hooks: Python functions that the CLI calls, and the effect of each kind of answer."""

from __future__ import annotations

import anyio
import pytest

from quarterdeck import Hook, ToolAsk
from quarterdeck.agent.asks import Allow, AnyAsk
from quarterdeck.agent.hooks import HookOutput
from quarterdeck.domain.structs import ABSENT
from quarterdeck.testing import ToolUse, play
from quarterdeck.wire.hook_outputs import (
    AllowDecision,
    AsyncOutput,
    HookDecision,
    HookPermission,
    PermissionRequestOutput,
    PreToolUseOutput,
    SyncOutput,
    UserPromptSubmitOutput,
)
from quarterdeck.wire.hooks import (
    HookEvent,
    HookInput,
    PermissionRequestInput,
    PreToolUseInput,
    StopInput,
    UnknownHook,
    UserPromptSubmitInput,
)
from quarterdeck.wire.rawjson import dump
from quarterdeck.wire.states import State
from quarterdeck.wire.versions import release
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


def touch(name: str) -> ToolUse:
    """A call that has to be asked for, and leaves a file behind."""
    return ToolUse("Bash", {"command": f"touch {name}"})


def decision(
    kind: HookPermission, reason: str | None = None, *, command: str | None = None
) -> SyncOutput:
    """What a PreToolUse hook says of a call, and what is to run in its place."""
    return SyncOutput(
        specific=PreToolUseOutput(
            permission_decision=kind,
            permission_decision_reason=reason,
            updated_input=dump({"command": command}) if command else ABSENT,
        )
    )


def before_tool(call: HookInput | UnknownHook) -> HookOutput | None:
    assert isinstance(call, PreToolUseInput)
    match bytes(call.tool_input):
        case text if b"touch allowed" in text:
            return decision(HookPermission.ALLOW)
        case text if b"touch denied" in text:
            return decision(HookPermission.DENY, "not this one")
        case text if b"touch asked" in text:
            return decision(HookPermission.ASK)
        case text if b"touch before" in text:
            return decision(HookPermission.ALLOW, command="touch changed")
        case text if b"touch later" in text:
            return AsyncOutput()
        case text if b"touch failing" in text:
            raise RuntimeError("the hook is broken")
        case _:
            return None


async def test_a_hook_before_a_tool_decides_about_it(seat: Seat) -> None:
    seen: list[HookEvent] = []
    asked: list[bytes] = []

    def note(event: HookEvent) -> Hook:
        return Hook(event=event, function=lambda _: seen.append(event))

    def decide(ask: AnyAsk) -> Allow:
        asked.append(bytes(ask.input))
        return Allow()

    events = (HookEvent.POST_TOOL_USE, HookEvent.POST_TOOL_USE_FAILURE, HookEvent.STOP)
    hooks = [
        Hook(event=HookEvent.PRE_TOOL_USE, matcher="Bash", function=before_tool),
        *(note(event) for event in events),
    ]
    names = ("allowed", "denied", "asked", "before", "later", "failing", "plain")
    calls = [touch(name) for name in names]
    script = play(*calls, ToolUse("Bash", {"command": "ls nothing-here"}), "over")
    async with seat.agent(decide=decide, hooks=hooks) as agent:
        with anyio.fail_after(30):
            assert await agent.query(script).text() == "over"
    made = {path.name for path in seat.cwd.iterdir() if path.is_file()}
    assert made == {"allowed", "asked", "changed", "later", "plain"}
    assert [b"asked" in text or b"later" in text or b"plain" in text for text in asked] == [
        True
    ] * 3
    results = [block.plain for block in seat.model.turns[-1].last_message.blocks]
    assert any("nothing-here" in text for text in results)
    told = seat.model.turns[-1].body.decode()
    assert "not this one" in told
    assert "the hook is broken" in told
    assert seen == [HookEvent.POST_TOOL_USE] * 5 + [HookEvent.POST_TOOL_USE_FAILURE, HookEvent.STOP]
    seat.found("Hooks: PreToolUse allows, denies, asks")
    seat.found("Hooks: PreToolUse changes the input")
    seat.found("Hooks: PostToolUse, PostToolUseFailure, Stop")
    seat.found("Hooks: asynchronous answers")


async def test_hooks_on_prompts_stops_and_questions(seat: Seat) -> None:
    withdrawn = anyio.Event()
    questions: list[str] = []
    stops: list[bool] = []

    def on_prompt(call: HookInput | UnknownHook) -> SyncOutput | None:
        assert isinstance(call, UserPromptSubmitInput)
        if "forbidden" in call.prompt:
            return SyncOutput(decision=HookDecision.BLOCK, reason="not in this house")
        if "context" in call.prompt:
            added = UserPromptSubmitOutput(additional_context="The sky is green today.")
            return SyncOutput(specific=added)
        return None

    def on_stop(call: HookInput | UnknownHook) -> SyncOutput | None:
        assert isinstance(call, StopInput)
        stops.append(call.stop_hook_active)
        if len(seat.model.turns) != 1 or call.stop_hook_active:
            return None
        return SyncOutput(decision=HookDecision.BLOCK, reason="you are not done")

    def on_question(call: HookInput | UnknownHook) -> SyncOutput | None:
        assert isinstance(call, PermissionRequestInput)
        if b"by-hook" not in bytes(call.tool_input):
            return None
        allowed = AllowDecision(updated_input=call.tool_input)
        return SyncOutput(specific=PermissionRequestOutput(decision=allowed))

    async def decide(ask: AnyAsk) -> Allow:
        assert isinstance(ask, ToolAsk)
        questions.append(bytes(ask.input).decode())
        if "by-hook" in questions[-1]:
            try:
                await anyio.sleep_forever()
            finally:
                withdrawn.set()
        return ask.allow()

    async def never(_: HookInput | UnknownHook) -> None:
        await anyio.sleep_forever()

    hooks = [
        Hook(event=HookEvent.USER_PROMPT_SUBMIT, function=on_prompt),
        Hook(event=HookEvent.STOP, function=on_stop),
        Hook(event=HookEvent.PERMISSION_REQUEST, function=on_question),
        Hook(event=HookEvent.PRE_TOOL_USE, matcher="Write", function=never, timeout=1),
    ]
    async with seat.agent(decide=decide, hooks=hooks) as agent:
        with anyio.fail_after(30):
            blocked = await agent.query("forbidden fruit").finish()
            assert blocked.result is not None
            assert not blocked.failed
            assert not seat.model.turns
            assert agent.state is State.READY
            seat.found("Hooks: UserPromptSubmit blocks a prompt")

            assert "you are not done" in await agent.query("with context").text()
            first, second = seat.model.turns
            assert "The sky is green today." in first.body.decode()
            seat.found("Hooks: UserPromptSubmit adds to a prompt")
            assert "you are not done" in second.last_text
            assert stops == [False, True]
            seat.found("Hooks: Stop makes the model go on")

            await agent.query(play(touch("by-hook"), "ok")).text()
            assert (seat.cwd / "by-hook").exists()
            if seat.version >= release(62):
                await withdrawn.wait()
                answer = "yes, the question is withdrawn"
            else:
                assert questions == []
                answer = "yes, before the question"
            seat.found("Hooks: PermissionRequest decides", answer)

            questions.clear()
            write = ToolUse("Write", {"file_path": str(seat.cwd / "slow"), "content": "x"})
            await agent.query(play(write, "ok")).text()
            goes_on = seat.version < release(325)
            assert (seat.cwd / "slow").exists() is goes_on
            assert len(questions) == goes_on
            answer = "the call goes on without it" if goes_on else "the call is refused"
            seat.found("Hooks: a hook that does not answer in time", answer)
