"""Hooks: Python functions that the CLI calls, and the effect of each kind of answer."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from quarterdeck import Agent, Hook, ToolAsk
from quarterdeck.agent.asks import Allow, AnyAsk
from quarterdeck.agent.hooks import HookOutput, add_context, block, end_turn
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
)
from quarterdeck.wire.hooks import (
    HookEvent,
    HookInput,
    PermissionRequestInput,
    PostToolUseInput,
    PreToolUseInput,
    StopInput,
    UnknownHook,
    UserPromptSubmitInput,
)
from quarterdeck.wire.rawjson import dump
from quarterdeck.wire.states import State
from quarterdeck.wire.versions import release
from support.bounds import SECONDS
from support.scenes import write
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
        case text if b"touch approved" in text:
            return SyncOutput(decision=HookDecision.APPROVE)
        case text if b"touch denied" in text:
            return decision(HookPermission.DENY, "not this one")
        case text if b"touch blocked" in text:
            return SyncOutput(decision=HookDecision.BLOCK, reason="nor that one")
        case text if b"touch asked" in text:
            return decision(HookPermission.ASK)
        case text if b"touch before" in text:
            return decision(HookPermission.ALLOW, command="touch changed")
        case text if b"touch proposed" in text:
            changed = dump({"command": "touch instead"})
            return SyncOutput(specific=PreToolUseOutput(updated_input=changed))
        case text if b"touch noted" in text:
            return SyncOutput(system_message="mind the step")
        case text if b"touch later" in text:
            return AsyncOutput()
        case text if b"touch failing" in text:
            raise RuntimeError("the hook is broken")
        case text if b"touch last" in text:
            return end_turn("enough for today")
        case text if b"touch deferred" in text:
            return decision(HookPermission.DEFER)
        case _:
            return None


class House:
    """The hooks of one session, and what they saw. Each acts on words of its own."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        self.seen: list[HookEvent] = []
        self.stops: list[bool] = []
        self.questions: list[str] = []
        self.withdrawn = anyio.Event()

    def hooks(self) -> list[Hook]:
        events = {
            HookEvent.USER_PROMPT_SUBMIT: self.on_prompt,
            HookEvent.PRE_TOOL_USE: lambda _: None,
            HookEvent.PERMISSION_REQUEST: self.on_question,
            HookEvent.POST_TOOL_USE: self.on_result,
            HookEvent.POST_TOOL_USE_FAILURE: lambda _: None,
            HookEvent.STOP: self.on_stop,
            # Nobody calls these: the first is called for hooks of the settings only, the second
            # is tried when nobody can be asked any more.
            HookEvent.SESSION_START: lambda _: None,
            HookEvent.SESSION_END: lambda _: None,
            HookEvent("NoSuchEvent"): lambda _: None,
        }
        return [
            *(self._noted(event, function) for event, function in events.items()),
            Hook(event=HookEvent.PRE_TOOL_USE, matcher="Bash", function=before_tool),
            Hook(event=HookEvent.PRE_TOOL_USE, matcher="Write", function=self.never, timeout=1),
        ]

    def _noted(
        self,
        event: HookEvent,
        function: Callable[[HookInput | UnknownHook], SyncOutput | None],
    ) -> Hook:
        def call(given: HookInput | UnknownHook) -> SyncOutput | None:
            self.seen.append(event)
            return function(given)

        return Hook(event=event, function=call)

    def on_prompt(self, call: HookInput | UnknownHook) -> SyncOutput | None:
        assert isinstance(call, UserPromptSubmitInput)
        if "forbidden" in call.prompt:
            return block("not in this house")
        if "stopped" in call.prompt:
            return end_turn("not today")
        if "context" in call.prompt:
            return add_context(HookEvent.USER_PROMPT_SUBMIT, "The sky is green today.")
        return None

    def on_stop(self, call: HookInput | UnknownHook) -> SyncOutput | None:
        assert isinstance(call, StopInput)
        self.stops.append(call.stop_hook_active)
        if len(self.seat.model.turns) != 1 or call.stop_hook_active:
            return None
        return block("you are not done")

    def on_question(self, call: HookInput | UnknownHook) -> SyncOutput | None:
        assert isinstance(call, PermissionRequestInput)
        if b"by-hook" not in bytes(call.tool_input):
            return None
        allowed = AllowDecision(updated_input=call.tool_input)
        return SyncOutput(specific=PermissionRequestOutput(decision=allowed))

    def on_result(self, call: HookInput | UnknownHook) -> None:
        assert isinstance(call, PostToolUseInput)
        if b"touch plain" in bytes(call.tool_input):
            raise RuntimeError("it is too late to say no")

    async def never(self, _: HookInput | UnknownHook) -> None:
        await anyio.sleep_forever()

    async def decide(self, ask: AnyAsk) -> Allow:
        assert isinstance(ask, ToolAsk)
        self.questions.append(bytes(ask.input).decode())
        if "by-hook" in self.questions[-1]:
            try:
                await anyio.sleep_forever()
            finally:
                self.withdrawn.set()
        return ask.allow()


async def test_hooks_see_what_happens_and_decide_about_it(seat: Seat) -> None:
    house = House(seat)
    async with seat.agent(decide=house.decide, hooks=house.hooks()) as agent:
        with anyio.fail_after(SECONDS):
            await a_hook_may_stop_a_prompt_or_add_to_it(seat, agent, house)
            await hooks_are_called_in_order(seat, agent, house)
            await a_hook_before_a_tool_decides_about_it(seat, agent, house)
            await a_hook_may_end_the_turn(seat, agent, house)
            await a_hook_may_answer_a_question(seat, agent, house)
            await a_hook_that_does_not_answer_is_not_waited_for(seat, agent, house)
    assert HookEvent("NoSuchEvent") not in house.seen
    assert not {HookEvent.SESSION_START, HookEvent.SESSION_END} & {*house.seen}
    seat.found("Hooks: SessionStart, SessionEnd", "not called")


