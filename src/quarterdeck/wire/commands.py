"""Every control request that we can send, with the type of its answer.

A command is a struct whose class names its answer: `Command[Answer]`. `command_codec` converts
commands to and from JSON; `command_base` types an answer.

Written by tools/write_wire.py from tools/wire/commands.toml and its parts; do not edit.
"""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Raw, field

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import ABSENT
from quarterdeck.wire.base import Number, Part
from quarterdeck.wire.command_base import Command, Empty
from quarterdeck.wire.hooks import HookMatcher
from quarterdeck.wire.info import (
    AccountInfo,
    AgentDefinition,
    AgentInfo,
    McpServerConfig,
    McpServerStatus,
    ModelInfo,
    PluginConfig,
    PluginInfo,
    SlashCommand,
)
from quarterdeck.wire.permissions import PermissionBehavior, PermissionMode
from quarterdeck.wire.rawjson import EMPTY, always, is_object


class InterruptReceipt(Part):
    """The answer to an interrupt. Empty before about 2.1.205.

    `still_queued` are the uuids of prompts that will still run.
    """

    still_queued: tuple[str, ...] = ()
    put_back: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()
    send_now: str | None = None
    turn: str | None = None


class Interrupt(Command[InterruptReceipt], tag="interrupt"):
    """Stop the running turn. Prompts in the queue run all the same, unless `cancel_queued`."""

    cancel_queued: bool | None = None
    reason: str | None = None
    spare_background_tasks: bool | None = None
    for_user_message_uuids: tuple[str, ...] | None = None
    send_now: bool | None = None
    message_uuid: str | None = None


class CancelAnswer(Part):
    """Whether the prompt was still in the queue."""

    cancelled: bool = False


class CancelAsyncMessage(Command[CancelAnswer], tag="cancel_async_message"):
    """Remove a prompt from the queue."""

    since: ClassVar[int | None] = 92

    message_uuid: str


class EarlierQuestion(Part):
    """A question aside that was asked before."""

    question: str
    response: str
    fallback_notice: str | None = None


class SideAnswer(Part):
    """`synthetic` marks a text that the CLI wrote in the model's place."""

    response: str | None = None
    synthetic: bool = False


class SideQuestion(Command[SideAnswer], tag="side_question"):
    """Ask the model a question that is not added to the conversation."""

    since: ClassVar[int | None] = 92

    question: str
    history: tuple[EarlierQuestion, ...] | None = None


class RewindConversationAnswer(Part, rename="camel"):
    """Where the conversation now ends. `rewound` false: `reason` or `error` says why not."""

    rewound: bool = False
    target_message_uuid: str | None = None
    prefill_text: str | None = None
    preceding_assistant_uuid: str | None = None
    resolution: str | None = None
    reason: str | None = None
    error: str | None = None


class RewindConversation(Command[RewindConversationAnswer], tag="rewind_conversation"):
    """Go back to a prompt. Files stay as they are."""

    since: ClassVar[int | None] = 200

    target_message_uuid: str
    last_seen_user_message_uuid: str | None = None
    interrupt_if_running: bool | None = None
    allow_summarized_target: bool | None = None
    allow_assistant_target: bool | None = None
    expires_at: str | None = None


class ForkAnswer(Part):
    """Whether there is a fork. Over a pipe 2.1.325 answers that it cannot."""

    forked: bool = False
    error: str | None = None
    reason: str | None = None


class ForkConversation(Command[ForkAnswer], tag="fork_conversation"):
    """Go on in a copy of the conversation."""

    since: ClassVar[int | None] = 325


class ConversationText(Part):
    """The conversation as plain text, and what to call a file with it."""

    text: str = ""
    default_filename: str = ""


class ExportConversation(Command[ConversationText], tag="export_conversation"):
    """Give the conversation as plain text."""

    since: ClassVar[int | None] = 325


class PlanAnswer(Part):
    """The plan of plan mode, if there is one."""

    exists: bool = False
    content: str | None = None
    path: str | None = None


class GetPlan(Command[PlanAnswer], tag="get_plan"):
    """Give the plan of plan mode."""

    since: ClassVar[int | None] = 200


