"""Every control request that we can send, with the type of its answer.

A command is a struct whose class names its answer: `Command[Answer]`. Commands are grouped by theme
in the modules of this package, and the types inside their answers are found there. `decode_command`
and `encode_command` convert to and from JSON; `decode_answer` types an answer. A new command only
has to be added to the module of its theme.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import DECODE_ERRORS
from quarterdeck.wire.commands import conversation, files, mcp, session, settings, tasks
from quarterdeck.wire.commands.base import (
    Command,
    Empty,
    UnknownCommand,
    answer_type,
    decode_answer,
    decode_or_none,
)
from quarterdeck.wire.commands.conversation import (
    CancelAsyncMessage,
    ContextUsage,
    ExportConversation,
    ForkConversation,
    GetContextUsage,
    GetPlan,
    Interrupt,
    InterruptReceipt,
    PlanAnswer,
    RewindConversation,
    SideQuestion,
)
from quarterdeck.wire.commands.files import (
    AddDirectory,
    FileSuggestions,
    GetWorkspaceDiff,
    ListDirectory,
    ReadFile,
    RegisterRepoRoot,
    RewindFiles,
    RewindResult,
    SeedReadState,
)
from quarterdeck.wire.commands.mcp import (
    ChannelEnable,
    McpAuthenticate,
    McpCall,
    McpClearAuth,
    McpOauthCallbackUrl,
    McpReadResource,
    McpReconnect,
    McpServers,
    McpSetServers,
    McpSetServersAnswer,
    McpStatus,
    McpToggle,
    SendMcpMessage,
    SetMcpPermissionModeOverride,
)
from quarterdeck.wire.commands.session import (
    EndSession,
    GenerateSessionTitle,
    Initialize,
    InitializeAnswer,
    MessageRated,
    ModeAnswer,
    ModelAnswer,
    RemoteControl,
    RenameSession,
    SetColor,
    SetCwd,
    SetHasSubscribers,
    SetMaxThinkingTokens,
    SetModel,
    SetPermissionMode,
    SetProactivityLevel,
    SetPromptSuggestionsPaused,
)
from quarterdeck.wire.commands.settings import (
    ApplyFlagSettings,
    GetBinaryVersion,
    GetHooksListing,
    GetMemoryDialog,
    GetSandboxDialog,
    GetSessionCost,
    GetSettings,
    GetSkillsDialog,
    GetStatus,
    GetUsage,
    ListModels,
    ListPermissionRules,
    ReloadOutputStyles,
    ReloadPlugins,
    ReloadSkills,
    Settings,
    UpdateSettings,
)
from quarterdeck.wire.commands.tasks import (
    BackgroundTasks,
    GetTaskOutput,
    StartShellTask,
    StopTask,
    TaskOutput,
)
from quarterdeck.wire.rawjson import dump, subtype_of

__all__ = [
    "COMMANDS",
    "AddDirectory",
    "ApplyFlagSettings",
    "BackgroundTasks",
    "CancelAsyncMessage",
    "ChannelEnable",
    "Command",
    "ContextUsage",
    "Empty",
    "EndSession",
    "ExportConversation",
    "FileSuggestions",
    "ForkConversation",
    "GenerateSessionTitle",
    "GetBinaryVersion",
    "GetContextUsage",
    "GetHooksListing",
    "GetMemoryDialog",
    "GetPlan",
    "GetSandboxDialog",
    "GetSessionCost",
    "GetSettings",
    "GetSkillsDialog",
    "GetStatus",
    "GetTaskOutput",
    "GetUsage",
    "GetWorkspaceDiff",
    "Initialize",
    "InitializeAnswer",
    "Interrupt",
    "InterruptReceipt",
    "ListDirectory",
    "ListModels",
    "ListPermissionRules",
    "McpAuthenticate",
    "McpCall",
    "McpClearAuth",
    "McpOauthCallbackUrl",
    "McpReadResource",
    "McpReconnect",
    "McpServers",
    "McpSetServers",
    "McpSetServersAnswer",
    "McpStatus",
    "McpToggle",
    "MessageRated",
    "ModeAnswer",
    "ModelAnswer",
    "PlanAnswer",
    "ReadFile",
    "RegisterRepoRoot",
    "ReloadOutputStyles",
    "ReloadPlugins",
    "ReloadSkills",
    "RemoteControl",
    "RenameSession",
    "RewindConversation",
    "RewindFiles",
    "RewindResult",
    "SeedReadState",
    "SendMcpMessage",
    "SetColor",
    "SetCwd",
    "SetHasSubscribers",
    "SetMaxThinkingTokens",
    "SetMcpPermissionModeOverride",
    "SetModel",
    "SetPermissionMode",
    "SetProactivityLevel",
    "SetPromptSuggestionsPaused",
    "Settings",
    "SideQuestion",
    "StartShellTask",
    "StopTask",
    "TaskOutput",
    "UnknownCommand",
    "UpdateSettings",
    "answer_type",
    "decode_answer",
    "decode_command",
    "decode_or_none",
    "encode_command",
]

COMMANDS: dict[str, type[Command[Any]]] = {
    str(found.__struct_config__.tag): found
    for module in (session, conversation, files, mcp, settings, tasks)
    for found in vars(module).values()
    if isinstance(found, type) and issubclass(found, Command) and found is not Command
}
"""The commands that have a type, by subtype."""

_decoders: dict[str, msgspec.json.Decoder[Command[Any]]] = {
    subtype: msgspec.json.Decoder(command) for subtype, command in COMMANDS.items()
}


def decode_command(json: Raw) -> Command[Any]:
    """Type the body of a request to a CLI. Never raises."""
    subtype = subtype_of(json)
    decoder = _decoders.get(subtype)
    if decoder is None:
        return UnknownCommand(name=subtype, json=json)
    try:
        return decoder.decode(json)
    except DECODE_ERRORS as error:
        return UnknownCommand(name=subtype, json=json, error=str(error))


def encode_command(command: Command[Any]) -> Raw:
    """The body of a request. Raises `UsageError` if the command does not fit its own type.

    A CLI may go deaf on a known request of the wrong shape, so the shape is proven before.
    """
    if isinstance(command, UnknownCommand):
        return dump(command.json)
    json = dump(command)
    try:
        _decoders[command.subtype].decode(json)
    except DECODE_ERRORS as error:
        raise UsageError(f"{command.subtype} cannot be sent: {error}") from error
    return json
