"""The table of the CLI's flags: which option of `Launch` is which flag, and since when.

Owns facts and no behaviour. `launch` reads it; the reference page lists it; a test tries every
flag of it on the real CLIs. The versions are in `flag_versions.toml`, which `tools/find_flags.py`
makes from the published versions. `SINCE` and `UNTIL` have them by option: an option that is in
neither works on all versions that are supported.
"""

from __future__ import annotations

import tomllib
from enum import Enum, auto
from pathlib import Path
from typing import Literal

import msgspec

TESTED = ("2.1.37", "2.1.62", "2.1.120", "2.1.325")


class Kind(Enum):
    """How an option's value becomes arguments."""

    SWITCH = auto()  # True gives the flag
    SWITCH_OFF = auto()  # False gives the flag
    VALUE = auto()
    NUMBER = auto()
    COMMAS = auto()  # all in one argument
    COMMAS_OR_NONE = auto()  # the same; the empty tuple gives `--flag=`, which means «none»
    EACH = auto()  # the flag again for each


class Flag(msgspec.Struct, frozen=True):
    """One flag of the CLI and the option of `Launch` that sets it."""

    option: str
    name: str
    kind: Kind
    file_flag: str | None = None  # takes a path in place of a long value
    json: Literal["only", "or path"] | None = None
    word: bool = False  # a name: no blanks, no dash in front
    may_be_empty: bool = False
    least: float = 1  # of a number


FLAGS: tuple[Flag, ...] = (
    Flag("resume", "--resume", Kind.VALUE),
    Flag("continue_", "--continue", Kind.SWITCH),
    Flag("fork_session", "--fork-session", Kind.SWITCH),
    Flag("session_id", "--session-id", Kind.VALUE),
    Flag("resume_session_at", "--resume-session-at", Kind.VALUE),
    Flag("resume_drops_turn", "--resume-drops-turn", Kind.VALUE),
    Flag("session_persistence", "--no-session-persistence", Kind.SWITCH_OFF),
    Flag("name", "--name", Kind.VALUE),
    Flag("worktree", "--worktree", Kind.VALUE),
    Flag("model", "--model", Kind.VALUE, word=True),
    Flag("fallback_model", "--fallback-model", Kind.VALUE),
    Flag("effort", "--effort", Kind.VALUE, word=True),
    Flag("thinking", "--thinking", Kind.VALUE, word=True),
    Flag("thinking_display", "--thinking-display", Kind.VALUE, word=True),
    Flag("max_thinking_tokens", "--max-thinking-tokens", Kind.NUMBER, least=0),
    Flag("max_turns", "--max-turns", Kind.NUMBER),
    Flag("max_budget_usd", "--max-budget-usd", Kind.NUMBER, least=0.000001),
    Flag("task_budget", "--task-budget", Kind.NUMBER),
    Flag("betas", "--betas", Kind.COMMAS),
    Flag(
        "system_prompt", "--system-prompt", Kind.VALUE,
        file_flag="--system-prompt-file", may_be_empty=True,
    ),
    Flag("system_prompt_file", "--system-prompt-file", Kind.VALUE),
    Flag(
        "append_system_prompt", "--append-system-prompt", Kind.VALUE,
        file_flag="--append-system-prompt-file",
    ),
    Flag("append_system_prompt_file", "--append-system-prompt-file", Kind.VALUE),
    Flag(
        "exclude_dynamic_system_prompt_sections", "--exclude-dynamic-system-prompt-sections",
        Kind.SWITCH,
    ),
    Flag("plan_mode_instructions", "--plan-mode-instructions", Kind.VALUE),
    Flag("tools", "--tools", Kind.COMMAS_OR_NONE),
    Flag("allowed_tools", "--allowedTools", Kind.COMMAS),
    Flag("disallowed_tools", "--disallowedTools", Kind.COMMAS),
    Flag("permission_mode", "--permission-mode", Kind.VALUE, word=True),
    Flag("dangerously_skip_permissions", "--dangerously-skip-permissions", Kind.SWITCH),
    Flag("allow_dangerously_skip_permissions", "--allow-dangerously-skip-permissions", Kind.SWITCH),
    Flag("settings", "--settings", Kind.VALUE, file_flag="--settings", json="or path"),
    Flag("setting_sources", "--setting-sources", Kind.COMMAS_OR_NONE),
    Flag("add_dirs", "--add-dir", Kind.EACH),
    Flag("mcp_config", "--mcp-config", Kind.EACH, file_flag="--mcp-config", json="or path"),
    Flag("strict_mcp_config", "--strict-mcp-config", Kind.SWITCH),
    Flag("plugin_dirs", "--plugin-dir", Kind.EACH),
    Flag("agent", "--agent", Kind.VALUE),
    Flag("agents", "--agents", Kind.VALUE, json="only"),
    Flag("disable_slash_commands", "--disable-slash-commands", Kind.SWITCH),
    Flag("bare", "--bare", Kind.SWITCH),
    Flag("safe_mode", "--safe-mode", Kind.SWITCH),
    Flag("restricted", "--restricted", Kind.SWITCH),
    Flag("include_partial_messages", "--include-partial-messages", Kind.SWITCH),
    Flag("replay_user_messages", "--replay-user-messages", Kind.SWITCH),
    Flag("include_hook_events", "--include-hook-events", Kind.SWITCH),
    Flag("forward_subagent_text", "--forward-subagent-text", Kind.SWITCH),
    Flag("prompt_suggestions", "--prompt-suggestions", Kind.SWITCH),
    Flag("session_mirror", "--session-mirror", Kind.SWITCH),
    Flag("json_schema", "--json-schema", Kind.VALUE, json="only"),
    Flag("debug_file", "--debug-file", Kind.VALUE),
    Flag("sdk_url", "--sdk-url", Kind.VALUE),
)  # fmt: skip

TABLE = Path(__file__).with_name("flag_versions.toml")


class _Versions(msgspec.Struct, frozen=True):
    """The generated file: bounds by the name of the flag."""

    asked: tuple[str, ...]
    since: dict[str, str]
    until: dict[str, str]


def _by_option(versions: dict[str, str]) -> dict[str, str]:
    return {flag.option: versions[flag.name] for flag in FLAGS if flag.name in versions}


_VERSIONS = msgspec.convert(tomllib.loads(TABLE.read_text(encoding="utf-8")), type=_Versions)

ASKED = _VERSIONS.asked
"""The versions that the bounds were found with, oldest first."""

SINCE: dict[str, str] = _by_option(_VERSIONS.since)
"""The first version that has the flag of an option."""

# From 2.1.121 on the CLI still has --sdk-url, but refuses to dial a host other than its maker's.
UNTIL: dict[str, str] = {**_by_option(_VERSIONS.until), "sdk_url": "2.1.120"}
"""The last version on which an option works."""

# Flags that the link itself sets; options cannot change them.
SWITCHED_BY_US = frozenset(
    {"--output-format", "--input-format", "--verbose", "--permission-prompt-tool", "--print"}
)
