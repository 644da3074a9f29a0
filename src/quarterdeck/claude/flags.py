"""The table of the CLI's flags: which option of `Launch` is which flag, and since when.

Owns facts and no behaviour. `launch` reads it; the reference page lists it; a test tries every
flag of it on the real CLIs. `SINCE` holds the oldest version on which we saw a flag work, of the
versions in `TESTED`; an option that is not in it works on all of them.
"""

from __future__ import annotations

from enum import Enum, auto
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
    since: str | None = None
    until: str | None = None
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
    Flag("resume_drops_turn", "--resume-drops-turn", Kind.VALUE, since="2.1.325"),
    Flag("session_persistence", "--no-session-persistence", Kind.SWITCH_OFF),
    Flag("name", "--name", Kind.VALUE, since="2.1.120"),
    Flag("worktree", "--worktree", Kind.VALUE, since="2.1.62"),
    Flag("model", "--model", Kind.VALUE, word=True),
    Flag("fallback_model", "--fallback-model", Kind.VALUE),
    Flag("effort", "--effort", Kind.VALUE, word=True, since="2.1.62"),
    Flag("thinking", "--thinking", Kind.VALUE, word=True, since="2.1.62"),
    Flag("thinking_display", "--thinking-display", Kind.VALUE, word=True, since="2.1.120"),
    Flag("max_thinking_tokens", "--max-thinking-tokens", Kind.NUMBER, least=0),
    Flag("max_turns", "--max-turns", Kind.NUMBER),
    Flag("max_budget_usd", "--max-budget-usd", Kind.NUMBER, least=0.000001),
    Flag("task_budget", "--task-budget", Kind.NUMBER, since="2.1.120"),
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
        Kind.SWITCH, since="2.1.120",
    ),
    Flag("plan_mode_instructions", "--plan-mode-instructions", Kind.VALUE, since="2.1.120"),
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
    Flag("bare", "--bare", Kind.SWITCH, since="2.1.120"),
    Flag("safe_mode", "--safe-mode", Kind.SWITCH, since="2.1.325"),
    Flag("restricted", "--restricted", Kind.SWITCH, since="2.1.325"),
    Flag("include_partial_messages", "--include-partial-messages", Kind.SWITCH),
    Flag("replay_user_messages", "--replay-user-messages", Kind.SWITCH),
    Flag("include_hook_events", "--include-hook-events", Kind.SWITCH, since="2.1.120"),
    Flag("forward_subagent_text", "--forward-subagent-text", Kind.SWITCH, since="2.1.325"),
    Flag("prompt_suggestions", "--prompt-suggestions", Kind.SWITCH, since="2.1.325"),
    Flag("session_mirror", "--session-mirror", Kind.SWITCH, since="2.1.120"),
    Flag("json_schema", "--json-schema", Kind.VALUE, json="only"),
    Flag("debug_file", "--debug-file", Kind.VALUE),
    # From 2.1.121 on the CLI refuses to dial a host other than its maker's.
    Flag("sdk_url", "--sdk-url", Kind.VALUE, until="2.1.120"),
)  # fmt: skip

SINCE: dict[str, str] = {flag.option: flag.since for flag in FLAGS if flag.since}
UNTIL: dict[str, str] = {flag.option: flag.until for flag in FLAGS if flag.until}

# Flags that the link itself sets; options cannot change them.
SWITCHED_BY_US = frozenset(
    {"--output-format", "--input-format", "--verbose", "--permission-prompt-tool", "--print"}
)
