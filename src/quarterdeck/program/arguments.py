"""The command line that a program gives to the CLI: what it asks for, and what the hub needs more.

Pure. `options` reads the words. Options that do not concern the hub are passed on as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from quarterdeck.claude.forced_settings import SIMPLE, is_simple
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.program.options import END, Flag, read_words
from quarterdeck.runtime.agent_process import MARKS

_WORD = re.compile(r"(?:[^\s,(]|\([^)]*\)?)+")
"""A name of a tool. What is in its parentheses may have commas and blanks."""
STREAM = "stream-json"
STDIO = "stdio"
BYPASS = "bypassPermissions"
EMIT_STATES = "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"
READ_STATES = "CLAUDE_CODE_SDK_READS_SESSION_STATE"
"""With it the CLI reports its state, marked as for the SDK only."""
OWN = "QUARTERDECK_"
"""How our variables begin. The agent gets none of them, but for the marks of an agent: one may be
a token."""

_PROMPT_TOOL = "--permission-prompt-tool"
_REPLAY = "--replay-user-messages"
_PARTIAL = "--include-partial-messages"
_SKIP = "--dangerously-skip-permissions"
_MAY_SKIP = "--allow-dangerously-skip-permissions"
_MODES = ("--permission-mode", "--inherit-permission-mode")
_BARE = "--bare"
_SETTINGS, _MANAGED = "--settings", "--managed-settings"
_TOOLS, _DENIED, _SOURCES = "--tools", "--disallowedTools", "--setting-sources"
_TURNS, _BUDGET = "--max-turns", "--max-budget-usd"
_STRICT, _NO_COMMANDS = "--strict-mcp-config", "--disable-slash-commands"
_SAFE, _RESTRICTED = "--safe-mode", "--restricted"
_LIMITS = {
    _TOOLS, _DENIED, _SOURCES, _TURNS, _BUDGET, _STRICT, _NO_COMMANDS, _SAFE, _RESTRICTED
}  # fmt: skip
_FREE = {
    "--add-dir", "--agents", "--allowedTools", "--append-system-prompt",
    "--append-system-prompt-file", "--betas", "--continue", "--debug", "--debug-file", "--effort",
    "--enable-auth-status", "--exclude-dynamic-system-prompt-sections", "--fallback-model",
    "--fork-session", "--forward-subagent-text", "--include-hook-events", "--input-format",
    "--json-schema", "--max-thinking-tokens", "--mcp-config", "--model", "--name",
    "--no-session-persistence", "--output-format", "--plan-mode-instructions", "--print",
    "--prompt-suggestions", "--resume", "--resume-drops-turn", "--resume-session-at",
    "--session-id", "--session-mirror", "--system-prompt", "--system-prompt-file", "--task-budget",
    "--thinking", "--thinking-display", "--verbose", "--workload",
    *_MODES, _PARTIAL, _REPLAY, _PROMPT_TOOL, _SKIP, _MAY_SKIP,
}  # fmt: skip
"""Options without which an agent may do no more than with them."""

_NEVER = {
    _BARE: "with it the CLI calls no hooks, and the hub's rules would not hold",
    "--sdk-url": "the hub would not get its messages; it is for programs without one",
    "--managed-settings-in-initialize": "the hub needs to see the settings; use --managed-settings",
    "--await-claim": "the hub needs to know the session from the start",
    **dict.fromkeys(
        (
            "--attach-serve", "--background", "--bg", "--cloud", "--desktop", "--handle-uri",
            "--remote", "--routine", "--session-tunnel", "--teleport", "--tmux",
        ),
        "the agent would run without the hub",
    ),
}  # fmt: skip
"""Words that a command line may not have, in no place, and why not.

The CLI finds some of them wherever they are: 2.1.120 takes `--bare` for an option also as the value
of another option, and after `--` (tried)."""
_IN_PLACE = (_SETTINGS, _MANAGED, _PROMPT_TOOL)
"""Options that may only be where every reader takes them for options. Up to 2.1.120 the CLI looks
for settings by itself, with its own idea of which options take a value."""


class Limits(Value):
    """What the program forbids to its agent, by options."""

    tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] = ()
    setting_sources: tuple[str, ...] | None = None
    strict_mcp_config: bool = False
    disable_slash_commands: bool = False
    safe_mode: bool = False
    restricted: bool = False
    max_turns: int | None = None
    max_budget_usd: float | None = None


class Given(Value):
    """What a program asked for."""

    replay: bool = False
    """It wants its prompts back."""
    partial: bool = False
    """It wants text while it is being made."""
    callback: bool = False
    """It answers permission requests."""
    states: bool = False
    """It wants reports of the CLI's state."""
    mode: str | None = None
    skip_permissions: bool = False
    model: str | None = None
    resume: str | None = None
    settings: str | None = None
    """JSON, or the path of a file, as the CLI takes it."""
    managed_settings: str | None = None
    limits: Limits = Limits()
    own_options: bool = False
    """It has other options that may forbid something."""


class CommandLine(Value):
    """What the real CLI is started with."""

    given: Given
    argv: tuple[str, ...]
    env: dict[str, str]


def speaks_stream_json(argv: Sequence[str]) -> bool:
    """Whether the program and the CLI exchange messages. Else there is nothing to take part in."""
    flags = read_words(argv).flags
    return _last(flags, "--input-format") == _last(flags, "--output-format") == STREAM


def prints_only(argv: Sequence[str]) -> bool:
    """Whether this command line runs an agent that only prints."""
    names = {flag.name for flag in read_words(argv).flags}
    return not speaks_stream_json(argv) and "--print" in names


