"""Hooks as Python functions.

A `Hook` says for which event, for which tools, and what to run. The CLI calls it by an id that
`initialize` announced; `HookTable` gives out those ids, finds the function again, and runs it.

A hook that fails must not open a door: where an event decides something, a failure decides against
it. Everywhere else it is reported to the CLI as an error, which carries on without the hook.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable

from msgspec import Struct

from quarterdeck.domain.errors import UsageError
from quarterdeck.wire.base import Part
from quarterdeck.wire.hook_outputs import (
    AsyncOutput,
    DenyDecision,
    HookDecision,
    HookPermission,
    PermissionRequestOutput,
    PreToolUseOutput,
    SyncOutput,
)
from quarterdeck.wire.hooks import HookEvent, HookInput, HookMatcher, UnknownHook
from quarterdeck.wire.requests import HookCallback

log = logging.getLogger(__name__)

HookOutput = SyncOutput | AsyncOutput
HookFunction = Callable[
    [HookInput | UnknownHook], "HookOutput | Awaitable[HookOutput | None] | None"
]


class Hook(Struct, frozen=True, kw_only=True):
    """Run `function` when `event` happens.

    `matcher` limits it to tools by name, as in Claude Code's settings (`Bash`, `Edit|Write`, `*`).
    The CLI waits `timeout` seconds for the answer; None leaves that to the CLI.
    """

    event: HookEvent
    function: HookFunction
    matcher: str | None = None
    timeout: float | None = None


class HookFailed(Exception):
    """A hook raised, and its event has no way to say no. The CLI goes on without it."""


class HookTable:
    """The hooks of one agent, by the ids under which the CLI calls them."""

    def __init__(self, hooks: Iterable[Hook]) -> None:
        self._hooks: dict[str, Hook] = {f"hook-{n}": hook for n, hook in enumerate(hooks)}
        for hook in self._hooks.values():
            if not callable(hook.function):
                raise UsageError(f"the hook for {hook.event.value} is no function")

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
        """Run the hook that the CLI calls. Raises `HookFailed` if the CLI must be told so."""
        hook = self._hooks.get(request.callback_id)
        if hook is None:
            raise HookFailed(f"there is no hook with the id {request.callback_id!r}")
        try:
            output = hook.function(request.hook_input)
            if inspect.isawaitable(output):
                output = await output
            if output is None:
                return SyncOutput()
            if not isinstance(output, SyncOutput | AsyncOutput):
                raise TypeError(f"a hook gives SyncOutput, AsyncOutput or None, not {output!r}")
            return output
        except Exception as error:
            log.exception("the hook for %s failed", hook.event.value)
            return _against(hook.event, f"A hook of the controller failed: {error!r}")


def _against(event: HookEvent, reason: str) -> Part:
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
