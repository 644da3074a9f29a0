"""The mode, model, effort and thinking of a run: what holds now, and who chose it. Pure.

Two values are kept apart. The session's spec holds what people have chosen: a control request that
the CLI obeyed, an approved plan, an answer that switches the mode. Beside it stands what the CLI
says that holds now: it follows its own commands, and its agent may enter plan mode by itself. The
next run starts in the mode that holds now, but never in one that allows more than people chose.

Everything here follows from the lines of a run, so that a hub that reads them again knows the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec
from msgspec import Raw, field
from msgspec.structs import replace

from quarterdeck.domain.structs import Mutable, Value
from quarterdeck.protocol.events import Event, SpecChanged, Switched
from quarterdeck.protocol.modes import DEFAULT, allows_more, chosen_mode, with_mode
from quarterdeck.protocol.sessions import AUTO, SessionSpec, thinking_code
from quarterdeck.wire.answers import AllowResult
from quarterdeck.wire.base import Message
from quarterdeck.wire.command_base import Command, decode_or_none
from quarterdeck.wire.commands import (
    ApplyFlagSettings,
    InitializeAnswer,
    ModelAnswer,
    SetMaxThinkingTokens,
    SetModel,
    SetPermissionMode,
)
from quarterdeck.wire.control import ControlResponse
from quarterdeck.wire.hooks import HookInput, PreToolUseInput, UnknownHook
from quarterdeck.wire.messages import Assistant, User
from quarterdeck.wire.permissions import Destination, SetMode, suggestions
from quarterdeck.wire.system import Init, Status

CLI = "cli"
"""Who switched, where it was the CLI or its agent."""
_DEFAULT_MODEL = "default"
"""The CLI's word for the model that it takes by itself."""
_MODEL_SET = "Set model to "
_MODEL_COMMAND = re.compile(
    r"<command-name>/model</command-name>.*<command-args>(?P<model>[A-Za-z][\w.:\[\]-]*)\s*<",
    re.DOTALL,
)
_EFFORT_SET = re.compile(r"Set effort level to (?P<level>[a-z]+)\b|Effort level set to auto\b")
MOST_CALLS = 256
"""Calls whose own mode is remembered: the CLI asks about a call soon after its hook."""


class _Wanted(Value):
    """A switch that the CLI has not answered yet."""

    command: SetPermissionMode | SetModel | ApplyFlagSettings | SetMaxThinkingTokens
    by: str


class _Flags(msgspec.Struct):
    """The members of flag settings that a spec can carry."""

    effort: str | msgspec.UnsetType | None = msgspec.field(
        name="effortLevel", default=msgspec.UNSET
    )
    model: str | msgspec.UnsetType | None = msgspec.UNSET


