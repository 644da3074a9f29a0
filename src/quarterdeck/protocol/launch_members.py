"""Checks of the members of a spec that become flags of the CLI. Pure.

Owns what a machine must be able to rely on before it builds a command line: paths are absolute,
texts have no NUL, a flag that a member of its own sets is not given a second time. Which flag a
member becomes is known by the runner.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import UsageError

BYPASS = "bypassPermissions"
MOST_ENTRIES = 100
"""Entries of one member: plugins, flags, subagents, settings' sources."""
LONGEST_ARGUMENT = 120 * 1024
"""Linux takes 128 KiB in one argument of a process."""

SOURCES = frozenset({"user", "project", "local"})
_NAME = re.compile(r"[A-Za-z][\w.:\[\]-]*")
_FLAG = re.compile(r"[a-z][a-z0-9-]*", re.IGNORECASE)

_MEMBER_OF_FLAG = {
    "add-dir": "add_dirs",
    "agent": "agent",
    "agents": "subagents",
    "allow-dangerously-skip-permissions": "skip_permissions",
    "allowed-tools": "allowed_tools",
    "allowedtools": "allowed_tools",
    "append-system-prompt": "append_system_prompt",
    "append-system-prompt-file": "append_system_prompt_file",
    "betas": "betas",
    "dangerously-skip-permissions": "skip_permissions",
    "debug-file": "debug_file",
    "disable-slash-commands": "disable_slash_commands",
    "disallowed-tools": "disallowed_tools",
    "disallowedtools": "disallowed_tools",
    "effort": "effort",
    "exclude-dynamic-system-prompt-sections": "exclude_dynamic_system_prompt_sections",
    "fallback-model": "fallback_model",
    "forward-subagent-text": "forward_subagent_text",
    "include-hook-events": "include_hook_events",
    "include-partial-messages": "include_partial_messages",
    "json-schema": "json_schema",
    "max-budget-usd": "max_budget_usd",
    "max-thinking-tokens": "max_thinking_tokens",
    "max-turns": "max_turns",
    "mcp-config": "mcp_servers",
    "model": "model",
    "name": "name",
    "permission-mode": "mode",
    "plan-mode-instructions": "plan_mode_instructions",
    "plugin-dir": "plugin_dirs",
    "prompt-suggestions": "prompt_suggestions",
    "restricted": "restricted",
    "safe-mode": "safe_mode",
    "session-mirror": "session_mirror",
    "setting-sources": "setting_sources",
    "settings": "settings",
    "strict-mcp-config": "strict_mcp_config",
    "system-prompt": "system_prompt",
    "system-prompt-file": "system_prompt_file",
    "task-budget": "task_budget",
    "thinking": "thinking_mode",
    "thinking-display": "thinking_display",
    "tools": "tools",
    "worktree": "worktree",
}
"""The flags that a member sets, in every spelling that the CLI takes. A test compares it with the
table of flags."""

_OF_THE_HUB = frozenset(
    {
        "bare", "continue", "fork-session", "from-pr", "help", "ide", "input-format",
        "no-session-persistence", "output-format", "permission-prompt-tool", "print",
        "replay-user-messages", "remote", "remote-control", "resume", "resume-drops-turn",
        "resume-session-at", "sdk-url", "session-id", "teleport", "verbose", "version",
    }
)  # fmt: skip
"""Flags with which the hub would not have the CLI, or not this conversation. With `bare` the CLI
calls no hooks (tried with 2.1.325): rules would not hold for what it allows by itself."""


def check_path(member: str, path: str | None) -> None:
    """A path of the machine must be absolute."""
    if path is not None and (not path.startswith("/") or "\0" in path):
        raise UsageError(f"{member}: must be an absolute path")


def check_paths(member: str, paths: tuple[str, ...]) -> None:
    """The same for several."""
    _few(member, paths)
    for path in paths:
        check_path(member, path)


def check_name(member: str, name: str | None) -> None:
    """A name: no blanks, no dash in front."""
    if name is not None and not _NAME.fullmatch(name):
        raise UsageError(f"{member}: {name[:100]!r} is not a name")


