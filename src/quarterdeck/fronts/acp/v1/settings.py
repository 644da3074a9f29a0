"""What a session is and offers, in the words of ACP: options, commands, usage, names. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from acp import schema
from msgspec.structs import replace

from quarterdeck.domain.errors import UsageError
from quarterdeck.protocol.events import TurnEnded
from quarterdeck.protocol.holds import OfferedModel, Offers
from quarterdeck.protocol.roles import Right
from quarterdeck.protocol.sessions import AUTO, SessionSpec
from quarterdeck.protocol.shapes import Me
from quarterdeck.protocol.views import SessionShape
from quarterdeck.wire.tools import one_line

VERSION = 1
MODE, MODEL, EFFORT = "mode", "model", "effort"

_MODES = {
    "default": ("Ask", "Ask about every call that no rule allows."),
    "acceptEdits": ("Accept edits", "Accept changes of files; ask about other calls."),
    "plan": ("Plan", "Read only, and present a plan for review."),
    "dontAsk": ("Don't ask", "Deny what no rule allows, without a question."),
}
_BYPASS = "bypassPermissions"


class Known:
    """What is known of a session: the hub's view, what can be chosen, and the person's rights."""

    def __init__(self, shape: SessionShape, me: Me) -> None:
        self.shape = shape
        self.me = me
        self.offers = shape.offers or Offers()

    @property
    def may_manage(self) -> bool:
        """Whether the person may switch mode, model and effort."""
        return Right.MANAGE in self.me.rights


def initialize_response(version: str) -> schema.InitializeResponse:
    """The answer to `initialize`: always this version; the client decides whether it fits."""
    return schema.InitializeResponse(
        protocol_version=VERSION,
        agent_info=schema.Implementation(name="quarterdeck", title="Quarterdeck", version=version),
        auth_methods=[],
        agent_capabilities=schema.AgentCapabilities(
            load_session=True,
            prompt_capabilities=schema.PromptCapabilities(
                image=True, audio=False, embedded_context=True
            ),
            mcp_capabilities=schema.McpCapabilities(http=True, sse=True),
            session_capabilities=schema.SessionCapabilities(
                list=schema.SessionListCapabilities(),
                fork=schema.SessionForkCapabilities(),
                resume=schema.SessionResumeCapabilities(),
                close=schema.SessionCloseCapabilities(),
                additional_directories=schema.SessionAdditionalDirectoriesCapabilities(),
            ),
        ),
    )


def has_forms(capabilities: schema.ClientCapabilities | None) -> bool:
    """Whether the client shows forms."""
    asked = capabilities.elicitation if capabilities is not None else None
    return asked is not None and asked.form is not None


# --- mode, model, effort -------------------------------------------------------------------------


def config_options(known: Known) -> list[schema.SessionConfigOptionSelect]:
    """Mode, model and effort. Who may not switch them sees the present value only."""
    found = [
        _select(known, MODE, "Mode", "mode", _mode(known), _mode_choices(known)),
        _select(known, MODEL, "Model", "model", _model(known)[0], _model_choices(known)),
    ]
    if efforts := _effort_choices(known):
        effort = known.shape.effort or AUTO
        found.append(_select(known, EFFORT, "Effort", "thought_level", effort, efforts))
    return found


Choices = dict[str, tuple[str, str]]
"""The values that can be chosen, each with its name and description."""


def _select(
    known: Known, id_: str, name: str, category: str, value: str, choices: Choices
) -> schema.SessionConfigOptionSelect:
    shown = {value: choices.get(value, (value, "")), **choices}
    if not known.may_manage:
        shown = {value: shown[value]}
    ordered = [each for each in choices if each in shown]
    options = [
        schema.SessionConfigSelectOption(
            value=each, name=shown[each][0] or each, description=shown[each][1] or None
        )
        for each in (ordered if value in ordered else [value, *ordered])
    ]
    return schema.SessionConfigOptionSelect.model_validate(
        {
            "type": "select",
            "id": id_,
            "name": name,
            "category": category,
            "currentValue": value,
            "options": options,
        }
    )


def _mode(known: Known) -> str:
    return known.shape.mode or known.shape.spec.mode or "default"


def _mode_choices(known: Known) -> Choices:
    """The mode that asks nothing is offered only where a person has started the session so."""
    found: Choices = dict(_MODES)
    if known.shape.spec.skip_permissions:
        found[_BYPASS] = ("Bypass permissions", "Ask nothing, except where a rule asks.")
    return found


def _model(known: Known) -> tuple[str, OfferedModel | None]:
    """The present model, as the CLI's list names it, if it is there."""
    wanted = known.shape.model or known.shape.spec.model or "default"
    for offer in known.offers.models:
        if wanted in {offer.model, offer.resolved}:
            return offer.model, offer
    return wanted, None


def _model_choices(known: Known) -> Choices:
    return {each.model: (each.name, each.description) for each in known.offers.models}


def _effort_choices(known: Known) -> Choices:
    offer = _model(known)[1]
    levels = offer.efforts if offer is not None else ()
    if not levels:
        return {}
    return {level: (level.capitalize(), "") for level in (AUTO, *levels)}