class ContextCategory(Part, rename="camel"):
    """One share of the context window."""

    id: str | None = None
    name: str = ""
    tokens: int = 0
    color: str = ""
    kind: str | None = None
    is_deferred: bool | None = None


class ContextMemoryFile(Part):
    """A file with instructions in the context."""

    path: str = ""
    type: str = ""
    tokens: int = 0


class ContextMcpTool(Part, rename="camel"):
    """An MCP tool in the context."""

    name: str = ""
    server_name: str = ""
    tokens: int = 0
    is_loaded: bool | None = None


class ContextAgent(Part, rename="camel"):
    """A subagent in the context."""

    agent_type: str = ""
    source: str = ""
    tokens: int = 0
    plugin_id: str | None = None
    path: str | None = None


class ContextUsage(Part, rename="camel"):
    """How the context window is used. Members that only draw pictures stay raw."""

    categories: tuple[ContextCategory, ...] = ()
    total_tokens: int = 0
    max_tokens: int = 0
    raw_max_tokens: int = 0
    percentage: float = 0
    model: str = ""
    memory_files: tuple[ContextMemoryFile, ...] = ()
    mcp_tools: tuple[ContextMcpTool, ...] = ()
    agents: tuple[ContextAgent, ...] = ()
    is_auto_compact_enabled: bool | None = None
    auto_compact_threshold: int | None = None
    autocompact_source: str | None = None
    grid_rows: Raw = ABSENT
    mcp_instructions: Raw = ABSENT
    deferred_builtin_tools: Raw = ABSENT
    system_tools: Raw = ABSENT
    system_prompt_sections: Raw = ABSENT
    slash_commands: Raw = ABSENT
    skills: Raw = ABSENT
    message_breakdown: Raw = ABSENT
    api_usage: Raw = ABSENT
    cold_resume_quota: Raw = ABSENT


class GetContextUsage(Command[ContextUsage], tag="get_context_usage"):
    """How full is the context window? `detail="summary"` asks the API nothing (2.1.260)."""

    since: ClassVar[int | None] = 92

    detail: str | None = None


class RewindResult(Part, rename="camel"):
    """What going back changes, or would change. Only a dry run lists the files."""

    can_rewind: bool = False
    error: str | None = None
    files_changed: tuple[str, ...] = ()
    insertions: int | None = None
    deletions: int | None = None
    skipped_links: int | None = None


class RewindFiles(Command[RewindResult], tag="rewind_files"):
    """Put files back to their state before a prompt.

    Needs checkpoints: `CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=1` in the CLI's environment.
    """

    user_message_id: str
    dry_run: bool | None = None


class FileContents(Part):
    """A file, or the part of it that was asked for."""

    contents: str = ""
    abs_path: str = field(name="absPath", default="")
    truncated: bool | None = None
    encoding: str | None = None
    lossy: bool | None = None
    anchor: str | None = None
    offset: Number | None = None
    read_bytes: Number | None = None
    total_bytes: Number | None = None
    etag: str | None = None
    upload_screened: bool | None = None
    requested_path: str | None = None


class ReadFile(Command[FileContents], tag="read_file"):
    """Read a file under the session's own permission rules."""

    since: ClassVar[int | None] = 120

    path: str
    max_bytes: int | None = None
    encoding: str | None = None
    offset: int | None = None


class FileSuggestion(Part):
    """A file with a matching name."""

    path: str = ""
    score: Number | None = None


class FileSuggestionsAnswer(Part):
    """Files with matching names, best first."""

    suggestions: tuple[FileSuggestion, ...] = ()
    cwd: str | None = None


class FileSuggestions(Command[FileSuggestionsAnswer], tag="file_suggestions"):
    """Complete a file name."""

    since: ClassVar[int | None] = 150

    query: str


class DirectoryEntry(Part, rename="camel"):
    """Something in a directory."""

    name: str = ""
    is_directory: bool = False
    is_symlink: bool | None = None
    is_special: bool | None = None


class DirectoryListing(Part, rename="camel"):
    """The contents of a directory."""

    abs_path: str = ""
    entries: tuple[DirectoryEntry, ...] = ()
    truncated: bool = False


