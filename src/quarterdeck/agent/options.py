"""What an agent is started with.

`Options` is everything that the CLI takes as a flag (`links.launch.Launch`) and what goes another
way: the folder and environment of its process, and what travels in `initialize`. It is plain data;
functions (decisions, hooks, tools) are given to the `Agent` itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from quarterdeck.domain.errors import UsageError
from quarterdeck.links.launch import AnyPath, Launch
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

    # What `initialize` carries.
    subagents: Mapping[str, AgentDefinition] = {}
    mcp_servers: Mapping[str, McpServer] = {}
    """MCP servers that the CLI starts or connects to. Those that live here are the Agent's."""
    output_type: type | None = None
    """A type for the final answer: anything that msgspec can describe as a JSON schema."""
    title: str | None = None
    skills: tuple[str, ...] | None = None
    agent_progress_summaries: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be right before a process is started for it."""
        super().__post_init__()
        if self.output_type is not None and self.json_schema is not None:
            raise UsageError("output_type and json_schema exclude each other")

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
            rest = {key: value for key, value in definitions.items() if key != name}
            return {**root, "$defs": rest} if rest else root
        return schema
