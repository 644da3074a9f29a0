"""The control requests that a probe sends, with harmless members, and those that it never sends.

Every command with a type is in one of the two tables; a test checks that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

from msgspec import Raw

from quarterdeck.wire.command_base import Command
from quarterdeck.wire.commands import (
    AddDirectory,
    ApplyFlagSettings,
    BackgroundTasks,
    CancelAsyncMessage,
    ExportConversation,
    FileSuggestions,
    GenerateSessionTitle,
    GetBinaryVersion,
    GetContextUsage,
    GetHooksListing,
    GetMemoryDialog,
    GetPlan,
    GetSandboxDialog,
    GetSessionCost,
    GetSettings,
    GetSkillsDialog,
    GetStatus,
    GetTaskOutput,
    GetUsage,
    GetWorkspaceDiff,
    ListModels,
    ListPermissionRules,
    McpReconnect,
    McpSetServers,
    McpStatus,
    McpToggle,
    ReadFile,
    ReloadOutputStyles,
    ReloadPlugins,
    ReloadSkills,
    RenameSession,
    RewindFiles,
    SeedReadState,
    SetHasSubscribers,
    SetMaxThinkingTokens,
    SetModel,
    SetPermissionMode,
    SetProactivityLevel,
    SetPromptSuggestionsPaused,
    SideQuestion,
    StopTask,
)
from quarterdeck.wire.permissions import PermissionMode

NOT_TRIED = frozenset(
    {
        # Sent elsewhere in every session.
        "initialize",
        "interrupt",
        "end_session",
        "mcp_message",
        # They need something at the other end that a probe does not have.
        "mcp_authenticate",
        "mcp_oauth_callback_url",
        "mcp_clear_auth",
        "mcp_read_resource",
        "mcp_call",
        "channel_enable",
        "set_mcp_permission_mode_override",
        "remote_control",
        # They change the session for later scenes, or leave something behind.
        "rewind_conversation",
        "fork_conversation",
        "set_cwd",
        "register_repo_root",
        "update_settings",
        "message_rated",
        # No version is known to answer these over a pipe.
        "set_color",
        "list_directory",
        "start_shell_task",
    }
)
"""Subtypes that a probe does not send."""


def samples(folder: Path) -> list[Command[Any]]:
    """A harmless example of each request that is sent. `folder` is the session's own."""
    nobody = str(uuid4())
    file = folder / "probed.txt"
    file.write_text("probe\n", encoding="utf-8")
    return [
        McpStatus(),
        McpSetServers(servers={}),
        McpReconnect(server_name="nobody"),
        McpToggle(server_name="nobody", enabled=False),
        SetModel(model=None),
        SetPermissionMode(mode=PermissionMode.DEFAULT),
        SetMaxThinkingTokens(max_thinking_tokens=None),
        SetProactivityLevel(level="default"),
        SetHasSubscribers(has_subscribers=True),
        SetPromptSuggestionsPaused(paused=True),
        RenameSession(title="probe"),
        GenerateSessionTitle(description="probe", persist=False),
        SideQuestion(question="Is this a probe?"),
        CancelAsyncMessage(message_uuid=nobody),
        GetContextUsage(),
        GetPlan(),
        ExportConversation(),
        RewindFiles(user_message_id=nobody, dry_run=True),
        ReadFile(path=str(file)),
        FileSuggestions(query="probed"),
        SeedReadState(path=str(file), mtime=int(file.stat().st_mtime * 1000)),
        GetWorkspaceDiff(),
        AddDirectory(directory=str(folder)),
        GetSettings(),
        ApplyFlagSettings(settings=Raw(b"{}")),
        ListPermissionRules(),
        GetHooksListing(),
        ListModels(),
        GetSessionCost(),
        GetUsage(),
        GetBinaryVersion(),
        GetStatus(),
        GetMemoryDialog(),
        GetSkillsDialog(),
        GetSandboxDialog(),
        ReloadPlugins(),
        ReloadSkills(),
        ReloadOutputStyles(),
        StopTask(task_id="nobody"),
        BackgroundTasks(),
        GetTaskOutput(task_id="nobody"),
    ]
