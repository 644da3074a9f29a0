"""The table of launch options: each flag of the CLI that Quarterdeck can give, and all about it.

Owns facts and no behaviour. `claude.launch` builds command lines by it, `protocol` checks the specs
of sessions, `agent.hub_options` and `runner.launch` translate between the two, and `cli` reads its
own options. Classes with a field for each option are written from it by
`tools/write_launch_options.py`. CONTRIBUTING.md says how to add an option.
"""

from __future__ import annotations

import os
from enum import Enum, auto
from typing import Literal, TypeAlias

from msgspec import Struct

AnyPath: TypeAlias = str | os.PathLike[str]


class Kind(Enum):
    """How an option's value becomes arguments."""

    SWITCH = auto()  # True gives the flag
    SWITCH_OFF = auto()  # False gives the flag
    VALUE = auto()
    NUMBER = auto()
    COMMAS = auto()  # all in one argument
    COMMAS_OR_NONE = auto()  # the same; the empty tuple gives `--flag=`, which means «none»
    EACH = auto()  # paths: the flag again for each


class Offer(Struct, frozen=True):
    """An option of `quarterdeck new`."""

    help: str
    metavar: str | None = None
    flags: tuple[str, ...] = ()  # if they are others than the CLI's
    shared: bool = False  # `run`, `loop run` and `acp` have it, too
    commas: bool = False  # one text with commas; else an option with several values is repeated


class Option(Struct, frozen=True):
    """An option of `Launch`, its flag, and what it is in a session of the hub.

    A session's spec has it under the same name, unless `spec`, `command` or `refused` are given.
    """

    name: str
    flag: str
    kind: Kind

    # The value.
    on: bool = False  # of a switch: it is given by default
    fraction: bool = False  # of a number
    least: float = 1  # of a number
    path: bool = False  # of one value; `Kind.EACH` are paths
    choices: tuple[str, ...] = ()  # one value of another text is a type error, several are checked
    word: bool = False  # a name: no blanks, no dash in front
    may_be_empty: bool = False
    json: Literal["only", "or path"] | None = None

    # The flag.
    spellings: tuple[str, ...] = ()  # others that the CLI accepts
    file_flag: str | None = None  # takes a path in place of a long value

    # The session.
    spec: str | None = None  # its name there, if it is another
    spec_type: str | None = None  # its type there, if it is another
    doc: str | None = None  # what is said about it there
    lenient: bool = False  # stored specs may have any value: it is checked when the CLI starts
    changeable: bool = False  # of a path: the agent may change what is there
    becomes: str | None = None  # for the documentation, if it is not obvious
    command: str | None = None  # the member of the command that creates a session, beside its spec
    refused: str | None = None  # why no session can have it

    offer: Offer | None = None

    @property
    def paths(self) -> bool:
        """Whether its value is a path, or several."""
        return self.path or self.kind is Kind.EACH

    @property
    def several(self) -> bool:
        """Whether it has several values."""
        return self.kind in (Kind.COMMAS, Kind.COMMAS_OR_NONE, Kind.EACH)

    @property
    def member(self) -> str | None:
        """The member of a spec that has it, or that is to be used in its place."""
        if self.spec is not None:
            return self.spec
        return None if self.command or self.refused else self.name


