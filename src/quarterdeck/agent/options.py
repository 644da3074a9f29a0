"""What an agent is started with.

`Options` is everything that the CLI takes as a flag (`claude.launch.Launch`) and what goes another
way: the folder and environment of its process, and what travels in `initialize`. It is plain data;
functions (decisions, hooks, tools) are given to the `Agent` itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self, TypeAlias

import msgspec

from quarterdeck.claude.launch import AnyPath, Launch
from quarterdeck.domain.errors import UsageError
from quarterdeck.links.subprocess import StopSteps
from quarterdeck.wire.info import (
    AgentDefinition,
    McpHttpServer,
    McpSseServer,
    McpStdioServer,
)

McpServer: TypeAlias = McpStdioServer | McpSseServer | McpHttpServer


class Options(Launch, frozen=True, kw_only=True):
    """How to start an agent. What is left out is left to the CLI and its settings.

    See `Launch` for what the CLI takes as flags: model, mode, tools, resume and the rest.

    Some come in pairs, because the CLI takes the same in two ways: `mcp_servers` are typed and
    `mcp_config` is JSON or files, `subagents` are typed and `agents` is JSON. Both of a pair may be
    given, and add up. `title` is the session's title; `name` is that too, where no title is given,
    and also what its leading agent is called (2.1.120).
    """

    # The process.
    claude: AnyPath | tuple[str, ...] | None = None
    """The CLI: a path, or a command with its first arguments. Found by itself if left out."""
    cwd: AnyPath | None = None
    env: Mapping[str, str] = {}
    """Variables for the CLI, above the few that it inherits."""
    api_billing: bool = False
    """Pass the API key of this environment on. Without it the CLI uses its own login."""
    stop: StopSteps = StopSteps()
    """How long the process gets for each step of ending."""
    file_checkpointing: bool = False
    """Keep what `rewind_files` needs."""

    # What becomes a flag.
    mcp_servers: Mapping[str, McpServer] = {}
    """MCP servers that the CLI starts or connects to, beside those of `mcp_config`. Those that
    live in this process are given to the `Agent` as `tools`."""

    # What `initialize` carries.
    subagents: Mapping[str, AgentDefinition] = {}
    """Subagents by name, beside those of `agents`."""
    output_type: type | None = None
    """A type for the final answer: a struct, a dataclass, a `TypedDict`, or whatever else msgspec
    describes as a JSON object. For a number or a list, make a struct with one field."""
    title: str | None = None
    skills: tuple[str, ...] | None = None
    agent_progress_summaries: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be right before a process is started for it."""
        super().__post_init__()
        if self.output_type is not None and self.json_schema is not None:
            raise UsageError("output_type and json_schema exclude each other")
        schema = self.schema()
        if schema is not None and schema.get("type") != "object":
            raise UsageError(
                f"output_type: the CLI takes a JSON object only, and {self.output_type!r} is none;"
                " make a msgspec.Struct or a dataclass with this as a field"
            )

    def as_flags(self) -> Self:
        """The same, with all that can become a flag where `Launch` has it."""
        if not self.mcp_servers:
            return self
        config = msgspec.json.encode({"mcpServers": self.mcp_servers}).decode()
        return msgspec.structs.replace(self, mcp_servers={}, mcp_config=(*self.mcp_config, config))

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
