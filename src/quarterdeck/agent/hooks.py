"""Hooks as Python functions.

A `Hook` has an event, a tool matcher and a function. The CLI calls it by an id that `initialize`
announced; `HookTable` assigns the ids and runs the functions. Common answers have a function each
(`deny_call`, `add_context` and so on); the structs behind them, and all others, are in
`wire.hook_outputs`.

A hook that fails must not allow anything: where an event makes a decision, a failure denies. For
other events it is reported to the CLI as an error, and the CLI continues without the hook.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import ClassVar, Generic, TypeVar

from msgspec import Raw, Struct

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import ABSENT
from quarterdeck.wire.base import Part
from quarterdeck.wire.hook_outputs import (
    AsyncOutput,
    DenyDecision,
    HookDecision,
    HookPermission,
    NotificationOutput,
    PermissionRequestOutput,
    PostModelSwitchOutput,
    PostToolBatchOutput,
    PostToolUseFailureOutput,
    PostToolUseOutput,
    PreToolUseOutput,
    SessionStartOutput,
    SetupOutput,
    SpecificOutput,
    StopOutput,
    SubagentStartOutput,
    SubagentStopOutput,
    SyncOutput,
    UserPromptExpansionOutput,
    UserPromptSubmitOutput,
)
from quarterdeck.wire.hooks import (
    ConfigChangeInput,
    CwdChangedInput,
    DirectoryAddedInput,
    ElicitationInput,
    ElicitationResultInput,
    FileChangedInput,
    HookEvent,
    HookInput,
    HookInputBase,
    HookMatcher,
    InstructionsLoadedInput,
    MessageDisplayInput,
    NotificationInput,
    PermissionDeniedInput,
    PermissionRequestInput,
    PostCompactInput,
    PostModelSwitchInput,
    PostToolBatchInput,
    PostToolUseFailureInput,
    PostToolUseInput,
    PreCompactInput,
    PreModelSwitchInput,
    PreToolUseInput,
    SessionEndInput,
    SessionStartInput,
    SetupInput,
    StopFailureInput,
    StopInput,
    SubagentStartInput,
    SubagentStopInput,
    TaskCompletedInput,
    TaskCreatedInput,
    TeammateIdleInput,
    UnknownHook,
    UserPromptExpansionInput,
    UserPromptSubmitInput,
    WorktreeCreateInput,
    WorktreeRemoveInput,
)
from quarterdeck.wire.rawjson import dump
from quarterdeck.wire.requests import HookCallback

log = logging.getLogger(__name__)

HookOutput = SyncOutput | AsyncOutput
HookFunction = Callable[
    [HookInput | UnknownHook], "HookOutput | Awaitable[HookOutput | None] | None"
]


In = TypeVar("In", bound=HookInputBase)


class HookMaker(Generic[In]):
    """Makes hooks of one event, for functions that take the input of that event."""

    def __init__(self, event: HookEvent, kind: type[In]) -> None:
        self.event = event
        self.kind = kind

    def __call__(
        self,
        function: Callable[[In], HookOutput | Awaitable[HookOutput | None] | None],
        *,
        matcher: str | None = None,
        timeout: float | None = None,
    ) -> Hook:
        """A hook that runs `function`. What is not an input of this event fails, and so denies."""

        def call_typed(
            given: HookInput | UnknownHook,
        ) -> HookOutput | Awaitable[HookOutput | None] | None:
            if not isinstance(given, self.kind):
                raise TypeError(f"the CLI sent no input of {self.event.value}")
            return function(given)

        return Hook(event=self.event, function=call_typed, matcher=matcher, timeout=timeout)


class Hook(Struct, frozen=True, kw_only=True):
    """Run `function` when `event` happens.

    Each event has a maker that is typed by it: `Hook.pre_tool_use(check, matcher="Bash")` wants a
    function that takes a `PreToolUseInput`.

    `matcher` limits it to tools by name, as in Claude Code's settings (`Bash`, `Edit|Write`, `*`).
    The CLI waits `timeout` seconds for the answer; None leaves that to the CLI.
    """

    event: HookEvent
    function: HookFunction
    matcher: str | None = None
    timeout: float | None = None

    pre_tool_use: ClassVar[HookMaker[PreToolUseInput]] = HookMaker(
        HookEvent.PRE_TOOL_USE, PreToolUseInput
    )
    post_tool_use: ClassVar[HookMaker[PostToolUseInput]] = HookMaker(
        HookEvent.POST_TOOL_USE, PostToolUseInput
    )
    post_tool_use_failure: ClassVar[HookMaker[PostToolUseFailureInput]] = HookMaker(
        HookEvent.POST_TOOL_USE_FAILURE, PostToolUseFailureInput
    )
    post_tool_batch: ClassVar[HookMaker[PostToolBatchInput]] = HookMaker(
        HookEvent.POST_TOOL_BATCH, PostToolBatchInput
    )
    notification: ClassVar[HookMaker[NotificationInput]] = HookMaker(
        HookEvent.NOTIFICATION, NotificationInput
    )
    user_prompt_submit: ClassVar[HookMaker[UserPromptSubmitInput]] = HookMaker(
        HookEvent.USER_PROMPT_SUBMIT, UserPromptSubmitInput
    )
    user_prompt_expansion: ClassVar[HookMaker[UserPromptExpansionInput]] = HookMaker(
        HookEvent.USER_PROMPT_EXPANSION, UserPromptExpansionInput
    )
    session_start: ClassVar[HookMaker[SessionStartInput]] = HookMaker(
        HookEvent.SESSION_START, SessionStartInput
    )
    session_end: ClassVar[HookMaker[SessionEndInput]] = HookMaker(
        HookEvent.SESSION_END, SessionEndInput
    )
    stop: ClassVar[HookMaker[StopInput]] = HookMaker(HookEvent.STOP, StopInput)
    stop_failure: ClassVar[HookMaker[StopFailureInput]] = HookMaker(
        HookEvent.STOP_FAILURE, StopFailureInput
    )
    subagent_start: ClassVar[HookMaker[SubagentStartInput]] = HookMaker(
        HookEvent.SUBAGENT_START, SubagentStartInput
    )
    subagent_stop: ClassVar[HookMaker[SubagentStopInput]] = HookMaker(
        HookEvent.SUBAGENT_STOP, SubagentStopInput
    )
    pre_compact: ClassVar[HookMaker[PreCompactInput]] = HookMaker(
        HookEvent.PRE_COMPACT, PreCompactInput
    )
    post_compact: ClassVar[HookMaker[PostCompactInput]] = HookMaker(
        HookEvent.POST_COMPACT, PostCompactInput
    )
    pre_model_switch: ClassVar[HookMaker[PreModelSwitchInput]] = HookMaker(
        HookEvent.PRE_MODEL_SWITCH, PreModelSwitchInput
    )
    post_model_switch: ClassVar[HookMaker[PostModelSwitchInput]] = HookMaker(
        HookEvent.POST_MODEL_SWITCH, PostModelSwitchInput
    )
    permission_request: ClassVar[HookMaker[PermissionRequestInput]] = HookMaker(
        HookEvent.PERMISSION_REQUEST, PermissionRequestInput
    )
    permission_denied: ClassVar[HookMaker[PermissionDeniedInput]] = HookMaker(
        HookEvent.PERMISSION_DENIED, PermissionDeniedInput
    )
    setup: ClassVar[HookMaker[SetupInput]] = HookMaker(HookEvent.SETUP, SetupInput)
    teammate_idle: ClassVar[HookMaker[TeammateIdleInput]] = HookMaker(
        HookEvent.TEAMMATE_IDLE, TeammateIdleInput
    )
    task_created: ClassVar[HookMaker[TaskCreatedInput]] = HookMaker(
        HookEvent.TASK_CREATED, TaskCreatedInput
    )
    task_completed: ClassVar[HookMaker[TaskCompletedInput]] = HookMaker(
        HookEvent.TASK_COMPLETED, TaskCompletedInput
    )
    elicitation: ClassVar[HookMaker[ElicitationInput]] = HookMaker(
        HookEvent.ELICITATION, ElicitationInput
    )
    elicitation_result: ClassVar[HookMaker[ElicitationResultInput]] = HookMaker(
        HookEvent.ELICITATION_RESULT, ElicitationResultInput
    )
    config_change: ClassVar[HookMaker[ConfigChangeInput]] = HookMaker(
        HookEvent.CONFIG_CHANGE, ConfigChangeInput
    )
    worktree_create: ClassVar[HookMaker[WorktreeCreateInput]] = HookMaker(
        HookEvent.WORKTREE_CREATE, WorktreeCreateInput
    )
    worktree_remove: ClassVar[HookMaker[WorktreeRemoveInput]] = HookMaker(
        HookEvent.WORKTREE_REMOVE, WorktreeRemoveInput
    )
    instructions_loaded: ClassVar[HookMaker[InstructionsLoadedInput]] = HookMaker(
        HookEvent.INSTRUCTIONS_LOADED, InstructionsLoadedInput
    )
    cwd_changed: ClassVar[HookMaker[CwdChangedInput]] = HookMaker(
        HookEvent.CWD_CHANGED, CwdChangedInput
    )
    file_changed: ClassVar[HookMaker[FileChangedInput]] = HookMaker(
        HookEvent.FILE_CHANGED, FileChangedInput
    )
    directory_added: ClassVar[HookMaker[DirectoryAddedInput]] = HookMaker(
        HookEvent.DIRECTORY_ADDED, DirectoryAddedInput
    )
    message_display: ClassVar[HookMaker[MessageDisplayInput]] = HookMaker(
        HookEvent.MESSAGE_DISPLAY, MessageDisplayInput
    )


_WITH_CONTEXT: dict[HookEvent, Callable[..., SpecificOutput]] = {
    HookEvent.PRE_TOOL_USE: PreToolUseOutput,
    HookEvent.POST_TOOL_USE: PostToolUseOutput,
    HookEvent.POST_TOOL_USE_FAILURE: PostToolUseFailureOutput,
    HookEvent.POST_TOOL_BATCH: PostToolBatchOutput,
    HookEvent.NOTIFICATION: NotificationOutput,
    HookEvent.USER_PROMPT_SUBMIT: UserPromptSubmitOutput,
    HookEvent.USER_PROMPT_EXPANSION: UserPromptExpansionOutput,
    HookEvent.SESSION_START: SessionStartOutput,
    HookEvent.SETUP: SetupOutput,
    HookEvent.STOP: StopOutput,
    HookEvent.SUBAGENT_START: SubagentStartOutput,
    HookEvent.SUBAGENT_STOP: SubagentStopOutput,
    HookEvent.POST_MODEL_SWITCH: PostModelSwitchOutput,
}


def allow_call(changed: Mapping[str, object] | Raw | None = None, reason: str = "") -> SyncOutput:
    """For `PreToolUse`: let the tool run, unasked; with `changed` in place of its whole input."""
    return _about_call(HookPermission.ALLOW, reason, ABSENT if changed is None else dump(changed))


def deny_call(reason: str) -> SyncOutput:
    """For `PreToolUse`: do not let the tool run. The model reads `reason` and continues."""
    return _about_call(HookPermission.DENY, reason)


def ask_about_call(reason: str = "") -> SyncOutput:
    """For `PreToolUse`: have permission asked for, whatever the rules say."""
    return _about_call(HookPermission.ASK, reason)


def _about_call(verdict: HookPermission, reason: str, changed: Raw = ABSENT) -> SyncOutput:
    return SyncOutput(
        specific=PreToolUseOutput(
            permission_decision=verdict,
            permission_decision_reason=reason or None,
            updated_input=changed,
        )
    )


def block(reason: str) -> SyncOutput:
    """Do not let it happen: a prompt is not sent, a model that wants to stop continues.

    After a tool (`PostToolUse`) it is too late for that, but the model reads `reason`.
    """
    return SyncOutput(decision=HookDecision.BLOCK, reason=reason)


def add_context(event: HookEvent | str, text: str) -> SyncOutput:
    """Tell the model something more. Raises `UsageError` for an event that cannot do so."""
    make = _WITH_CONTEXT.get(HookEvent(event))
    if make is None:
        raise UsageError(f"a hook for {HookEvent(event).value} cannot add context")
    return SyncOutput(specific=make(additional_context=text))


def end_turn(reason: str) -> SyncOutput:
    """End the turn, after the tool in question has been asked for and run. People read `reason`."""
    return SyncOutput(continue_=False, stop_reason=reason)


class HookFailed(Exception):
    """A hook raised, and its event cannot deny. The CLI continues without it."""


class HookTable:
    """The hooks of one agent, by the ids under which the CLI calls them."""

    def __init__(self, hooks: Iterable[Hook]) -> None:
        self._hooks: dict[str, Hook] = {f"hook-{n}": hook for n, hook in enumerate(hooks)}
        for hook in self._hooks.values():
            if not callable(hook.function):
                raise UsageError(f"the hook for {hook.event.value} is not a function")

    def matchers(self) -> dict[str, tuple[HookMatcher, ...]]:
        """What `initialize` announces."""
        found: dict[str, list[HookMatcher]] = {}
        for callback_id, hook in self._hooks.items():
            found.setdefault(hook.event.value, []).append(
                HookMatcher(
                    matcher=hook.matcher, hook_callback_ids=(callback_id,), timeout=hook.timeout
                )
            )
        return {event: tuple(matchers) for event, matchers in found.items()}

    async def call(self, request: HookCallback) -> Part:
        """Run the hook that the CLI calls. Raises `HookFailed` if the CLI must get an error."""
        hook = self._hooks.get(request.callback_id)
        if hook is None:
            raise HookFailed(f"there is no hook with the id {request.callback_id!r}")
        try:
            # A user's function may return anything, whatever its annotations say.
            output: object = hook.function(request.hook_input)
            if inspect.isawaitable(output):
                output = await output
        except Exception as error:
            log.exception("the hook for %s failed", hook.event.value)
            return _denial(hook.event, f"A hook of the controller failed: {error!r}")
        event = hook.event.value
        match output:
            case None:
                return SyncOutput()
            case AsyncOutput():
                return output
            case SyncOutput(specific=specific) if specific is None or _event_of(specific) == event:
                return output
            case SyncOutput(specific=specific):
                # The CLI would ignore it, and continue as if the hook had no opinion.
                fault = f"returned an answer for {_event_of(specific)}"
            case _:
                fault = f"must return SyncOutput, AsyncOutput or None, got {output!r}"
        reason = f"The controller's hook for {event} {fault}."
        log.error("%s", reason)
        return _denial(hook.event, reason)


def _event_of(specific: SpecificOutput | None) -> str:
    return "" if specific is None else str(specific.__struct_config__.tag)


def _denial(event: HookEvent, reason: str) -> Part:
    match event:
        case HookEvent.PRE_TOOL_USE:
            return SyncOutput(
                specific=PreToolUseOutput(
                    permission_decision=HookPermission.DENY, permission_decision_reason=reason
                )
            )
        case HookEvent.PERMISSION_REQUEST:
            return SyncOutput(
                specific=PermissionRequestOutput(decision=DenyDecision(message=reason))
            )
        case HookEvent.USER_PROMPT_SUBMIT:
            return SyncOutput(decision=HookDecision.BLOCK, reason=reason)
        case _:
            raise HookFailed(reason)
