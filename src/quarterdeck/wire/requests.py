"""The CLI's requests: the bodies of its control requests.

Owns one struct for each subtype, and `UnknownRequest` for the rest. `control` has the envelope with
the id; `answers` has the bodies of answers. A tool's `input` and an MCP `message` stay undecoded.

Every request must be answered, also unknown ones: a CLI waits without limit.
"""

from __future__ import annotations

from functools import cached_property

import msgspec
from msgspec import Raw, Struct

from quarterdeck.domain.structs import ABSENT, DECODE_ERRORS
from quarterdeck.wire.base import Number, OpenEnum, Part
from quarterdeck.wire.hooks import HookEvent, HookInput, UnknownHook
from quarterdeck.wire.info import McpServerProvenance
from quarterdeck.wire.permissions import Suggestion, suggestions
from quarterdeck.wire.rawjson import EMPTY, is_object, subtype_of


class _Event(Struct):
    hook_event_name: str = ""


_decode_event = msgspec.json.Decoder(_Event).decode
_hook_decoder: msgspec.json.Decoder[HookInput] = msgspec.json.Decoder(HookInput)


def decode_hook_input(json: Raw) -> HookInput | UnknownHook:
    """Type the input of a hook by its event. Never raises."""
    try:
        return _hook_decoder.decode(json)
    except DECODE_ERRORS as error:
        try:
            event = _decode_event(json).hook_event_name
        except DECODE_ERRORS:
            event = ""
        known = HookEvent(event).known
        return UnknownHook(event=event, json=json, error=str(error) if known else None)


class DecisionReasonType(OpenEnum):
    """Why a call was not simply allowed. Versions before 2.1.119 do not say."""

    RULE = "rule"
    MODE = "mode"
    SUBCOMMAND_RESULTS = "subcommandResults"
    PERMISSION_PROMPT_TOOL = "permissionPromptTool"
    HOOK = "hook"
    ASYNC_AGENT = "asyncAgent"
    SANDBOX_OVERRIDE = "sandboxOverride"
    WORKING_DIR = "workingDir"
    SAFETY_CHECK = "safetyCheck"
    CLASSIFIER = "classifier"
    OTHER = "other"


class MatchedAskRule(Part):
    """The rule that made the CLI ask."""

    source: str = ""
    tool_name: str = ""
    rule_content: str | None = None


class _Request(Part, tag_field="subtype"):
    """The base of all requests of a CLI."""


class CanUseTool(_Request, tag="can_use_tool"):
    """May this tool run? Waits without limit, and is never repeated by the CLI."""

    tool_name: str
    input: Raw = EMPTY
    tool_use_id: str = ""
    permission_suggestions: tuple[Raw, ...] | None = None
    blocked_path: str | None = None
    decision_reason: str | None = None
    decision_reason_type: DecisionReasonType | None = None
    agent_id: str | None = None
    title: str | None = None
    display_name: str | None = None
    description: str | None = None
    mcp_server: McpServerProvenance | None = None
    requires_user_interaction: bool | None = None
    suppress_always_allow_rule: bool | None = None
    default_to_no: bool | None = None
    classifier_approvable: bool | None = None
    matched_ask_rule: MatchedAskRule | None = None
    # Not in any published type; seen on the wire or in the CLI's own schema.
    decision_reason_code: str | None = None
    decision_reason_rule_source: str | None = None
    decision_reason_hook_event: str | None = None
    decision_reason_hook_source: str | None = None
    decision_reason_hook_plugin_id: str | None = None
    server_policy_ask_only: bool | None = None
    plugin: str | None = None
    server_prompt: str | None = None
    computer_folder: Raw = ABSENT
    provenance_prompt_line: str | None = None
    tool_kind: Raw = ABSENT

    @cached_property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """The changes that would spare this question the next time."""
        return suggestions(self.permission_suggestions)


class HookCallback(_Request, tag="hook_callback"):
    """Run a hook that `initialize` announced. `{}` is the answer of a hook without an opinion."""

    callback_id: str
    input: Raw = EMPTY
    tool_use_id: str | None = None
    issued_at: Number | None = None
    deadline_ms: Number | None = None

    @cached_property
    def hook_input(self) -> HookInput | UnknownHook:
        """The input, typed by its event."""
        return decode_hook_input(self.input)


class McpMessage(_Request, tag="mcp_message"):
    """JSON-RPC for an MCP server that lives with us. Notifications want an answer as well."""

    server_name: str
    message: Raw = EMPTY


class Elicitation(_Request, tag="elicitation"):
    """An MCP server wants something from a person: a form to fill in, or a page to visit."""

    mcp_server_name: str
    message: str = ""
    mode: str | None = None
    url: str | None = None
    elicitation_id: str | None = None
    requested_schema: Raw = ABSENT
    property_order: tuple[str, ...] | None = None
    title: str | None = None
    display_name: str | None = None
    description: str | None = None