class ListDirectory(Command[DirectoryListing], tag="list_directory"):
    """List a directory. Answered in the maker's cloud only, never over a pipe."""

    since: ClassVar[int | None] = None

    path: str


class SeedReadState(Command[Empty], tag="seed_read_state"):
    """Say that a file was read at this modification time, so that it may be edited."""

    since: ClassVar[int | None] = 92

    path: str
    mtime: Number


class RepoRootAnswer(Part):
    """The directory as the CLI names it."""

    directory: str = ""


class RegisterRepoRoot(Command[RepoRootAnswer], tag="register_repo_root"):
    """Work in one more directory, which must be below the first ones."""

    since: ClassVar[int | None] = 200

    directory: str
    reload_claude_md: bool | None = None
    reload_plugins: bool | None = None
    reload_skills: bool | None = None


class AddDirectory(Command[Empty], tag="add_directory"):
    """Work in one more directory. In no published type; the shape was found by trial."""

    since: ClassVar[int | None] = 200

    directory: str


class DiffStats(Part, rename="camel"):
    """How much has changed."""

    files_count: int = 0
    lines_added: int = 0
    lines_removed: int = 0


class FileDiffStats(Part, rename="camel"):
    """How much has changed in one file."""

    path: str = ""
    added: int = 0
    removed: int = 0
    is_binary: bool = False
    is_untracked: bool = False
    status: str | None = None
    previous_path: str | None = None
    new_path: str | None = None


class DiffHunk(Part, rename="camel"):
    """Lines that have changed, each with its sign."""

    old_start: int = 0
    old_lines: int = 0
    new_start: int = 0
    new_lines: int = 0
    lines: tuple[str, ...] = ()


class FileHunks(Part):
    """The changes of one file."""

    path: str = ""
    hunks: tuple[DiffHunk, ...] = ()


class Diff(Part, rename="camel"):
    """The changes in the working tree, or against a branch."""

    stats: DiffStats = DiffStats()
    per_file_stats: tuple[FileDiffStats, ...] = ()
    hunks: tuple[FileHunks, ...] = ()
    skipped_large: tuple[str, ...] = ()
    restricted: tuple[str, ...] = ()
    omitted: Raw = ABSENT
    source: Raw = ABSENT


class WorkspaceDiff(Part, rename="camel"):
    """The changes, or why there are none to show."""

    diff: Diff | None = None
    no_diff_reason: str | None = None


class GetWorkspaceDiff(Command[WorkspaceDiff], tag="get_workspace_diff"):
    """List the changes in the repository."""

    since: ClassVar[int | None] = 200


class McpServers(Part, rename="camel"):
    """All servers. 2.1.37 and 2.1.62 list one twice that was added in the session."""

    mcp_servers: tuple[McpServerStatus, ...] = ()


class McpStatus(Command[McpServers], tag="mcp_status", rename="camel"):
    """Which servers are there, and in what state?"""

    live_reply: bool | None = None


class SendMcpMessage(Command[Empty], tag="mcp_message"):
    """Hand a notification of an MCP server that lives with us to the CLI."""

    server_name: str
    message: Raw

    def __post_init__(self) -> None:
        if not is_object(self.message):
            raise UsageError("a message of an MCP server must be an object")