def check_text(member: str, text: str | None) -> None:
    """A text that is one argument of a process."""
    if text is not None and (not text.strip() or "\0" in text):
        raise UsageError(f"{member}: it is empty, or contains a NUL character")
    if text is not None and len(text.encode("utf-8", "surrogateescape")) > LONGEST_ARGUMENT:
        raise UsageError(f"{member}: it is longer than {LONGEST_ARGUMENT >> 10} KiB")


def check_list(member: str, entries: tuple[str, ...] | None) -> None:
    """Texts that become one argument, with commas between them."""
    _few(member, entries or ())
    for entry in entries or ():
        if not entry.strip() or "," in entry or "\0" in entry:
            raise UsageError(f"{member}: {entry[:100]!r} is empty, or has a comma or NUL in it")


def check_sources(sources: tuple[str, ...] | None) -> None:
    """Which settings files the CLI reads."""
    for each in sources or ():
        if each not in SOURCES:
            raise UsageError(
                f"setting_sources: {each[:100]!r} is not one of {', '.join(sorted(SOURCES))}"
            )


def check_schema(schema: Mapping[str, Raw] | None) -> None:
    """The schema of a structured answer: the CLI makes a tool of it, whose input is an object."""
    if schema is None:
        return
    if bytes(schema.get("type", Raw(b""))).strip() != b'"object"':
        raise UsageError('json_schema: its "type" must be "object"')
    if len(msgspec.json.encode(schema)) > LONGEST_ARGUMENT:
        raise UsageError(f"json_schema: it is longer than {LONGEST_ARGUMENT >> 10} KiB")


class _Subagent(msgspec.Struct, rename="camel"):
    """What every definition of a subagent has, and what is of the hub's concern."""

    description: str
    prompt: str
    permission_mode: str | None = None


def bypassing(subagents: Mapping[str, Raw]) -> list[str]:
    """The names of the subagents that would bypass permissions."""
    return [
        name
        for name, definition in subagents.items()
        if msgspec.json.decode(definition, type=_Subagent).permission_mode == BYPASS
    ]


def check_subagents(subagents: Mapping[str, Raw]) -> None:
    """Definitions of subagents."""
    _few("subagents", subagents)
    for name, definition in subagents.items():
        check_text("subagents", name)
        try:
            msgspec.json.decode(definition, type=_Subagent)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"subagents: {name[:100]!r}: {error}") from error
    if subagents and len(msgspec.json.encode(subagents)) > LONGEST_ARGUMENT:
        raise UsageError(f"subagents: they are longer than {LONGEST_ARGUMENT >> 10} KiB")


def without_bypass(subagents: Mapping[str, Raw]) -> dict[str, Raw]:
    """Subagents for a session that may not bypass permissions: such a mode is left out."""
    kept = dict(subagents)
    for name in bypassing(subagents):
        members = msgspec.json.decode(subagents[name], type=dict[str, Raw])
        del members["permissionMode"]
        kept[name] = Raw(msgspec.json.encode(members))
    return kept


def check_extra(flags: Mapping[str, str | None]) -> None:
    """Flags that have no member: names without dashes."""
    _few("extra_args", flags)
    for name, value in flags.items():
        if not _FLAG.fullmatch(name):
            raise UsageError(f"extra_args: {name[:100]!r} is not a flag (write it without dashes)")
        if (member := _MEMBER_OF_FLAG.get(name.lower())) is not None:
            raise UsageError(f"extra_args: use the member {member} instead of --{name}")
        if name.lower() in _OF_THE_HUB:
            raise UsageError(f"extra_args: --{name} belongs to the hub and cannot be changed")
        if value is not None and "\0" in value:
            raise UsageError(f"extra_args: --{name} contains a NUL character")
        if value is not None and len(value.encode("utf-8", "surrogateescape")) > LONGEST_ARGUMENT:
            raise UsageError(f"extra_args: --{name} is longer than {LONGEST_ARGUMENT >> 10} KiB")


def _few(member: str, entries: Iterable[object]) -> None:
    if sum(1 for _ in entries) > MOST_ENTRIES:
        raise UsageError(f"{member}: more than {MOST_ENTRIES} entries")
