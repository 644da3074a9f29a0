"""Control requests to a CLI, as methods: for an `Agent`, and for a session of the hub.

Owns which method is which command. It has no state and no link: each method has one command sent
by `request`, and gives its answer. Commands without a method are sent with `request` itself;
`quarterdeck.wire.commands` has them all.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TypeAlias, TypeVar

from quarterdeck.wire.command_base import Command
from quarterdeck.wire.commands import (
    ApplyFlagSettings,
    BackgroundTasks,
    ContextUsage,
    FileSuggestions,
    GenerateSessionTitle,
    GetContextUsage,
    GetPlan,
    GetSettings,
    GetTaskOutput,
    ListModels,
    McpReconnect,
    McpServers,
    McpSetServers,
    McpSetServersAnswer,
    McpStatus,
    McpToggle,
    PlanAnswer,
    ReloadPlugins,
    RewindFiles,
    RewindResult,
    SetMaxThinkingTokens,
    SetModel,
    SetPermissionMode,
    Settings,
    SideQuestion,
    StopTask,
    TaskOutput,
)
from quarterdeck.wire.info import (
    McpHttpServer,
    McpServerStatus,
    McpSseServer,
    McpStdioServer,
    ModelInfo,
)
from quarterdeck.wire.permissions import PermissionMode
from quarterdeck.wire.rawjson import dump

R = TypeVar("R")

McpServer: TypeAlias = McpStdioServer | McpSseServer | McpHttpServer

MODEL_SECONDS = 120.0
"""For requests that ask a model, and so wait for the API."""


class SessionControls:
    """Control requests as methods. All raise the errors that `request` raises."""

    @abstractmethod
    async def request(self, command: Command[R], *, timeout: float = 60.0) -> R:
        """Send a control request and wait for its answer."""

    async def ask_aside(self, question: str) -> str | None:
        """Ask the model a question that is not added to the conversation. (2.1.92)"""
        answer = await self.request(SideQuestion(question=question), timeout=MODEL_SECONDS)
        return answer.response

    # --- how it works ---------------------------------------------------------------------

    async def set_model(self, model: str | None) -> None:
        """Change the model from its next call on; None is the default one."""
        await self.request(SetModel(model=model))

    async def set_permission_mode(self, mode: PermissionMode | str) -> None:
        """Change the permission mode. A question that is already open stays open."""
        await self.request(SetPermissionMode(mode=PermissionMode(mode)))

    async def set_thinking(self, max_tokens: int | None) -> None:
        """Change the thinking budget: None is the default, 0 turns thinking off."""
        await self.request(SetMaxThinkingTokens(max_thinking_tokens=max_tokens))

    async def apply_settings(self, settings: Mapping[str, object]) -> None:
        """Lay settings over those of the files, for this session. (2.1.52)"""
        await self.request(ApplyFlagSettings(settings=dump(settings)))

    async def settings(self) -> Settings:
        """The settings in effect, and where each comes from. (2.1.92)"""
        return await self.request(GetSettings())

    async def models(self) -> tuple[ModelInfo, ...]:
        """The models that can be chosen, as they are now. (2.1.200; see also `Agent.info`)"""
        return (await self.request(ListModels())).models

    async def context_usage(self) -> ContextUsage:
        """How full the context window is, and with what. (2.1.92)"""
        return await self.request(GetContextUsage())

    async def plan(self) -> PlanAnswer:
        """The plan of plan mode, if there is one. (2.1.200)"""
        return await self.request(GetPlan())

    # --- MCP ------------------------------------------------------------------------------

    async def mcp_status(self) -> tuple[McpServerStatus, ...]:
        """The MCP servers and their states."""
        servers: McpServers = await self.request(McpStatus())
        return servers.mcp_servers

    async def mcp_toggle(self, name: str, enabled: bool) -> None:
        """Switch an MCP server on or off."""
        await self.request(McpToggle(server_name=name, enabled=enabled))

    async def mcp_reconnect(self, name: str) -> None:
        """Connect to an MCP server again."""
        await self.request(McpReconnect(server_name=name))

    async def mcp_set_servers(self, servers: Mapping[str, McpServer]) -> McpSetServersAnswer:
        """Replace all servers that were added while the session ran."""
        return await self.request(McpSetServers(servers=dict(servers)))

    async def reload_plugins(self) -> None:
        """Reload plugins, commands and agents. (2.1.92)"""
        await self.request(ReloadPlugins())

    # --- files and tasks ------------------------------------------------------------------

    async def rewind_files(self, prompt_uuid: str, *, dry_run: bool = False) -> RewindResult:
        """Restore files to their state before a prompt, or report what that would change.

        Needs `Options(file_checkpointing=True)`. Without it, or for an unknown prompt, a dry run
        reports that in its result, and a real one raises `RequestRefused`.
        """
        return await self.request(RewindFiles(user_message_id=prompt_uuid, dry_run=dry_run or None))

    async def suggest_files(self, query: str) -> tuple[str, ...]:
        """Paths that complete what a user has typed. (2.1.150)"""
        answer = await self.request(FileSuggestions(query=query))
        return tuple(suggestion.path for suggestion in answer.suggestions)

    async def stop_task(self, task_id: str) -> None:
        """Stop a background task. (2.1.52)"""
        await self.request(StopTask(task_id=task_id))

    async def background_tasks(self, tool_use_id: str | None = None) -> None:
        """Move running foreground tasks to the background. (2.1.150)"""
        await self.request(BackgroundTasks(tool_use_id=tool_use_id))

    async def task_output(self, task_id: str) -> TaskOutput:
        """The last output of a background shell. (2.1.325)"""
        return await self.request(GetTaskOutput(task_id=task_id))

    # --- the session ----------------------------------------------------------------------

    async def generate_title(self, description: str, *, keep: bool = False) -> str | None:
        """Let a model find a title for what `description` says. (2.1.92)"""
        command = GenerateSessionTitle(description=description, persist=keep)
        return (await self.request(command, timeout=MODEL_SECONDS)).title