class McpSetServersAnswer(Part):
    """The changes, and the servers that could not be started."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    errors: dict[str, str] = field(default_factory=dict)


class McpSetServers(Command[McpSetServersAnswer], tag="mcp_set_servers"):
    """Replace all servers that were added in the session, ours included."""

    servers: dict[str, McpServerConfig]


class McpReconnect(Command[Empty], tag="mcp_reconnect", rename="camel"):
    """Connect to a server again."""

    server_name: str


class McpToggle(Command[Empty], tag="mcp_toggle", rename="camel"):
    """Switch a server on or off."""

    server_name: str
    enabled: bool


class McpCallAnswer(Part, rename="camel"):
    """The result of the tool."""

    content: Raw = Raw(b"null")
    structured_content: Raw = ABSENT
    staging: Raw = ABSENT


class McpCall(Command[McpCallAnswer], tag="mcp_call"):
    """Run a tool of a server without the model. No permission is asked, unless `check_permissions`.

    2.1.120 stops answering when `tool` is missing, so it is required.
    """

    since: ClassVar[int | None] = 120

    tool: str
    arguments: Raw = ABSENT
    expires_at: str | None = None
    timeout_ms: Number | None = None
    result_not_for_model: bool | None = None
    check_permissions: bool | None = None
    input_files: tuple[Raw, ...] | None = None
    output_files: tuple[Raw, ...] | None = None

    def __post_init__(self) -> None:
        if not self.tool:
            raise UsageError("mcp_call needs the name of a tool")
        if self.arguments and not is_object(self.arguments):
            raise UsageError("the arguments of a tool must be an object")


class McpResource(Part, rename="camel"):
    """One piece of a resource: text, or bytes in base64."""

    uri: str = ""
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None


class McpResourceAnswer(Part):
    """A resource."""

    contents: tuple[McpResource, ...] = ()


class McpReadResource(Command[McpResourceAnswer], tag="mcp_read_resource", rename="camel"):
    """Read a resource of a server; `ui://` only."""

    since: ClassVar[int | None] = 325

    server_name: str
    uri: str


class McpAuthAnswer(Part, rename="camel"):
    """Where a person has to go, if anywhere."""

    auth_url: str | None = None
    requires_user_action: bool | None = None
    callback_expected: bool | None = None
    redirect_scheme: str | None = None
    state: str | None = None
    callback_port: int | None = None


class McpAuthenticate(Command[McpAuthAnswer], tag="mcp_authenticate", rename="camel"):
    """Begin to log in to a server."""

    since: ClassVar[int | None] = 52

    server_name: str
    redirect_uri: str | None = None
    redirect_uri_only: bool | None = None
    live_reply: bool | None = None


class McpOauthCallbackUrl(Command[Empty], tag="mcp_oauth_callback_url", rename="camel"):
    """Finish to log in, with the URL that the browser was sent to."""

    since: ClassVar[int | None] = 92

    server_name: str
    callback_url: str


class McpClearAuth(Command[Empty], tag="mcp_clear_auth", rename="camel"):
    """Log out of a server."""

    since: ClassVar[int | None] = 52

    server_name: str


class SetMcpPermissionModeOverride(
    Command[Empty], tag="set_mcp_permission_mode_override", rename="camel"
):
    """Give a server a stricter mode than the session's; None takes it away."""

    since: ClassVar[int | None] = 200

    server_name: str
    mode: PermissionMode | None
    ask_for_tools: tuple[Raw, ...] | None = None


class ChannelEnable(Command[Empty], tag="channel_enable", rename="camel"):
    """Let a server send prompts into the session."""

    since: ClassVar[int | None] = 92

    server_name: str


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


class SettingsSource(Part):
    """The settings of one place."""

    source: str = ""
    settings: Raw = EMPTY


class SettingsError(Part):
    """Something wrong in a settings file."""

    file: str | None = None
    path: str = ""
    message: str = ""


class AppliedSettings(Part, rename="camel"):
    """The settings in effect."""

    model: str = ""
    effort: str | None = None
    advisor: str | None = None
    ultracode: bool | None = None
    ultracode_requested: bool | None = None
    ultracode_available: bool | None = None
    ultrathink_available: bool | None = None
    outside_file_tool_reads_blocked: bool | None = None
    outside_file_tool_writes_blocked: bool | None = None
    outside_blocks_count_launch_folders_only: bool | None = None
    launch_env_left_own_files_in_place: bool | None = None


class Settings(Part):
    """All settings: as they work out, and from where."""

    effective: Raw = EMPTY
    sources: tuple[SettingsSource, ...] = ()
    applied: AppliedSettings | None = None
    errors: tuple[SettingsError, ...] = ()
    remote_control_policy_lock_reason: str | None = None
    withheld: bool | None = None


class GetSettings(Command[Settings], tag="get_settings"):
    """Which settings hold?"""

    since: ClassVar[int | None] = 92


class ApplyFlagSettings(Command[Empty], tag="apply_flag_settings"):
    """Lay settings over the session's. Versions up to 2.1.200 take anything."""

    since: ClassVar[int | None] = 52

    settings: Raw

    def __post_init__(self) -> None:
        if not is_object(self.settings):
            raise UsageError("settings must be an object")


