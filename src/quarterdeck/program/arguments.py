"""The command line that a program gives to the CLI: what it asks for, and what the hub needs more.

Pure. It knows the few flags that change what the CLI says or whom it asks; all others are passed on
as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from quarterdeck.claude.forced_settings import SIMPLE, is_simple
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.runtime.agent_process import MARKS

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
_BARE = "--bare"
_DIAL = "--sdk-url"
_SETTINGS, _MANAGED = "--settings", "--managed-settings"
_RESUME = "--resume"
_VALUES = (
    "--input-format", "--output-format", _PROMPT_TOOL, "--permission-mode", "--model", _RESUME,
    _SETTINGS, _MANAGED, _DIAL,
)  # fmt: skip
_OPTIONAL = (_RESUME,)
"""Flags whose value may be missing: what looks like a flag is not taken for it."""
_ALONE = (_REPLAY, _PARTIAL, _SKIP, _MAY_SKIP, _BARE)
_PRINT = ("-p", "--print")


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


class CommandLine(Value):
    """What the real CLI is started with."""

    given: Given
    argv: tuple[str, ...]
    env: dict[str, str]


def speaks_stream_json(argv: Sequence[str]) -> bool:
    """Whether the program and the CLI exchange messages. Else there is nothing to take part in."""
    values, _ = _scan(argv)
    return values.get("--input-format") == values.get("--output-format") == STREAM


def prints_only(argv: Sequence[str]) -> bool:
    """Whether this command line runs an agent that only prints."""
    words = list(argv)
    flags = words[: words.index("--")] if "--" in words else words
    return not speaks_stream_json(argv) and any(each in _PRINT for each in flags)


def command_line(argv: Sequence[str], environ: Mapping[str, str]) -> CommandLine:
    """The command line and the environment for the real CLI.

    Raises `UsageError` if the program has another tool answer permission requests, or switches the
    hooks off: the hub would not get its calls.
    """
    values, alone = _scan(argv)
    tool = values.get(_PROMPT_TOOL)
    if tool not in (None, STDIO):
        raise UsageError(
            f"{_PROMPT_TOOL} {tool}: the hub answers permission requests; remove this option, or"
            " answer them in the program (can_use_tool)"
        )
    if _BARE in alone:
        raise UsageError(
            f"{_BARE}: with it the CLI calls no hooks, and the hub's rules would not hold"
        )
    if _DIAL in values:
        raise UsageError(
            f"{_DIAL}: the hub would not get the CLI's messages; it is for programs without one"
        )
    if is_simple(environ):
        raise UsageError(
            f"{SIMPLE}: with this variable the CLI calls no hooks, and the hub's rules would not"
            " hold"
        )
    given = Given(
        replay=_REPLAY in alone,
        partial=_PARTIAL in alone,
        callback=tool == STDIO,
        states=_is_on(environ, EMIT_STATES) or _is_on(environ, READ_STATES),
        mode=values.get("--permission-mode"),
        skip_permissions=bool(alone & {_SKIP, _MAY_SKIP})
        or values.get("--permission-mode") == BYPASS,
        model=values.get("--model"),
        resume=values.get(_RESUME),
        settings=values.get(_SETTINGS),
        managed_settings=values.get(_MANAGED),
    )
    # In front: an option of the program that takes many values would swallow what follows it.
    added = [
        *((_PROMPT_TOOL, STDIO) if tool is None else ()),
        *(() if given.replay else (_REPLAY,)),
        *(() if given.partial else (_PARTIAL,)),
    ]
    env = agent_environment(environ)
    if not given.states:
        env[EMIT_STATES] = "1"
    return CommandLine(given=given, argv=(*added, *argv), env=env)


def with_settings(argv: Sequence[str], settings: str) -> tuple[str, ...]:
    """The same arguments with these settings in place of the last ones, which are those that the
    CLI uses; where there are none, in front. Nothing else is changed.
    """
    words = list(argv)
    found = [(place, value) for place, name, value in _flags(words) if name == _SETTINGS]
    place, value = found[-1] if found else (len(words), "")
    if place == len(words):  # if its value is missing, the CLI says so
        return (f"{_SETTINGS}={settings}", *words)
    words[place] = settings if words[place] == value else f"{_SETTINGS}={settings}"
    return tuple(words)


def agent_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The program's environment, without what is ours."""
    return {name: value for name, value in environ.items() if _passes(name)}


def _passes(name: str) -> bool:
    return not name.startswith(OWN) or name.startswith(MARKS)


def _is_on(environ: Mapping[str, str], name: str) -> bool:
    return environ.get(name, "").lower() in {"1", "true", "yes", "on"}


def _scan(argv: Sequence[str]) -> tuple[dict[str, str], set[str]]:
    """The flags that matter here: those with a value, where the last one counts, and the others."""
    found = list(_flags(argv))
    values = {name: value for _, name, value in found if name in _VALUES}
    return values, {name for _, name, _ in found if name in _ALONE}


def _flags(argv: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """The flags that matter here: where the value is (beyond the end: it is missing), name, value.

    A flag without a value is where it is itself.
    """
    rest = iter(range(len(argv)))
    for place in rest:
        argument = argv[place]
        if argument == "--":
            return
        name, equals, value = argument.partition("=")
        following = argv[place + 1] if place + 1 < len(argv) else ""
        if argument in _ALONE or (name in _VALUES and equals):
            yield place, name, value
        elif name in _OPTIONAL and following.startswith("-"):
            yield place, name, ""
        elif name in _VALUES:
            next(rest, None)
            yield place + 1, name, following
