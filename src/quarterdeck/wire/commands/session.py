"""Commands about the session as a whole: its beginning, its end, its modes and its name."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Raw, field

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import ABSENT
from quarterdeck.wire.base import Number, Part
from quarterdeck.wire.commands.base import Command, Empty
from quarterdeck.wire.hooks import HookMatcher
from quarterdeck.wire.info import (
    AccountInfo,
    AgentDefinition,
    AgentInfo,
    ModelInfo,
    PluginConfig,
    SlashCommand,
)
from quarterdeck.wire.permissions import PermissionMode
from quarterdeck.wire.rawjson import always, is_object


class InitializeAnswer(Part):
    """The CLI's description of itself. Versions differ in how much they report.

    `claude_code_version` and the members after it come from about 2.1.200 on.
    """

    # Members that cannot be decoded are skipped: a session must not fail because of a new kind of
    # model.
    salvage: ClassVar[bool] = True

    commands: tuple[SlashCommand, ...] = ()
    agents: tuple[AgentInfo, ...] = ()
    output_style: str = ""
    available_output_styles: tuple[str, ...] = ()
    models: tuple[ModelInfo, ...] = ()
    account: AccountInfo | None = None
    pid: int | None = None
    claude_code_version: str | None = None
    current_model: str | None = None
    current_permission_mode: PermissionMode | None = None
    session_state: str | None = None
    capabilities: tuple[str, ...] = ()
    user_output_styles_dir: str | None = None
    unavailable_models: tuple[ModelInfo, ...] = ()
    auth_conflict: Raw = ABSENT
    inbound_read_receipts: bool | None = None
    hooks_applied: bool | None = None
    hook_on_failure_supported: bool | None = None
    other_hook_ask_outranks_host: bool | None = None
    code_running_mcp_tools_applied: Raw = ABSENT
    plugins_applied: bool | None = None
    managed_settings_applied: bool | None = None
    host_worded_asks: bool | None = None
    workspace_trust_recorded: bool | None = None
    sdk_mcp_manifests_parked: dict[str, str] | None = None
    permission_mode_from_default_fallback: bool | None = None
    auto_default_nudge: PermissionMode | None = None
    fast_mode_state: str | None = None
    fast_mode_disabled_reason: str | None = None
    footer_indicator: Raw = ABSENT
    feedback_survey_config: Raw = ABSENT
    survey_followup_box: Raw = ABSENT
    feedback_mode: Raw = ABSENT
    analytics_disabled: bool | None = None
    remote_control_auto_enable: bool | None = None
    remote_control_auto_on_by_default: bool | None = None
    remote_control_auto_connect_default: bool | None = None
    remote_control_available: bool | None = None
    claude_in_chrome_at_startup: bool | None = None
    claude_in_chrome_prompt_disabled: bool | None = None
    ide_rc_auto_enable_gate: bool | None = None


class SdkMcpServerConfig(Part):
    """How the CLI treats an MCP server that lives with us."""

    timeout: Number | None = None
    tools: Raw = ABSENT


class Initialize(Command[InitializeAnswer], tag="initialize", rename="camel"):
    """Describe this end. Comes before the first prompt, and at most once up to 2.1.150.

    `system_prompt` is one text: versions up to 2.1.92 silently ignore a list. `hooks` maps an event
    to its matchers: with any other form, versions up to 2.1.120 stop answering.
    """

    hooks: dict[str, tuple[HookMatcher, ...]] | None = None
    sdk_mcp_servers: tuple[str, ...] | None = None
    sdk_mcp_server_configs: dict[str, SdkMcpServerConfig] | None = None
    sdk_mcp_server_manifests: dict[str, Raw] | None = None
    sdk_mcp_server_manifests_origin: str | None = None
    json_schema: Raw = ABSENT
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    system_prompt_snapshot: bool | None = None
    plan_mode_instructions: str | None = None
    tool_aliases: dict[str, str] | None = None
    exclude_dynamic_sections: bool | None = None
    agents: dict[str, AgentDefinition] | None = None
    title: str | None = None
    skills: tuple[str, ...] | None = None
    prompt_suggestions: bool | None = None
    agent_progress_summaries: bool | None = None
    forward_subagent_text: bool | None = None
    supported_dialog_kinds: tuple[str, ...] | None = None
    per_task_stop_affordance: bool | None = None
    plugins: tuple[PluginConfig, ...] | None = None
    # In no published type.
    append_subagent_system_prompt: str | None = None
    forward_nested_subagent_tool_calls: bool | None = None

    def __post_init__(self) -> None:
        if self.json_schema and not is_object(self.json_schema):
            raise UsageError("a JSON schema must be an object")


class EndSession(Command[Empty], tag="end_session"):
    """End the process politely: it answers, then exits with 0."""

    since: ClassVar[int | None] = 92

    reason: str | None = None


class ModeAnswer(Part):
    """The mode that now holds."""

    mode: PermissionMode | None = None


class SetPermissionMode(Command[ModeAnswer], tag="set_permission_mode"):
    """Change the mode. Ask `versions` first: versions before the newest take any string."""

    mode: PermissionMode
    ultraplan: bool | None = None
    from_settings: bool | None = None


class ModelAnswer(Part):
    """The model that now holds; only the newest versions say it."""

    model: str | None = None


class SetModel(Command[ModelAnswer], tag="set_model"):
    """Change the model, from the next call of the API on. None is the default model."""

    model: str | None = always(None)
    system_prompt: str | None = None
    only_if_model_is_current: bool | None = None


class SetMaxThinkingTokens(Command[Empty], tag="set_max_thinking_tokens"):
    """Change the thinking budget. None is the default, 0 turns thinking off."""

    max_thinking_tokens: int | None = always(None)
    thinking_display: str | None = None

    def __post_init__(self) -> None:
        if self.max_thinking_tokens is not None and self.max_thinking_tokens < 0:
            raise UsageError("thinking tokens must be 0 or more")


class ProactivityAnswer(Part):
    """The level that now holds."""

    level: str = ""


class SetProactivityLevel(Command[ProactivityAnswer], tag="set_proactivity_level"):
    """Change how much the model does unasked: `ask`, `default` or `proactive`."""

    since: ClassVar[int | None] = 325

    level: str
    offer_bypass: bool | None = None


class RenameSession(Command[Empty], tag="rename_session"):
    """Give the session a title."""

    since: ClassVar[int | None] = 150

    title: str
    source: str | None = None
    session_id: str | None = None
    names_chrome_tab_group: bool | None = None


class TitleAnswer(Part):
    """A title, or none if the model found none."""

    title: str | None = None


class GenerateSessionTitle(Command[TitleAnswer], tag="generate_session_title"):
    """Let a model find a title. `persist` also gives it to the session."""

    since: ClassVar[int | None] = 92

    description: str
    persist: bool | None = None


class SetColor(Command[Empty], tag="set_color"):
    """Give the session a colour. Declared, but no version answers it over a pipe."""

    since: ClassVar[int | None] = None

    color: str


class CwdAnswer(Part):
    """`status` is `ok`, `needs_trust` or `rejected`; the other members depend on it."""

    status: str = ""
    cwd: str | None = None
    changed: bool | None = None
    transcript_relocated: bool | None = None
    trust_root: str | None = None
    directory: str | None = None
    reason: str | None = None
    message: str | None = None


class SetCwd(Command[CwdAnswer], tag="set_cwd"):
    """Move the session to another directory."""

    since: ClassVar[int | None] = 200

    path: str
    trust_accepted: bool | None = None
    trusted_directory: str | None = None

    def __post_init__(self) -> None:
        if not self.path:
            raise UsageError("set_cwd needs a path")


class SetHasSubscribers(Command[Empty], tag="set_has_subscribers"):
    """Report whether stream events are read."""

    since: ClassVar[int | None] = 325

    has_subscribers: bool | None


class SetPromptSuggestionsPaused(Command[Empty], tag="set_prompt_suggestions_paused"):
    """Stop or resume the suggestions of a next prompt."""

    since: ClassVar[int | None] = 325

    paused: bool


class RemoteControlAnswer(Part):
    """How to reach the session from afar. In no published type."""

    session_url: str | None = None
    connect_url: str | None = None
    environment_id: str | None = None


class RemoteControl(Command[RemoteControlAnswer], tag="remote_control"):
    """Let the maker's own apps reach this session, or stop that."""

    since: ClassVar[int | None] = 92

    enabled: bool
    name: str | None = None
    reattach_session_id: str | None = None
    keep_session_on_exit: bool | None = None
    work_secret: str | None = None


class MessageRated(Command[Empty], tag="message_rated"):
    """Tell the CLI's maker that an answer was `positive` or `negative`."""

    since: ClassVar[int | None] = 120

    message_uuid: str = field(name="messageUuid")
    sentiment: str
    surface: str | None = None
    cleared: bool | None = None