class UpdateSettings(Command[Empty], tag="update_settings"):
    """Write a few settings to disk: the output style, and the effort level."""

    since: ClassVar[int | None] = 325

    source: str
    settings: Raw

    def __post_init__(self) -> None:
        if self.source not in {"localSettings", "userSettings"}:
            raise UsageError("update_settings only writes to localSettings or userSettings")
        if not is_object(self.settings):
            raise UsageError("settings must be an object")


class ListedRule(Part, rename="camel"):
    """A permission rule, with its source."""

    behavior: PermissionBehavior = PermissionBehavior.ASK
    source: str = ""
    rule: str = ""
    editability: str = ""
    not_in_effect: bool | None = None
    description: Raw = ABSENT


class WorkspaceDirectory(Part):
    """A directory that the session may work in."""

    path: str = ""
    source: str = ""


class PermissionState(Part, rename="camel"):
    """All rules and directories."""

    rules: tuple[ListedRule, ...] = ()
    workspace_directories: tuple[WorkspaceDirectory, ...] = ()
    original_cwd: str = ""
    managed_only: bool = False
    errors: tuple[SettingsError, ...] = ()
    withheld: bool | None = None


class PermissionRules(Part):
    """All rules and directories."""

    state: PermissionState = PermissionState()


class ListPermissionRules(Command[PermissionRules], tag="list_permission_rules"):
    """Which permission rules hold?"""

    since: ClassVar[int | None] = 325


class HookEventInfo(Part, rename="camel"):
    """An event that hooks can be set for."""

    name: str = ""
    summary: str = ""
    supports_matcher: bool = False
    hook_count: int | None = None


class ListedHook(Part, rename="camel"):
    """A hook of the settings or of a plugin."""

    event: str = ""
    matcher: str = ""
    source: str = ""
    source_label: str = ""
    type: str = ""
    display_text: str = ""
    command_text: str = ""
    content_label: str = ""
    plugin_name: str | None = None
    condition: str | None = None
    timeout: Number | None = None
    status_message: str | None = None
    runs_once: bool | None = None
    runs_in_background: bool | None = None
    disabled: bool | None = None
    editable: Raw = ABSENT


class HooksListing(Part, rename="camel"):
    """All hooks. `policy` and the modes stay raw."""

    events: tuple[HookEventInfo, ...] = ()
    hooks: tuple[ListedHook, ...] = ()
    event_catalog: tuple[HookEventInfo, ...] = ()
    policy: Raw = ABSENT
    safe_mode: Raw = ABSENT
    bare_mode: Raw = ABSENT
    errors: tuple[SettingsError, ...] = ()


class GetHooksListing(Command[HooksListing], tag="get_hooks_listing"):
    """Which hooks are set?"""

    since: ClassVar[int | None] = 325


class Models(Part):
    """The models to choose from."""

    models: tuple[ModelInfo, ...] = ()


class ListModels(Command[Models], tag="list_models"):
    """Which models are there? Older versions say it in the answer to `initialize`."""

    since: ClassVar[int | None] = 200


class CostText(Part):
    """The cost, as a text."""

    text: str = ""


class GetSessionCost(Command[CostText], tag="get_session_cost"):
    """Ask for the session's cost."""

    since: ClassVar[int | None] = 120


class SessionUsage(Part):
    """The session's usage."""

    total_cost_usd: Number = 0
    total_api_duration_ms: Number = 0
    total_duration_ms: Number = 0
    total_lines_added: Number = 0
    total_lines_removed: Number = 0
    model_usage: Raw = EMPTY


class Usage(Part):
    """The usage, and the plan's limits. The limits stay raw: they are experimental."""

    session: SessionUsage = SessionUsage()
    subscription_type: str | None = None
    rate_limits_available: bool = False
    rate_limits: Raw = ABSENT
    behaviors: Raw = ABSENT


class GetUsage(Command[Usage], tag="get_usage"):
    """How much was used?"""

    since: ClassVar[int | None] = 200

    skip_behaviors: bool | None = None


class BinaryVersion(Part, rename="camel"):
    """The version of the CLI."""

    version: str = ""
    build_time: str | None = None