class RequestUserDialog(_Request, tag="request_user_dialog"):
    """Show a dialog of a kind that `initialize` said we have."""

    dialog_kind: str
    payload: Raw = EMPTY
    tool_use_id: str | None = None


class OauthTokenRefresh(_Request, tag="oauth_token_refresh"):
    """Give me a new access token."""

    kind: str | None = None
    token_state: str | None = None
    refused_call: str | None = None


class HostAuthTokenRefresh(_Request, tag="host_auth_token_refresh"):
    """Give me a new token of the host's."""

    status: int | None = None


class RemoteToolCall(_Request, tag="remote_tool_call"):
    """Run a tool that the controller announced."""

    instance_id: str = ""
    host: str = ""
    name: str = ""
    input: Raw = EMPTY
    envelope: Raw = EMPTY
    tool_use_id: str = ""
    issued_at: Number | None = None
    deadline_ms: Number | None = None


class RemotePlumbingCall(_Request, tag="remote_plumbing_call"):
    """Run a helper that the controller announced."""

    instance_id: str = ""
    host: str = ""
    name: str = ""
    args: Raw = EMPTY
    issued_at: Number | None = None
    deadline_ms: Number | None = None


class RemoteToolsProbe(_Request, tag="remote_tools_probe"):
    """Are the announced tools still there?"""

    instance_id: str = ""
    issued_at: Number | None = None
    deadline_ms: Number | None = None


class RemoteToolsReannounce(_Request, tag="remote_tools_reannounce"):
    """Announce the tools again."""

    worker_epoch: Number | None = None
    deadline_ms: Number | None = None


class RemoteControlWorkSecret(_Request, tag="remote_control_work_secret"):
    """Give me the secret of a remote session."""

    session_id: str = ""


class UiCopy(_Request, tag="ui_copy"):
    """Put text on the clipboard."""

    surface: str = ""
    client_id: str = ""
    plugin: str = ""
    text: str = ""
    answers_press: str | None = None


class UiPromptRead(_Request, tag="ui_prompt_read"):
    """Ask for the text in the prompt field."""

    surface: str = ""
    client_id: str = ""


class UiPromptFill(_Request, tag="ui_prompt_fill"):
    """Put text into the prompt field."""

    surface: str = ""
    client_id: str = ""
    text: str = ""
    mode: str = ""
    decorations: tuple[Raw, ...] | None = None
    cursor: Number | None = None
    answers_press: str | None = None


class UiPromptPaint(_Request, tag="ui_prompt_paint"):
    """Decorate the prompt field."""

    surface: str = ""
    client_id: str = ""
    layer: str = ""
    text: str | None = None
    decorations: tuple[Raw, ...] | None = None


class UiPromptSuggest(_Request, tag="ui_prompt_suggest"):
    """Show a suggestion in the prompt field."""

    surface: str = ""
    client_id: str = ""
    text: str = ""


class UiReadSelection(_Request, tag="ui_read_selection"):
    """Ask for the selection."""

    surface: str = ""
    client_id: str = ""


class UnknownRequest(Part):
    """A request of a subtype that we do not know, or that does not fit it (`error` says why)."""

    subtype: str = ""
    json: Raw = Raw(b"null")
    error: str | None = None


CliRequest = (
    CanUseTool
    | HookCallback
    | McpMessage
    | Elicitation
    | RequestUserDialog
    | OauthTokenRefresh
    | HostAuthTokenRefresh
    | RemoteToolCall
    | RemotePlumbingCall
    | RemoteToolsProbe
    | RemoteToolsReannounce
    | RemoteControlWorkSecret
    | UiCopy
    | UiPromptRead
    | UiPromptFill
    | UiPromptPaint
    | UiPromptSuggest
    | UiReadSelection
)
SUBTYPES = frozenset(str(struct.__struct_config__.tag) for struct in CliRequest.__args__)
"""The subtypes that have a struct."""

_decoder: msgspec.json.Decoder[CliRequest] = msgspec.json.Decoder(CliRequest)


def decode_request(json: Raw) -> CliRequest | UnknownRequest:
    """Type the body of a CLI's request. Never raises."""
    try:
        request = _decoder.decode(json)
    except DECODE_ERRORS as error:
        subtype = subtype_of(json)
        return UnknownRequest(
            subtype=subtype, json=json, error=str(error) if subtype in SUBTYPES else None
        )
    if isinstance(request, CanUseTool | HookCallback) and not is_object(request.input):
        # An input that is not an object could not be sent back, and no tool accepts one.
        return UnknownRequest(
            subtype=subtype_of(json), json=json, error="Expected `object` - at `$.input`"
        )
    return request