async def a_hook_may_stop_a_prompt_or_add_to_it(seat: Seat, agent: Agent, house: House) -> None:
    for prompt in ("forbidden fruit", "stopped at the door"):
        turn = await agent.query(prompt).finish()
        assert turn.result is not None
        assert not turn.failed
        said = turn.result.result or ""
        assert said == "" or (seat.version >= release(325) and "hook" in said)
        assert not seat.model.turns
        assert agent.state is State.READY
    seat.found("Hooks: UserPromptSubmit blocks a prompt")

    assert "you are not done" in await agent.query("with context").text()
    first, second = seat.model.turns
    assert "The sky is green today." in first.body.decode()
    seat.found("Hooks: UserPromptSubmit adds to a prompt")
    assert "you are not done" in second.last_text
    assert house.stops == [False, True]
    seat.found("Hooks: Stop makes the model go on")


async def hooks_are_called_in_order(seat: Seat, agent: Agent, house: House) -> None:
    house.seen.clear()
    # The hook after the tool fails: it is logged, and nothing else comes of it.
    assert await agent.query(play(touch("plain"), "over")).text() == "over"
    assert house.seen == [
        HookEvent.USER_PROMPT_SUBMIT,
        HookEvent.PRE_TOOL_USE,
        HookEvent.PERMISSION_REQUEST,
        HookEvent.POST_TOOL_USE,
        HookEvent.STOP,
    ]
    assert len(house.questions) == 1
    seat.found("Hooks: PostToolUse, PostToolUseFailure, Stop")


async def a_hook_before_a_tool_decides_about_it(seat: Seat, agent: Agent, house: House) -> None:
    house.seen.clear()
    house.questions.clear()
    names = ("allowed", "approved", "denied", "blocked", "asked", "before", "proposed", "noted")
    calls = [touch(name) for name in (*names, "later", "failing")]
    script = play(*calls, ToolUse("Bash", {"command": "ls nothing-here"}), "over")
    assert await agent.query(script).text() == "over"
    made = {path.name for path in seat.cwd.iterdir() if path.is_file()}
    ran = {"allowed", "approved", "asked", "changed", "instead", "noted", "later"}
    assert made == {"plain", *ran}
    asked = [text.partition("touch ")[2].strip('"}') for text in house.questions]
    assert asked == ["asked", "instead", "noted", "later"]
    results = [block.plain for block in seat.model.turns[-1].last_message.blocks]
    assert any("nothing-here" in text for text in results)
    told = seat.model.turns[-1].body.decode()
    assert "not this one" in told
    assert "nor that one" in told
    newest = seat.version >= release(325)
    assert ("PreToolUse:Bash hook error: not this one" in told) is newest
    assert "the hook is broken" in told
    after = [event for event in house.seen if event is not HookEvent.PERMISSION_REQUEST]
    assert after.count(HookEvent.PRE_TOOL_USE) == len(calls) + 1
    assert [event for event in after if event is not HookEvent.PRE_TOOL_USE] == [
        HookEvent.USER_PROMPT_SUBMIT,
        *[HookEvent.POST_TOOL_USE] * len(ran),
        HookEvent.POST_TOOL_USE_FAILURE,
        HookEvent.STOP,
    ]
    seat.found("Hooks: PreToolUse allows, denies, asks")
    seat.found("Hooks: PreToolUse changes the input")
    seat.found("Hooks: asynchronous answers")


async def a_hook_may_end_the_turn(seat: Seat, agent: Agent, house: House) -> None:
    house.questions.clear()
    asked = len(seat.model.turns)
    ended = await agent.query(play(touch("last"), "never said")).finish()
    assert (seat.cwd / "last").exists()
    assert len(house.questions) == 1
    assert len(seat.model.turns) == asked + 1
    assert not ended.failed
    seat.found("Hooks: PreToolUse ends the turn", "after the call")

    house.questions.clear()
    asked = len(seat.model.turns)
    put_off = await agent.query(play(touch("deferred"), "then")).finish()
    assert not put_off.failed
    defers = seat.version >= release(120)
    assert (seat.cwd / "deferred").exists() is not defers
    assert len(house.questions) == (not defers)
    assert len(seat.model.turns) == asked + (1 if defers else 2)
    seat.found("Hooks: PreToolUse puts a call off", "the turn ends" if defers else "is ignored")


async def a_hook_may_answer_a_question(seat: Seat, agent: Agent, house: House) -> None:
    house.questions.clear()
    await agent.query(play(touch("by-hook"), "ok")).text()
    assert (seat.cwd / "by-hook").exists()
    if seat.version >= release(62):
        await house.withdrawn.wait()
        answer = "yes, the question is withdrawn"
    else:
        assert house.questions == []
        answer = "yes, before the question"
    seat.found("Hooks: PermissionRequest decides", answer)


async def a_hook_that_does_not_answer_is_not_waited_for(
    seat: Seat, agent: Agent, house: House
) -> None:
    house.questions.clear()
    await agent.query(play(write(seat.cwd / "slow"), "ok")).text()
    goes_on = seat.version < release(325)
    assert (seat.cwd / "slow").exists() is goes_on
    assert len(house.questions) == goes_on
    answer = "the call continues without it" if goes_on else "the call is refused"
    seat.found("Hooks: a hook that does not answer in time", answer)