class GetBinaryVersion(Command[BinaryVersion], tag="get_binary_version"):
    """Which version is this?"""

    since: ClassVar[int | None] = 120


class StatusRow(Part):
    """A line of the status."""

    label: str | None = None
    value: str = ""


class StatusSection(Part):
    """Lines of the status that belong together."""

    title: str = ""
    rows: tuple[StatusRow, ...] = ()


class StatusReport(Part):
    """What `/status` shows in a terminal."""

    sections: tuple[StatusSection, ...] = ()


class GetStatus(Command[StatusReport], tag="get_status"):
    """How is the session?"""

    since: ClassVar[int | None] = 325


class PluginsAnswer(Part, rename="camel"):
    """The contents of the plugins."""

    commands: tuple[SlashCommand, ...] = ()
    agents: tuple[AgentInfo, ...] = ()
    plugins: tuple[PluginInfo, ...] = ()
    mcp_servers: tuple[McpServerStatus, ...] = ()
    error_count: int = field(name="error_count", default=0)
    held: bool | None = None
    cache_impact: Raw = field(name="cache_impact", default=ABSENT)


class ReloadPlugins(Command[PluginsAnswer], tag="reload_plugins"):
    """Read the plugins again."""

    since: ClassVar[int | None] = 92

    hold_on_cache_impact: bool | None = None
    add_plugins: tuple[PluginConfig, ...] | None = None
    refuse_if_busy: bool | None = None


class SkillsAnswer(Part):
    """The skills, as commands."""

    skills: tuple[SlashCommand, ...] = ()


class ReloadSkills(Command[SkillsAnswer], tag="reload_skills"):
    """Read the skills again."""

    since: ClassVar[int | None] = 200


class OutputStylesAnswer(Part):
    """The output styles."""

    available_output_styles: tuple[str, ...] = ()


class ReloadOutputStyles(Command[OutputStylesAnswer], tag="reload_output_styles"):
    """Read the output styles again."""

    since: ClassVar[int | None] = 325


class MemoryFile(Part):
    """A file with instructions that is there, or could be."""

    kind: str = ""
    path: str = ""
    label: str = ""
    description: str = ""
    exists: bool | None = None


class MemoryDialog(Part):
    """Where the session remembers things."""

    files: tuple[MemoryFile, ...] = ()
    folders: tuple[MemoryFile, ...] = ()
    memories: Raw = ABSENT
    auto_memory: Raw = ABSENT
    auto_dream: Raw = ABSENT


class GetMemoryDialog(Command[MemoryDialog], tag="get_memory_dialog"):
    """Where does the session remember things?"""

    since: ClassVar[int | None] = 325


class SkillState(Part):
    """A skill, and whether it is on."""

    name: str = ""
    display_name: str = ""
    description: str = ""
    source: str = ""
    tokens: Number = 0
    state: str = ""
    locked_by: str | None = None
    advertised: bool = False
    handles: Raw = ABSENT


class SkillsDialog(Part):
    """All skills."""

    skills: tuple[SkillState, ...] = ()


class GetSkillsDialog(Command[SkillsDialog], tag="get_skills_dialog"):
    """Which skills are there, and which are on?"""

    since: ClassVar[int | None] = 325


class SandboxDialog(Part):
    """Whether commands run in a sandbox, and what it permits."""

    supported: bool = False
    unsupported_reason: str | None = None
    locked: bool = False
    overrides_locked: bool = False
    policy_origins: tuple[str, ...] | None = None
    enabled: bool = False
    enabled_in_settings: bool = False
    unavailable_reason: str | None = None
    mode: str = ""
    auto_allow_available: bool = False
    no_sandbox_allowed: bool = False
    unsandboxed_fallback: bool = False
    dependencies: Raw = ABSENT
    excluded_commands: tuple[str, ...] = ()
    restrictions: Raw = ABSENT


class GetSandboxDialog(Command[SandboxDialog], tag="get_sandbox_dialog"):
    """Do commands run in a sandbox?"""

    since: ClassVar[int | None] = 325


class StopTask(Command[Empty], tag="stop_task"):
    """Stop a task. An id that is not known is an error up to 2.1.150, and a success later."""

    since: ClassVar[int | None] = 52

    task_id: str


