"""Commands about settings, rules, hooks, models, plugins, usage and status."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Raw, field

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import ABSENT
from quarterdeck.wire.base import Number, Part
from quarterdeck.wire.commands.base import Command, Empty
from quarterdeck.wire.info import (
    AgentInfo,
    McpServerStatus,
    ModelInfo,
    PluginConfig,
    PluginInfo,
    SlashCommand,
)
from quarterdeck.wire.permissions import PermissionBehavior
from quarterdeck.wire.rawjson import EMPTY, is_object


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


class BinaryVersion(Part):
    """The version of the CLI."""

    version: str = ""
    build_time: str | None = field(name="buildTime", default=None)


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