def modes(known: Known) -> schema.SessionModeState:
    """The mode, for clients that know no config options."""
    option = config_options(known)[0]
    choices = [
        each for each in option.options if isinstance(each, schema.SessionConfigSelectOption)
    ]
    return schema.SessionModeState(
        current_mode_id=option.current_value,
        available_modes=[
            schema.SessionMode(id=each.value, name=each.name, description=each.description)
            for each in choices
        ],
    )


def control_for(known: Known, option: str, value: str) -> dict[str, object]:
    """The control request for a choice. Raises `UsageError` for what is not offered."""
    found = {each.id: each for each in config_options(known)}.get(option)
    if found is None:
        raise UsageError(f"there is no option {one_line(option, 80)!r}")
    offered = {each.value for each in found.options if hasattr(each, "value")}
    if value not in offered:
        raise UsageError(f"{option}: one of {', '.join(sorted(offered))}")
    if option == MODE:
        return {"subtype": "set_permission_mode", "mode": value}
    if option == MODEL:
        return {"subtype": "set_model", "model": value}
    level = None if value == AUTO else value
    return {"subtype": "apply_flag_settings", "settings": {"effortLevel": level}}


def with_switch(shape: SessionShape, option: str, value: str) -> SessionShape:
    """A session after a switch that the CLI has obeyed; the hub's view may be a moment behind."""
    return replace(shape, **{option: value})


# --- other facts ---------------------------------------------------------------------------------


def commands_update(known: Known) -> schema.AvailableCommandsUpdate:
    """The slash commands."""
    return schema.AvailableCommandsUpdate(
        session_update="available_commands_update",
        available_commands=[
            schema.AvailableCommand(
                name=each.name,
                description=each.description or each.name,
                input=schema.AvailableCommandInput(schema.UnstructuredCommandInput(hint=each.hint))
                if each.hint
                else None,
            )
            for each in known.offers.commands
            if each.name
        ],
    )


def config_update(known: Known) -> schema.ConfigOptionUpdate:
    """Mode, model or effort have changed."""
    return schema.ConfigOptionUpdate(
        session_update="config_option_update", config_options=list(config_options(known))
    )


def mode_update(known: Known) -> schema.CurrentModeUpdate:
    """The mode has changed."""
    return schema.CurrentModeUpdate(
        session_update="current_mode_update", current_mode_id=_mode(known)
    )


def info_update(shape: SessionShape) -> schema.SessionInfoUpdate:
    """The session's name, and when something happened last."""
    return schema.SessionInfoUpdate(
        session_update="session_info_update",
        title=title_of(shape),
        updated_at=_moment(shape.updated),
    )


def usage_update(shape: SessionShape) -> schema.UsageUpdate | None:
    """How full the context is, and the cost; None until the CLI has told the context's size."""
    context = shape.holds.context
    if context.window is None:
        return None
    return schema.UsageUpdate(
        session_update="usage_update",
        used=max(0, context.tokens),
        size=max(0, context.window),
        cost=schema.Cost(amount=shape.cost_usd, currency="USD"),
    )


def usage_of(turn: TurnEnded) -> schema.Usage | None:
    """The tokens of a turn; None if the CLI has not told them."""
    if not turn.models:
        return None
    fresh = sum(each.input for each in turn.models)
    output = sum(each.output for each in turn.models)
    read = sum(each.cache_read for each in turn.models)
    written = sum(each.cache_write for each in turn.models)
    return schema.Usage(
        total_tokens=fresh + output + read + written,
        input_tokens=fresh,
        output_tokens=output,
        cached_read_tokens=read,
        cached_write_tokens=written,
    )


def session_info(shape: SessionShape) -> schema.SessionInfo:
    """A session in a list."""
    return schema.SessionInfo(
        session_id=shape.session,
        cwd=folder_of(shape),
        title=title_of(shape),
        updated_at=_moment(shape.updated),
        additional_directories=list(shape.spec.add_dirs) or None,
    )


def folder_of(shape: SessionShape) -> str:
    """The folder that the session works in."""
    return shape.directory or shape.spec.directory


def is_in(shape: SessionShape, folder: str) -> bool:
    """Whether the session works in a folder, or in a worktree of it."""
    wanted = folder.rstrip("/") or "/"
    return wanted in {folder_of(shape), shape.spec.directory}


def title_of(shape: SessionShape) -> str | None:
    """The session's name; None if it has none."""
    return one_line(shape.name, 200) or None


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat().replace("+00:00", "Z")


def with_folder(
    defaults: SessionSpec,
    cwd: str,
    more: Iterable[str],
) -> dict[str, object]:
    """The members of a spec that the editor's folders give. Raises `UsageError`."""
    for path in (cwd, *more):
        if not path.startswith("/") or "\0" in path:
            raise UsageError("cwd, additionalDirectories: absolute paths are wanted")
    return {"directory": cwd, "add_dirs": (*defaults.add_dirs, *more)}