SECTIONS: tuple[tuple[str, tuple[Option, ...]], ...] = (
    ("The session.", (
        Option("resume", "--resume", Kind.VALUE, command="cli_session",
            offer=Offer("Resume this session of the CLI.", "ID")),
        Option("continue_", "--continue", Kind.SWITCH, command="cli_latest",
            offer=Offer("Continue the newest conversation of the folder.")),
        Option("fork_session", "--fork-session", Kind.SWITCH, command="cli_fork",
            offer=Offer("With --resume or --continue: in a copy.", flags=("--fork",))),
        Option("session_id", "--session-id", Kind.VALUE,
            refused="a session of the hub has more than one conversation, as after a plan with a"
            " fresh start; choose its id with `session`"),
        Option("resume_session_at", "--resume-session-at", Kind.VALUE, command="cli_at"),
        Option("resume_drops_turn", "--resume-drops-turn", Kind.VALUE,
            refused="the hub never cuts a conversation off; fork it at a message"),
        Option("session_persistence", "--no-session-persistence", Kind.SWITCH_OFF,
            refused="the hub resumes a session from the CLI's transcript"),
        Option("name", "--name", Kind.VALUE, lenient=True, offer=Offer("A name for people.")),
        Option("worktree", "--worktree", Kind.VALUE, lenient=True,
            doc="Work in a git worktree of the directory's repository, on a branch of this name.",
            offer=Offer("Work in a git worktree of its own.", "BRANCH")),
    )),
    ("The model and its limits.", (
        Option("model", "--model", Kind.VALUE, word=True, lenient=True,
            offer=Offer("The model.", shared=True)),
        Option("fallback_model", "--fallback-model", Kind.VALUE,
            doc="The model to use while `model` is overloaded; several are separated by commas.",
            offer=Offer("The model while the first is busy.")),
        Option("effort", "--effort", Kind.VALUE, word=True, lenient=True,
            offer=Offer("The thinking effort: low, medium, high.", shared=True)),
        Option("thinking", "--thinking", Kind.VALUE, word=True, choices=("adaptive", "disabled"),
            spec="thinking_mode",
            doc="Whether the model thinks. `max_thinking_tokens` overrides it."),
        Option("thinking_display", "--thinking-display", Kind.VALUE, word=True),
        Option("max_thinking_tokens", "--max-thinking-tokens", Kind.NUMBER, least=0,
            doc="How much the model may think; 0 turns thinking off. The newest models use"
            " `effort` only."),
        Option("max_turns", "--max-turns", Kind.NUMBER, lenient=True,
            offer=Offer("The most rounds of model and tools.", shared=True)),
        Option("max_budget_usd", "--max-budget-usd", Kind.NUMBER, fraction=True, least=0.000001,
            lenient=True, doc="The CLI's own limit for one run; `budget` is the hub's.",
            offer=Offer("Stop above this cost in US dollars.", shared=True)),
        Option("task_budget", "--task-budget", Kind.NUMBER,
            doc="Tokens that the model has for its task, as its prompt says."),
        Option("betas", "--betas", Kind.COMMAS),
    )),
    ("The prompts. With none of these the CLI uses its own, which is what Claude Code is.", (
        Option("system_prompt", "--system-prompt", Kind.VALUE, file_flag="--system-prompt-file",
            may_be_empty=True, lenient=True,
            offer=Offer("Replace Claude Code's system prompt.", shared=True)),
        Option("system_prompt_file", "--system-prompt-file", Kind.VALUE, path=True,
            doc="A file of the machine, in place of `system_prompt`. The agent cannot change it."),
        Option("append_system_prompt", "--append-system-prompt", Kind.VALUE,
            file_flag="--append-system-prompt-file", lenient=True,
            offer=Offer("Add this to Claude Code's system prompt.", shared=True)),
        Option("append_system_prompt_file", "--append-system-prompt-file", Kind.VALUE, path=True),
        Option("exclude_dynamic_system_prompt_sections", "--exclude-dynamic-system-prompt-sections",
            Kind.SWITCH),
        Option("plan_mode_instructions", "--plan-mode-instructions", Kind.VALUE),
    )),
    ("Tools and permissions. `tools=()` means no tools, None means the default ones.", (
        Option("tools", "--tools", Kind.COMMAS_OR_NONE, lenient=True,
            offer=Offer("Only these tools. Repeatable.", "NAME", ("--tool",))),
        Option("allowed_tools", "--allowedTools", Kind.COMMAS, spellings=("--allowed-tools",),
            lenient=True,
            offer=Offer("Allow this without asking, as in 'Bash(git status:*)'. Repeatable.",
                "RULE", ("--allow", "--allowed-tools"), shared=True)),
        Option("disallowed_tools", "--disallowedTools", Kind.COMMAS,
            spellings=("--disallowed-tools",), lenient=True,
            offer=Offer("Never allow this. Repeatable.",
                "RULE", ("--deny", "--disallowed-tools"), shared=True)),
        Option("permission_mode", "--permission-mode", Kind.VALUE, word=True, spec="mode",
            lenient=True,
            offer=Offer("default, acceptEdits, plan, dontAsk, auto, bypassPermissions.",
                flags=("--permission-mode", "--mode"), shared=True)),
        Option("dangerously_skip_permissions", "--dangerously-skip-permissions", Kind.SWITCH,
            spec="skip_permissions",
            doc="Ask nothing, except where a rule asks or denies. Never a default: a person must"
            " set it. Without a `mode` the CLI starts with its permissions bypassed.",
            offer=Offer("Never ask for permission.", shared=True)),
        Option("allow_dangerously_skip_permissions", "--allow-dangerously-skip-permissions",
            Kind.SWITCH, spec="skip_permissions",
            refused="in a session of the hub, leave to skip permissions is leave that is used; say"
            " dangerously_skip_permissions"),
    )),
    ("Settings and extensions. `setting_sources=()` means no settings files at all.", (
        Option("settings", "--settings", Kind.VALUE, path=True, file_flag="--settings",
            json="or path", lenient=True, becomes="`settings`; a path becomes absolute",
            offer=Offer("More settings: a file or JSON.", "FILE|JSON", shared=True)),
        Option("setting_sources", "--setting-sources", Kind.COMMAS_OR_NONE,
            choices=("local", "project", "user"),
            doc="Which settings files the CLI reads: `user`, `project`, `local`; empty: none.",
            offer=Offer("Which settings files to read: user,project,local; '' for no file.", "LIST",
                commas=True)),
        Option("add_dirs", "--add-dir", Kind.EACH, lenient=True, changeable=True,
            offer=Offer("One more folder. Repeatable.", "FOLDER")),
        Option("mcp_config", "--mcp-config", Kind.EACH, file_flag="--mcp-config", json="or path",
            doc="Files of the machine with more MCP servers. The agent cannot change them.",
            becomes="`mcp_servers` for JSON, `mcp_config` for paths",
            offer=Offer("MCP servers: a file or JSON. Repeatable.", "FILE|JSON", shared=True)),
        Option("strict_mcp_config", "--strict-mcp-config", Kind.SWITCH,
            doc="Only these MCP servers, none of the CLI's settings.",
            offer=Offer("Only the MCP servers given here.")),
        Option("plugin_dirs", "--plugin-dir", Kind.EACH,
            doc="Folders of the machine with plugins, which may run programs. The agent cannot"
            " change them.",
            offer=Offer("A plugin. Repeatable.", "FOLDER")),
        Option("agent", "--agent", Kind.VALUE,
            doc="The name of the agent that the conversation is with, of `subagents` or of the"
            " settings.",
            offer=Offer("Talk to this agent.", "NAME")),
        Option("agents", "--agents", Kind.VALUE, json="only", spec="subagents",
            spec_type="dict[str, Raw]",
            doc="Subagents by name, as the CLI defines them. They are arguments of its process,"
            " which others on the machine can read: secrets belong into `env` or `mcp_servers`.",
            offer=Offer("Subagents: a file or JSON.", "FILE|JSON", ("--subagents",))),
        Option("disable_slash_commands", "--disable-slash-commands", Kind.SWITCH),
        Option("bare", "--bare", Kind.SWITCH,  # tried with 2.1.325
            refused="the CLI then calls no hooks, and the hub's rules would not hold for what it"
            " allows by itself; safe_mode keeps them"),
        Option("safe_mode", "--safe-mode", Kind.SWITCH),
        Option("restricted", "--restricted", Kind.SWITCH),
    )),
    ("Output.", (
        Option("include_partial_messages", "--include-partial-messages", Kind.SWITCH, on=True,
            doc="Whether text is shown while it is generated."),
        Option("replay_user_messages", "--replay-user-messages", Kind.SWITCH, on=True,
            refused="the hub needs it to know which prompt a turn took"),
        Option("include_hook_events", "--include-hook-events", Kind.SWITCH,
            offer=Offer("Keep what the CLI reports about its hooks.", flags=("--hook-events",))),
        Option("forward_subagent_text", "--forward-subagent-text", Kind.SWITCH),
        Option("prompt_suggestions", "--prompt-suggestions", Kind.SWITCH),
        Option("session_mirror", "--session-mirror", Kind.SWITCH,
            doc="The CLI also sends each line that it writes to its transcript.",
            offer=Offer("Another machine can resume it (CLI 2.1.97).")),
        Option("json_schema", "--json-schema", Kind.VALUE, json="only",
            spec_type="dict[str, Raw] | None",
            doc="The schema of the object that each turn ends with, in `structured` of"
            " `turn.ended`.",
            offer=Offer("The schema of the object a turn ends with.", "FILE|JSON")),
        Option("debug_file", "--debug-file", Kind.VALUE, path=True, changeable=True,
            doc="A file of the machine that the CLI writes its log to."),
    )),
    ("Transport: None is stdin and stdout, else the WebSocket that the CLI connects to.", (
        Option("sdk_url", "--sdk-url", Kind.VALUE,
            refused="the machine's runner holds the link to the CLI"),
    )),
)  # fmt: skip

OPTIONS: tuple[Option, ...] = tuple(option for _, options in SECTIONS for option in options)

CARRIED: tuple[tuple[str, Option], ...] = tuple(
    (option.member, option) for option in OPTIONS if option.member and not option.refused
)
"""The options that a session can have, each after the member of its spec."""

SWITCHED_BY_US = frozenset(
    {"--output-format", "--input-format", "--verbose", "--permission-prompt-tool", "--print"}
)
"""Flags that the link itself sets; options cannot change them."""

LONGEST_ARGUMENT = 120 * 1024
"""Linux takes 128 KiB in one argument, the closing NUL included. Some room for the flag's name."""
