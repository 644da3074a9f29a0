"""Descriptions of the CLI, of servers, agents and plugins, and of the origin of a prompt.

Owns the small structs that several messages and answers share. Everything that comes from a CLI has
a default, because versions differ. Python names are snake case; the wire's are camel case.

Written by tools/write_wire.py from tools/wire/info.toml; do not edit.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Raw, field

from quarterdeck.domain.structs import ABSENT
from quarterdeck.wire.base import Number, OpenEnum, Part
from quarterdeck.wire.envelope import Body, Lazy
from quarterdeck.wire.permissions import PermissionMode

EffortName: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]
"""How hard the model works, for a type checker. A CLI may know other levels."""


class SlashCommand(Part, rename="camel"):
    """A command that a prompt may begin with, without its slash."""

    name: str = ""
    description: str = ""
    argument_hint: str = ""
    aliases: tuple[str, ...] | None = None
    builtin: bool | None = None
    plugin: str | None = None


class AgentInfo(Part):
    """A subagent that the model may start."""

    name: str = ""
    description: str = ""
    model: str | None = None


class ModelInfo(Part, rename="camel"):
    """A model that `set_model` takes as `value`."""

    value: str = ""
    display_name: str = ""
    description: str = ""
    resolved_model: str | None = None
    supports_effort: bool | None = None
    supported_effort_levels: tuple[str, ...] | None = None
    supports_adaptive_thinking: bool | None = None
    supports_fast_mode: bool | None = None
    supports_auto_mode: bool | None = None
    supports_thinking_off: bool | None = None
    disabled: bool | None = None
    promo_list_price: str | None = None


class AccountInfo(Part, rename="camel"):
    """Who pays. Holds no secret."""

    email: str | None = None
    organization: str | None = None
    subscription_type: str | None = None
    token_source: str | None = None
    api_key_source: str | None = None
    api_provider: str | None = None


class PluginInfo(Part):
    """A plugin that is loaded."""

    name: str = ""
    path: str = ""
    source: str | None = None
    version: str | None = None


class McpServerState(OpenEnum):
    """The status of an MCP server."""

    CONNECTED = "connected"
    FAILED = "failed"
    NEEDS_AUTH = "needs-auth"
    PENDING = "pending"
    DISABLED = "disabled"


class McpServerInfo(Part):
    """An MCP server's name and version, as it reports them."""

    name: str = ""
    version: str = ""


class McpToolAnnotations(Part, rename="camel"):
    """Hints of a tool about itself. Most servers give none."""

    read_only: bool | None = None
    destructive: bool | None = None
    open_world: bool | None = None


class McpToolInfo(Part):
    """A tool of an MCP server."""

    name: str = ""
    description: str | None = None
    annotations: McpToolAnnotations | None = None


class McpServerStatus(Part, rename="camel"):
    """One MCP server, as `mcp_status` lists it. `config` is as the CLI shows it."""

    name: str = ""
    status: McpServerState = McpServerState.PENDING
    server_info: McpServerInfo | None = None
    error: str | None = None
    error_code: str | None = None
    config: Raw = ABSENT
    transport: str | None = None
    scope: str | None = None
    source: str | None = None
    url_host: str | None = None
    tools: tuple[McpToolInfo, ...] | None = None
    tool_count: Number | None = None
    session_proxied: bool | None = None
    cloud_service_provided: bool | None = None
    capabilities: Raw = ABSENT


class McpServerProvenance(Part):
    """Which MCP server a tool belongs to, and where that was configured."""

    name: str = ""
    source: str = ""


class ToolPolicy(Part):
    """The permissions of one tool of an MCP server."""

    name: str
    permission_policy: str | None = None
    org_max_permission: str | None = None


class McpStdioServer(Part, tag="stdio", rename="camel"):
    """An MCP server that the CLI starts."""

    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    timeout: Number | None = None
    always_load: bool | None = None


class McpSseServer(Part, tag="sse", rename="camel"):
    """An MCP server at a URL, spoken to by server-sent events."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)
    tools: tuple[ToolPolicy, ...] | None = None
    timeout: Number | None = None
    always_load: bool | None = None


class McpHttpServer(Part, tag="http", rename="camel"):
    """An MCP server at a URL, spoken to by streamable HTTP."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)
    tools: tuple[ToolPolicy, ...] | None = None
    timeout: Number | None = None
    always_load: bool | None = None


class McpSdkServer(Part, tag="sdk"):
    """An MCP server that lives with us; the CLI reaches it by `mcp_message` requests."""

    name: str
    timeout: Number | None = None
    tools: tuple[ToolPolicy, ...] | None = None


McpServerConfig = McpStdioServer | McpSseServer | McpHttpServer | McpSdkServer


class AgentDefinition(Part, rename="camel"):
    """A subagent of our own making."""

    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] | None = None
    model: str | None = None
    mcp_servers: tuple[str | dict[str, McpServerConfig], ...] | None = None
    skills: tuple[str, ...] | None = None
    initial_prompt: str | None = None
    max_turns: int | None = None
    auto_compact_window: int | None = None
    background: bool | None = None
    omit_claude_md: bool | None = None
    memory: str | None = None
    effort: str | int | None = None
    permission_mode: PermissionMode | None = None
    observer: str | None = None
    observer_message: str | None = None


class PluginConfig(Part, tag="local", rename="camel"):
    """A plugin in a directory."""

    path: str
    skip_mcp_discovery: bool | None = None


class OriginKind(OpenEnum):
    """The origin of a prompt or a turn."""

    HUMAN = "human"
    CHANNEL = "channel"
    PEER = "peer"
    TASK_NOTIFICATION = "task-notification"
    COORDINATOR = "coordinator"
    UNCLASSIFIED = "unclassified"
    OBSERVER = "observer"
    OBSERVER_ACTIVITY = "observer-activity"
    AUTO_CONTINUATION = "auto-continuation"


class Origin(Body):
    """The origin of a prompt or a turn, with details.

    Only `kind` is always set. `task-notification` is a turn that the CLI started by itself.
    """

    kind: OriginKind = OriginKind.UNCLASSIFIED
    server: str | None = None
    from_: str | None = field(name="from", default=None)
    from_mode: str | None = field(name="fromMode", default=None)
    from_session: str | None = field(name="fromSession", default=None)
    name: str | None = None
    sender_task_id: str | None = field(name="senderTaskId", default=None)
    body: str | None = None
    msg_id: str | None = None
    verified_peer_pid: Number | None = field(name="verifiedPeerPid", default=None)
    subkind: str | None = None
    fire_reason: str | None = field(name="fireReason", default=None)
    run_id: str | None = field(name="runId", default=None)
    producer: str | None = None


decode_origin: Lazy[Origin] = Lazy(Origin, Origin)
