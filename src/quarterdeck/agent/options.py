"""The options of an agent.

`Options` has everything that the CLI takes as a flag (`claude.launch.Launch`), the folder and
environment of its process, and the parts of `initialize`. It is plain data; functions (decisions,
hooks, tools) are given to the `Agent` itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Self, TypeAlias

import msgspec

from quarterdeck.agent.typed_settings import (
    CliSandbox,
    Plugin,
    merged_settings,
    plugin_folders,
)
from quarterdeck.claude.launch import Launch
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.launch_options import AnyPath
from quarterdeck.links.subprocess import StopSteps
from quarterdeck.wire.info import (
    AgentDefinition,
    EffortName,
    McpHttpServer,
    McpSseServer,
    McpStdioServer,
)
from quarterdeck.wire.permissions import ModeName, PermissionMode

if TYPE_CHECKING:
    from quarterdeck.protocol.commands import CreateSession

McpServer: TypeAlias = McpStdioServer | McpSseServer | McpHttpServer


class Options(Launch, frozen=True, kw_only=True):
    """How to start an agent. Options that are not set use the CLI's settings and defaults.

    See `Launch` for the flags: model, mode, tools, resume and the rest.

    Some options come in pairs, one typed and one as JSON: `mcp_servers` and `mcp_config` (JSON or
    files), `subagents` and `agents`. Both of a pair may be given, and are combined. `title` is the
    session's title; `name` is used if there is no title, and also names its main agent (2.1.120).
    """

    # Names that a type checker knows; others are passed on to the CLI, too.
    permission_mode: ModeName | PermissionMode | None = None
    effort: EffortName | None = None

    # The process.
    claude: AnyPath | tuple[str, ...] | None = None
    """The CLI: a path, or a command with its first arguments. By default it is searched for."""
    cwd: AnyPath | None = None
    env: Mapping[str, str] = {}
    """Variables for the CLI, above the few that it inherits."""
    api_billing: bool = False
    """Pass the API key of this environment on. Without it the CLI uses its own login."""
    stop: StopSteps = StopSteps()
    """How long the process gets for each step of ending."""
    file_checkpointing: bool = False
    """Keep what `rewind_files` needs."""

    # Passed as a flag.
    mcp_servers: Mapping[str, McpServer] = {}
    """MCP servers that the CLI starts or connects to, beside those of `mcp_config`. Those that
    live in this process are given to the `Agent` as `tools`."""

    # Merged into `settings` and `plugin_dirs`.
    sandbox: CliSandbox | None = None
    """The CLI's own sandbox for shell commands."""
    plugins: tuple[Plugin, ...] = ()
    """Plugins of folders, and plugins of marketplaces to switch on or off."""

    # What `initialize` carries.
    subagents: Mapping[str, AgentDefinition] = {}
    """Subagents by name, beside those of `agents`."""
    output_type: type | None = None
    """A type for the final answer: a struct, a dataclass, a `TypedDict`, or any other type that
    msgspec describes as a JSON object. For a number or a list, make a struct with one field."""
    title: str | None = None
    skills: tuple[str, ...] | None = None
    agent_progress_summaries: bool = False

    def __post_init__(self) -> None:
        """Check the options before a process is started."""
        super().__post_init__()
        if self.output_type is not None and self.json_schema is not None:
            raise UsageError("output_type and json_schema cannot be combined")
        schema = self.schema()
        if schema is not None and schema.get("type") != "object":
            raise UsageError(
                "output_type: the CLI only accepts a JSON object,"
                f" and {self.output_type!r} is not one;"
                " make a msgspec.Struct or a dataclass with this as a field"
            )

    def as_flags(self) -> Self:
        """The same options, with those that are no flags converted to the flags that `Launch` has.

        Reads the settings file if there are settings to add to it. Raises `UsageError` if that
        fails.
        """
        options = self
        if self.mcp_servers:
            config = msgspec.json.encode({"mcpServers": self.mcp_servers}).decode()
            options = msgspec.structs.replace(
                options, mcp_servers={}, mcp_config=(*self.mcp_config, config)
            )
        if self.sandbox is not None or self.plugins:
            options = msgspec.structs.replace(
                options,
                sandbox=None,
                plugins=(),
                settings=merged_settings(self.settings, self.cwd, self.sandbox, self.plugins),
                plugin_dirs=(*self.plugin_dirs, *plugin_folders(self.plugins)),
            )
        return options

    def create_command(self, *, here: str | None) -> CreateSession:
        """The command that creates a session of the hub with these options.

        `here` is the folder that relative paths are relative to; None if the agent will run on
        another machine. Raises `UsageError` for an option that the hub cannot carry.
        """
        from quarterdeck.agent.hub_options import create_command  # most agents have no hub

        return create_command(self, here=here)

    def beyond_flags(self) -> list[str]:
        """The names of the options in use that no flag can say."""
        plain, own = Options(), self.as_flags()
        return [
            name
            for name in Options.__struct_fields__
            if name not in Launch.__struct_fields__ and getattr(own, name) != getattr(plain, name)
        ]

    def schema(self) -> dict[str, object] | None:
        """The JSON schema of `output_type`, with its references resolved in place at the root."""
        if self.output_type is None:
            return None
        try:
            schema = msgspec.json.schema(self.output_type)
        except TypeError as error:
            raise UsageError(f"output_type: {error}") from error
        definitions = schema.get("$defs", {})
        reference = schema.get("$ref", "")
        if reference.startswith("#/$defs/"):
            # The CLI makes a tool of it, and a tool's schema must be an object outright.
            name = reference.removeprefix("#/$defs/")
            root = dict(definitions[name])
            others = {key: value for key, value in definitions.items() if key != name}
            # A type that holds itself is needed at both places.
            nested = reference.encode() in msgspec.json.encode([root, others])
            kept = definitions if nested else others
            return {**root, "$defs": kept} if kept else root
        return schema
