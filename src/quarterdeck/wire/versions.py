"""The differences between versions of the CLI.

Owns the table of differences that matter to a controller, each with its reason, and `check`, which
refuses requests that would harm the CLI's version or mean something else there. All of it was
observed on real CLIs: 2.1.37, 2.1.62, 2.1.120 and 2.1.325 in depth, each trait also on 2.1.52, .92
and .200, some on .150. A bound between two of these is the older one where that is the safer guess.

An unknown version (None) gets the careful answer: it may be the oldest for what we send, and the
newest for what we rely on.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from quarterdeck.domain.errors import UnsupportedError, UsageError
from quarterdeck.wire.command_base import Command, UnknownCommand
from quarterdeck.wire.commands import (
    ApplyFlagSettings,
    Initialize,
    Interrupt,
    McpCall,
    SetMcpPermissionModeOverride,
    SetPermissionMode,
)
from quarterdeck.wire.outbound import Prompt
from quarterdeck.wire.permissions import PermissionMode

_OLDEST = 37
"""The oldest known version. Every version accepts what it accepts."""

_NUMBER = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?![\d.])")


class Version(Struct, frozen=True, order=True):
    """A version of the CLI. They are ordered by their numbers."""

    major: int
    minor: int
    patch: int

    @classmethod
    def parse(cls, text: str) -> Version | None:
        """Parse `2.1.325` or `2.1.325 (Claude Code)`; None if it is not a version."""
        found = _NUMBER.match(text.strip().removeprefix("v"))
        return cls(*map(int, found.groups())) if found else None

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def release(patch: int) -> Version:
    """2.1.N, the line of versions that all bounds here are about."""
    return Version(2, 1, patch)


class Trait(Struct, frozen=True, kw_only=True):
    """A behaviour of some versions: from `since` on, up to and including `until`.

    Call it with a version. `unknown` is the result for an unknown version.
    """

    why: str
    since: int = 0
    until: int | None = None
    unknown: bool = False

    def __call__(self, version: Version | None) -> bool:
        """Whether this version has the trait."""
        if version is None:
            return self.unknown
        return version >= release(self.since) and (
            self.until is None or version <= release(self.until)
        )


may_send_cancel = Trait(
    since=52, why="2.1.37 exits on a control_cancel_request, as on every unknown type"
)
survives_unknown_types = Trait(since=52, why="2.1.37 exits on a message of an unknown type")
answers_unknown_subtypes = Trait(since=52, why="2.1.37 does not answer an unknown control subtype")
initialize_repeatable = Trait(
    since=200,
    why="older ones answer 'Already initialized', with the list of what is pending; a prompt before"
    " the first initialize counts as one",
)
needs_updated_input = Trait(
    until=324, unknown=True, why="up to 2.1.120 an allow without updatedInput is refused"
)
accepts_unknown_updates = Trait(
    since=92, why="2.1.37 and 2.1.62 refuse a whole allow because of one unknown update"
)
guards_bypass = Trait(
    since=92, why="up to 2.1.62 bypassPermissions can be set without a launch flag"
)
checks_modes = Trait(since=325, why="up to 2.1.200 any string is accepted as a mode")
can_dial = Trait(until=120, why="2.1.121 and newer refuse a --sdk-url to other hosts")
replays_after_reconnect = Trait(
    since=113, unknown=True, why="native builds send their whole buffer again; dedupe by uuid"
)
joins_queued_prompts = Trait(
    since=63, unknown=True, why="from 2.1.120 on prompts queued during a text make one turn"
)
honours_priority = Trait(since=92, why="2.1.37 and 2.1.62 ignore the priority of a prompt")
starts_turns_itself = Trait(
    since=38, unknown=True, why="from 2.1.62 on a finished background task starts a turn"
)
marks_own_turns = Trait(since=325, why="its results name an origin; 2.1.120 does not")
has_command_lifecycle = Trait(since=325, why="2.1.120 does not report the outcome of a prompt")
has_interrupt_receipt = Trait(since=205, why="older ones answer an interrupt with nothing")
announces_mode_changes = Trait(
    since=92, why="2.1.37 and 2.1.62 send no status after set_permission_mode"
)
flags_all_errors = Trait(
    since=92,
    why="2.1.37 and 2.1.62 say is_error:false after an interrupt, max turns and max budget",
)
environment_reaches_tools = Trait(
    until=120, why="2.1.325 accepts only a few tokens and passes no variable to Bash"
)
kills_children_on_term = Trait(
    since=325, why="up to 2.1.120 the children of Bash survive the CLI's SIGTERM"
)

TRAITS: dict[str, Trait] = {
    name: value for name, value in globals().items() if isinstance(value, Trait)
}
"""All traits by name, for the documentation."""

_MODES: dict[PermissionMode, Trait] = {
    PermissionMode.DEFAULT: Trait(unknown=True, why="supported by all"),
    PermissionMode.ACCEPT_EDITS: Trait(unknown=True, why="supported by all"),
    PermissionMode.PLAN: Trait(unknown=True, why="supported by all"),
    PermissionMode.DONT_ASK: Trait(unknown=True, why="supported by all"),
    PermissionMode.BYPASS_PERMISSIONS: Trait(unknown=True, why="supported by all"),
    PermissionMode.AUTO: Trait(since=91, why="2.1.62 accepts it without supporting it"),
    PermissionMode.DELEGATE: Trait(until=37, why="2.1.52 no longer has it"),
}
"""Which modes a version has. Most versions accept any string, so we are the ones to refuse."""

_AGENT_MODELS = frozenset({"sonnet", "opus", "haiku", "inherit"})
_ANY_AGENT_MODEL = Trait(since=76, why="older ones know only four names for a subagent's model")

_FIELDS: dict[type[Command[Any]], dict[str, int]] = {
    Interrupt: {"cancel_queued": 220},
    McpCall: {"check_permissions": 325},
}
"""Members that change the effect of a command and that an older version ignores silently."""


def accepts_mode(version: Version | None, mode: PermissionMode) -> bool:
    """Whether the version really has this mode. An unknown mode is never accepted."""
    trait = _MODES.get(mode)
    return trait is not None and trait(version)


def reconnect_seconds(version: Version | None) -> float:
    """How long a CLI that dials keeps trying after its link broke, before it ends."""
    return 600.0 if version is not None and version >= release(62) else 5.0


def permits(version: Version | None, command: Command[Any] | type[Command[Any]]) -> bool:
    """Whether the version answers this command."""
    if command.since is None:
        return False
    return _at_least(version, command.since) or (version is None and command.since <= _OLDEST)


def check(command: Command[Any], version: Version | None, *, bypass_allowed: bool = False) -> None:
    """Raise `UnsupportedError` or `UsageError` if this command must not be sent to this version.

    `bypass_allowed`: the session was launched with a flag that permits to bypass permissions.
    """
    if not permits(version, command):
        raise _unsupported_error(command.subtype, version, command.since)
    for name, since in _FIELDS.get(type(command), {}).items():
        if getattr(command, name) and not _at_least(version, since):
            raise _unsupported_error(f"{command.subtype} with {name}", version, since)
    match command:
        case UnknownCommand(error=error) if error is not None:
            # Old versions go deaf on a known request of the wrong shape.
            raise UsageError(f"{command.subtype} cannot be sent: {error}")
        case SetPermissionMode(mode=mode):
            _check_mode(mode, version, bypass_allowed)
        case SetMcpPermissionModeOverride(mode=mode) if mode is not None:
            _check_mode(mode, version, bypass_allowed)
        case ApplyFlagSettings(settings=settings) if b"bypassPermissions" in bytes(settings):
            _check_mode(PermissionMode.BYPASS_PERMISSIONS, version, bypass_allowed)
        case Initialize():
            _check_initialize(command, version)
        case _:
            pass


def check_prompt(prompt: Prompt, version: Version | None) -> None:
    """Raise `UnsupportedError` if the version would misinterpret the prompt."""
    if prompt.should_query is False and not _at_least(version, 112):
        raise _unsupported_error("a prompt without a query to the model", version, 112)
    if prompt.client_composed and not _at_least(version, 280):
        raise _unsupported_error("a prompt that is never a command", version, 280)


def _check_mode(mode: PermissionMode, version: Version | None, bypass_allowed: bool) -> None:
    if not accepts_mode(version, mode):
        if mode.known:
            raise _unsupported_error(f"the mode {mode.value}", version, _MODES[mode].since or None)
        raise UsageError(f"{mode.value!r} is not a permission mode")
    if mode is PermissionMode.BYPASS_PERMISSIONS and not bypass_allowed:
        raise UsageError(
            "the session was not launched with permission to bypass permissions;"
            " launch it with --allow-dangerously-skip-permissions"
        )


def _check_initialize(command: Initialize, version: Version | None) -> None:
    for event, matchers in (command.hooks or {}).items():
        # An older version would ignore it, and allow what should be blocked.
        blocks = any(matcher.on_failure == "block" for matcher in matchers)
        if blocks and not _at_least(version, 317):
            raise _unsupported_error(f"a {event} hook that blocks when it fails", version, 317)
    for name, agent in (command.agents or {}).items():
        if agent.model not in {None, *_AGENT_MODELS} and not _ANY_AGENT_MODEL(version):
            raise _unsupported_error(f"the model {agent.model!r} for the agent {name}", version, 76)


def _at_least(version: Version | None, patch: int) -> bool:
    return version is not None and version >= release(patch)


def _unsupported_error(what: str, version: Version | None, since: int | None) -> UnsupportedError:
    return UnsupportedError(
        what,
        version=None if version is None else str(version),
        since=None if since is None else str(release(since)),
    )