class BackgroundAnswer(Part):
    """Whether anything went to the background."""

    backgrounded: bool | None = None


class BackgroundTasks(Command[BackgroundAnswer], tag="background_tasks"):
    """Move foreground tasks to the background: one call, or all."""

    since: ClassVar[int | None] = 150

    tool_use_id: str | None = None


class TaskOutput(Part):
    """The end of a task's output, at most 8 KiB."""

    output: str = ""
    total_bytes: Number = 0
    truncated: bool = False


class GetTaskOutput(Command[TaskOutput], tag="get_task_output"):
    """Ask for the output of a shell task."""

    since: ClassVar[int | None] = 325

    task_id: str


class ShellTaskAnswer(Part):
    """`status` is `started` or `denied`."""

    status: str = ""
    task_id: str | None = None
    message: str | None = None


class StartShellTask(Command[ShellTaskAnswer], tag="start_shell_task"):
    """Run a command as a task. Answered in the maker's cloud only, never over a pipe."""

    since: ClassVar[int | None] = None

    command: str
    args: tuple[str, ...] | None = None
    cwd: str | None = None
    env: dict[str, str] | None = None
    timeout_ms: Number | None = None
    description: str | None = None


COMMANDS: dict[str, type[Command[Any]]] = {
    "interrupt": Interrupt,
    "cancel_async_message": CancelAsyncMessage,
    "side_question": SideQuestion,
    "rewind_conversation": RewindConversation,
    "fork_conversation": ForkConversation,
    "export_conversation": ExportConversation,
    "get_plan": GetPlan,
    "get_context_usage": GetContextUsage,
    "rewind_files": RewindFiles,
    "read_file": ReadFile,
    "file_suggestions": FileSuggestions,
    "list_directory": ListDirectory,
    "seed_read_state": SeedReadState,
    "register_repo_root": RegisterRepoRoot,
    "add_directory": AddDirectory,
    "get_workspace_diff": GetWorkspaceDiff,
    "mcp_status": McpStatus,
    "mcp_message": SendMcpMessage,
    "mcp_set_servers": McpSetServers,
    "mcp_reconnect": McpReconnect,
    "mcp_toggle": McpToggle,
    "mcp_call": McpCall,
    "mcp_read_resource": McpReadResource,
    "mcp_authenticate": McpAuthenticate,
    "mcp_oauth_callback_url": McpOauthCallbackUrl,
    "mcp_clear_auth": McpClearAuth,
    "set_mcp_permission_mode_override": SetMcpPermissionModeOverride,
    "channel_enable": ChannelEnable,
    "initialize": Initialize,
    "end_session": EndSession,
    "set_permission_mode": SetPermissionMode,
    "set_model": SetModel,
    "set_max_thinking_tokens": SetMaxThinkingTokens,
    "set_proactivity_level": SetProactivityLevel,
    "rename_session": RenameSession,
    "generate_session_title": GenerateSessionTitle,
    "set_color": SetColor,
    "set_cwd": SetCwd,
    "set_has_subscribers": SetHasSubscribers,
    "set_prompt_suggestions_paused": SetPromptSuggestionsPaused,
    "remote_control": RemoteControl,
    "message_rated": MessageRated,
    "get_settings": GetSettings,
    "apply_flag_settings": ApplyFlagSettings,
    "update_settings": UpdateSettings,
    "list_permission_rules": ListPermissionRules,
    "get_hooks_listing": GetHooksListing,
    "list_models": ListModels,
    "get_session_cost": GetSessionCost,
    "get_usage": GetUsage,
    "get_binary_version": GetBinaryVersion,
    "get_status": GetStatus,
    "reload_plugins": ReloadPlugins,
    "reload_skills": ReloadSkills,
    "reload_output_styles": ReloadOutputStyles,
    "get_memory_dialog": GetMemoryDialog,
    "get_skills_dialog": GetSkillsDialog,
    "get_sandbox_dialog": GetSandboxDialog,
    "stop_task": StopTask,
    "background_tasks": BackgroundTasks,
    "get_task_output": GetTaskOutput,
    "start_shell_task": StartShellTask,
}
"""The commands that have a type, by subtype."""
