"""When a request to the hub is sent again: what both clients share. Pure.

A request whose answer was lost may have been executed. It is sent again only if a second execution
changes nothing, or is recognised by an id. `public` and `blocking` are above, and do the waiting.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from quarterdeck.client.calls import AnswerLost, HubOffline, HubRefused
from quarterdeck.domain.errors import QuarterdeckError
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.commands import AnyCommand

FIRST_PAUSE = 0.25
LONGEST_PAUSE = 2.0
STOPPING = "stopping"
"""The code of a hub that stops: it has executed nothing."""

REPEATABLE_REQUESTS = frozenset(
    {
        "apply_flag_settings", "file_suggestions", "get_context_usage", "get_plan", "get_settings",
        "get_task_output", "list_models", "mcp_set_servers", "mcp_status", "mcp_toggle",
        "rewind_files", "set_max_thinking_tokens", "set_model", "set_permission_mode",
    }
)  # fmt: skip
"""Control requests whose second execution changes nothing more."""


class Attempts:
    """The attempts to send one request, until a time is over.

    `safe`: it may be executed twice. `patient`: a hub that is away from the start is waited for.
    """

    def __init__(self, now: float, seconds: float, *, safe: bool, patient: bool = True) -> None:
        self.count = 1
        """How often it was sent, with the attempt that is under way."""
        self._deadline = now + seconds
        self._safe = safe
        self._patient = patient
        self._pause = FIRST_PAUSE

    def again(self, error: QuarterdeckError, now: float) -> float:
        """How long to wait before the next attempt. Raises the error if there is to be none."""
        match error:
            case HubOffline() if self.count == 1 and not self._patient:
                raise error
            case HubOffline():
                pass
            case AnswerLost() if self._safe:
                pass
            case HubRefused(problem=problem) if problem.code == STOPPING:
                pass
            case _:
                raise error
        pause = self._pause
        if now + pause > self._deadline:
            raise error
        self._pause = min(2 * pause, LONGEST_PAUSE)
        self.count += 1
        return pause


def is_repeatable(command: AnyCommand) -> bool:
    """Whether a second execution of a command changes nothing, or is recognised by its id."""
    match command:
        case cmd.CreateSession(session=session):
            return session is not None
        case cmd.ForkSession(copy=copy):
            return copy is not None
        case cmd.Control(request=request):
            return _subtype(request) in REPEATABLE_REQUESTS
        case cmd.RewindSession(conversation=conversation, dry_run=dry_run):
            return dry_run or not conversation
        case cmd.Interrupt() | cmd.CancelPrompt():
            return False  # it might be the next turn; a prompt that ran is no longer queued
        case _:
            return True


class _Request(Struct):
    subtype: str = ""


def _subtype(request: Raw) -> str:
    try:
        return msgspec.json.decode(request, type=_Request).subtype
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