def command_line(argv: Sequence[str], environ: Mapping[str, str]) -> CommandLine:
    """The command line and the environment for the real CLI.

    Raises `UsageError` if the program has another tool answer permission requests, or switches the
    hooks off: the hub would not hear of its calls. Also if that cannot be told, because versions of
    the CLI read the words in different ways.
    """
    words = read_words(argv)
    _check(argv, words.flags, words.end, words.doubtful)
    if is_simple(environ):
        raise UsageError(
            f"{SIMPLE}: with this variable the CLI calls no hooks, and the hub's rules would not"
            " hold"
        )
    flags = words.flags
    names = {flag.name for flag in flags}
    modes = [_last(flags, name) for name in _MODES]
    given = Given(
        replay=_REPLAY in names,
        partial=_PARTIAL in names,
        callback=_PROMPT_TOOL in names,
        states=_is_on(environ, EMIT_STATES) or _is_on(environ, READ_STATES),
        mode=modes[0],
        skip_permissions=bool(names & {_SKIP, _MAY_SKIP}) or BYPASS in modes,
        model=_last(flags, "--model"),
        resume=_last(flags, "--resume"),
        settings=_last(flags, _SETTINGS),
        managed_settings=_last(flags, _MANAGED),
        limits=(limits := _limits(flags)) or Limits(),
        own_options=limits is None or not names <= _LIMITS | _FREE,
    )
    # In front: an option of the program that takes many values would swallow what follows it.
    added = [
        *(() if given.callback else (_PROMPT_TOOL, STDIO)),
        *(() if given.replay else (_REPLAY,)),
        *(() if given.partial else (_PARTIAL,)),
    ]
    env = agent_environment(environ)
    if not given.states:
        env[EMIT_STATES] = "1"
    return CommandLine(given=given, argv=(*added, *argv), env=env)


def with_settings(argv: Sequence[str], settings: str) -> tuple[str, ...]:
    """The same arguments with these settings in place of those that are given; where there are
    none, in front. Nothing else is changed.
    """
    words = list(argv)
    found = [flag for flag in read_words(words).flags if flag.name == _SETTINGS]
    for flag in found:
        if flag.at == flag.place:
            words[flag.place] = f"{_SETTINGS}={settings}"
        elif flag.at < len(words):  # if its value is missing, the CLI says so
            words[flag.at] = settings
    if any(flag.at < len(words) for flag in found):
        return tuple(words)
    return (f"{_SETTINGS}={settings}", *words)


def agent_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The program's environment, without what is ours."""
    return {name: value for name, value in environ.items() if _passes(name)}


def _passes(name: str) -> bool:
    return not name.startswith(OWN) or name.startswith(MARKS)


def _is_on(environ: Mapping[str, str], name: str) -> bool:
    return environ.get(name, "").lower() in {"1", "true", "yes", "on"}


def _last(flags: Sequence[Flag], name: str) -> str | None:
    """The value of an option: the last one counts."""
    return next((flag.value for flag in reversed(flags) if flag.name == name), None)


def _limits(flags: Sequence[Flag]) -> Limits | None:
    """What is forbidden; None if that cannot be told."""
    names = {flag.name for flag in flags}
    tools, sources = _words(flags, _TOOLS), _last(flags, _SOURCES)
    turns, budget = _last(flags, _TURNS), _last(flags, _BUDGET)
    try:
        return Limits(
            tools=None if _TOOLS not in names or "default" in tools else tools,
            disallowed_tools=_words(flags, _DENIED),
            setting_sources=None if sources is None else tuple(filter(None, sources.split(","))),
            strict_mcp_config=_STRICT in names,
            disable_slash_commands=_NO_COMMANDS in names,
            safe_mode=_SAFE in names,
            restricted=_RESTRICTED in names,
            max_turns=None if turns is None else int(turns),
            max_budget_usd=None if budget is None else float(budget),
        )
    except ValueError:
        return None


def _words(flags: Sequence[Flag], name: str) -> tuple[str, ...]:
    """The names that an option lists, with commas or blanks between them: `Bash(git *),Edit`."""
    texts = [text for flag in flags if flag.name == name for text in (flag.value, *flag.more)]
    return tuple(word for text in texts for word in _WORD.findall(text))


def _check(argv: Sequence[str], flags: Sequence[Flag], end: int, doubtful: frozenset[int]) -> None:
    """Raise `UsageError` for what the hub cannot accept, wherever it is."""
    certain = {flag.place for flag in flags} - doubtful
    names = [word.partition("=")[0] for word in argv]
    for name in names:
        if name in _NEVER:
            raise UsageError(f"{name}: {_NEVER[name]}")
    for place, (name, word) in enumerate(zip(names, argv, strict=True)):
        if (name in _IN_PLACE and place not in certain) or (word == END and place < end):
            raise UsageError(
                f"{word}: versions of the CLI differ in whether this is an option or the value of"
                " the option before it; write that one as --option=value"
            )
    for flag in flags:
        if flag.name == _PROMPT_TOOL and flag.value != STDIO:
            raise UsageError(
                f"{_PROMPT_TOOL} {flag.value}: the hub answers permission requests; remove this"
                " option, or answer them in the program (can_use_tool)"
            )
    for name in (_SETTINGS, _MANAGED):
        if len({flag.value for flag in flags if flag.name == name}) > 1:
            raise UsageError(f"{name}: versions of the CLI differ in which one of several they use")