class Switches(Mutable):
    """What holds in one run, by what was sent to its CLI and what the CLI said."""

    _mode: str
    _known_mode: str | None = None
    _known_model: str | None = None
    _known_effort: str | None = None
    _wanted: dict[str, _Wanted] = field(default_factory=dict)
    _of_calls: dict[str, str] = field(default_factory=dict)
    """The modes of the last calls, the oldest first."""
    _model_commanded: bool = False

    @classmethod
    def of(cls, spec: SessionSpec) -> Switches:
        """What holds when a process was started with this spec."""
        return cls(
            _mode=chosen_mode(spec) or DEFAULT, _known_mode=spec.mode, _known_effort=spec.effort
        )

    # --- what holds now ------------------------------------------------------------------------

    @property
    def mode(self) -> str:
        """The mode for decisions: while a switch is under way, the one that allows less."""
        return self._least(self._mode)

    def mode_of_call(self, tool_use_id: str) -> str:
        """The mode of a call that the CLI asks about: that of its hook, unless it has changed."""
        return self._least(self._of_calls.get(tool_use_id, self._mode))

    def mode_in_hook(self, seen: HookInput | UnknownHook) -> str:
        """The mode of a call that the CLI is about to make; a subagent may have one of its own."""
        if not isinstance(seen, PreToolUseInput) or not seen.permission_mode:
            return self.mode
        return self._least(seen.permission_mode)

    def hook_shown(self, seen: HookInput | UnknownHook) -> None:
        """Remember the mode of a call that a hook shows."""
        if not isinstance(seen, PreToolUseInput) or not seen.permission_mode:
            return
        if seen.tool_use_id:
            self._of_calls[seen.tool_use_id] = seen.permission_mode
            if len(self._of_calls) > MOST_CALLS:
                del self._of_calls[next(iter(self._of_calls))]

    def call_asked(self, tool_use_id: str) -> None:
        """The CLI has asked about a call: its own mode is not needed any more."""
        self._of_calls.pop(tool_use_id, None)

    def _least(self, mode: str) -> str:
        for wanted in self._wanted.values():
            if isinstance(wanted.command, SetPermissionMode):
                asked = str(wanted.command.mode.value)
                mode = asked if allows_more(mode, asked) else mode
        return mode

    # --- what is sent --------------------------------------------------------------------------

    def note_sent(self, request_id: str, command: Command[object], by: str) -> None:
        """A request is sent. Only an answer of the CLI ends it, which may come late."""
        if isinstance(
            command, SetPermissionMode | SetModel | ApplyFlagSettings | SetMaxThinkingTokens
        ):
            self._wanted[request_id] = _Wanted(command=command, by=by)

    def evolve(self, switched: Switched) -> None:
        """A switch was journalled."""
        self._known_mode = switched.mode or self._known_mode
        self._known_model = switched.model or self._known_model
        self._known_effort = switched.effort or self._known_effort

    # --- what the CLI says ---------------------------------------------------------------------

    def receive(self, message: Message, spec: SessionSpec) -> list[Event]:
        """Take a message of the CLI: what it changes, with who did it."""
        match message:
            case Init():
                events = self._in_mode(message.permission_mode.value)
                events += self._with_model(message.model)
                return events + self._with_effort(message.effort)
            case Status(permission_mode=mode) if mode is not None:
                return self._in_mode(mode.value)
            case ControlResponse() if self._wanted:
                return self._answer_events(message, spec)
            case Assistant() if message.local_command_source is not None:
                return self._command_events(message, spec)
            case User(is_replay=True) if self._model_commanded:
                return self._echo_events(message, spec)
            case _:
                return []

    def introduction_events(self, answer: Raw | None) -> list[Event]:
        """The answer to `initialize`: the newest versions tell mode and model with it."""
        found = decode_or_none(answer, InitializeAnswer) if answer is not None else None
        if found is None:
            return []
        mode = found.current_permission_mode
        events = self._in_mode(mode.value) if mode is not None else []
        return events + self._with_model(found.current_model or "")

    def _command_events(self, message: Assistant, spec: SessionSpec) -> list[Event]:
        """What a slash command answers that may have switched something: `/effort`, `/model`.

        The newest versions have these. What they say of a model is a name for people: the one to
        give to the next process is in the echo of the command, which follows.
        """
        self._model_commanded = message.text.startswith(_MODEL_SET)
        found = _EFFORT_SET.match(message.text)
        if found is None:
            return []
        level = found["level"]
        events = _spec_events(spec, replace(spec, effort=level), CLI)
        return [*events, *self._with_effort(level or AUTO)]

    def _echo_events(self, message: User, spec: SessionSpec) -> list[Event]:
        """The echo of a slash command that has just switched the model."""
        self._model_commanded = False
        named = _MODEL_COMMAND.match(message.text)
        if named is None:
            return []
        model = named["model"]
        return [*_spec_events(spec, replace(spec, model=model), CLI), *self._with_model(model)]

    def _answer_events(self, message: ControlResponse, spec: SessionSpec) -> list[Event]:
        response = message.response
        wanted = self._wanted.get(response.request_id)
        if wanted is None:
            return []
        self._end(response.request_id, type(wanted.command))
        if not response.ok:
            return []
        command, by = wanted.command, wanted.by
        match command:
            case SetPermissionMode():
                mode = str(command.mode.value)
                changed = with_mode(spec, mode, asked_for=True)
                return [*_spec_events(spec, changed, by), *self._in_mode(mode, by)]
            case SetModel():
                model = _model_after(command, response.response_json)
                if model is None:
                    return []
                changed = replace(spec, model=model)
                return [*_spec_events(spec, changed, by), *self._with_model(model, by)]
            case ApplyFlagSettings(settings=settings):
                return self._flag_events(settings, spec, by)
            case SetMaxThinkingTokens(max_thinking_tokens=tokens):
                changed = replace(spec, max_thinking_tokens=tokens)
                return [
                    *_spec_events(spec, changed, by),
                    Switched(thinking=thinking_code(tokens), by=by),
                ]

    def _flag_events(self, settings: Raw, spec: SessionSpec, by: str) -> list[Event]:
        flags = decode_or_none(settings, _Flags) or _Flags()
        changed, events = spec, list[Event]()
        if flags.effort is not msgspec.UNSET:
            changed = replace(changed, effort=flags.effort or None)
            events += self._with_effort(flags.effort or AUTO, by)
        if flags.model is not msgspec.UNSET:
            changed = replace(changed, model=flags.model or _DEFAULT_MODEL)
            events += self._with_model(flags.model or _DEFAULT_MODEL, by)
        return [*_spec_events(spec, changed, by), *events]

    def _end(self, request_id: str, kind: type[object]) -> None:
        """A request has its answer; those of its kind before it will not get one any more."""
        for earlier, wanted in tuple(self._wanted.items()):
            if type(wanted.command) is kind:
                del self._wanted[earlier]
            if earlier == request_id:
                return

    def _in_mode(self, mode: str, by: str = CLI) -> list[Event]:
        self._mode = mode
        self._of_calls.clear()
        if not mode or mode == self._known_mode:
            return []
        self._known_mode = mode
        if by == CLI:
            # Newer versions announce a switch of ours before they answer it.
            by = next((one.by for one in self._wanted.values() if _wants(one, mode)), CLI)
        return [Switched(mode=mode, by=by)]

    def _with_model(self, model: str, by: str = CLI) -> list[Event]:
        if not model or model == self._known_model:
            return []
        self._known_model = model
        return [Switched(model=model, by=by)]

    def _with_effort(self, effort: str | None, by: str = CLI) -> list[Event]:
        if not effort or effort == self._known_effort:
            return []
        self._known_effort = effort
        return [Switched(effort=effort, by=by)]

    # --- what people choose --------------------------------------------------------------------

    def answer_events(self, body: object, spec: SessionSpec, by: str) -> list[Event]:
        """A person's answer was sent to the CLI: it may switch the mode for the session."""
        if not isinstance(body, AllowResult):
            return []
        mode = _mode_in(suggestions(body.updates_json or ()))
        if mode is None:
            return []
        changed = with_mode(spec, mode, asked_for=False)
        return [*_spec_events(spec, changed, by), Switched(mode=mode, by=by)]

    def end_events(self, spec: SessionSpec) -> list[Event]:
        """The process is gone. A tighter mode that it had no time to answer for holds all the same:
        it is unknown whether it obeyed.
        """
        events: list[Event] = []
        for wanted in self._wanted.values():
            if not isinstance(wanted.command, SetPermissionMode):
                continue
            mode = str(wanted.command.mode.value)
            if allows_more(chosen_mode(spec) or DEFAULT, mode):
                changed = with_mode(spec, mode, asked_for=True)
                events += [
                    *_spec_events(spec, changed, wanted.by),
                    Switched(mode=mode, by=wanted.by),
                ]
                spec = changed
        return events


def _spec_events(spec: SessionSpec, changed: SessionSpec, by: str) -> list[Event]:
    return [SpecChanged(spec=changed, by=by)] if changed != spec else []


def _wants(wanted: _Wanted, mode: str) -> bool:
    return isinstance(wanted.command, SetPermissionMode) and wanted.command.mode.value == mode


def _model_after(command: SetModel, answer: Raw | None) -> str | None:
    """The model that holds after a successful request; None where that is not certain."""
    if command.only_if_model_is_current:
        found = decode_or_none(answer, ModelAnswer) if answer is not None else None
        return found.model if found is not None else None
    # Without a name a resumed conversation of newer versions would go on with its old model.
    return command.model or _DEFAULT_MODEL


def _mode_in(updates: Iterable[object]) -> str | None:
    mode: str | None = None
    for update in updates:
        if isinstance(update, SetMode) and update.destination is Destination.SESSION:
            mode = str(update.mode.value)
    return mode
