"""The words of the CLI's command line: which are options, and which are values of options. Pure.

Owns how many words each option takes, as Commander reads them, on which the CLI is built: an option
that needs a value takes the next word, whatever it is, also `--`. One whose value may be missing
takes no word that begins with a dash. What an option means is the business of others.

The arities are those of 2.1.325. An option that is not known here may take the next word or not, so
that word is in doubt.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from quarterdeck.domain.launch_options import OPTIONS, SWITCHED_BY_US, Kind
from quarterdeck.domain.structs import Value

END = "--"
"""Ends the options."""

_SWITCHES = (Kind.SWITCH, Kind.SWITCH_OFF)
_MAY_HAVE_VALUE = frozenset({
    "--cloud", "--debug", "--from-pr", "--project", "--prompt-suggestions", "--rc", "--remote",
    "--remote-control", "--resume", "--teleport", "--worktree", "-d", "-r", "-w",
})  # fmt: skip
_MORE_WITH_VALUE = frozenset({
    "--advisor", "--agent-color", "--agent-id", "--agent-name", "--agent-type",
    "--append-subagent-system-prompt", "--append-subagent-system-prompt-file", "--attach-serve",
    "--autocompact", "--channels", "--client-data-url", "--correlation-id",
    "--dangerously-load-development-channels", "--deep-link-cwd-b64", "--deep-link-last-fetch",
    "--deep-link-repo", "--environment", "--exec", "--fast-mode", "--file",
    "--forward-home-settings", "--handle-uri", "--inherit-permission-mode", "--input-format",
    "--lead-verify-key", "--managed-settings", "--messaging-socket-path", "--on-branch",
    "--output-format", "--parent-session-id", "--permission-prompt-tool", "--permission-prompts",
    "--plugin-dir-no-mcp", "--plugin-url", "--pool", "--prefill", "--prefill-b64", "--proactivity",
    "--project-config-root", "--ref", "--remote-control-session-name-prefix", "--rewind-files",
    "--routine", "--runner-declares", "--session-began-as-copy", "--system-prompt-snapshot",
    "--team-name", "--teammate-mode", "--watch-artifact", "--watch-artifact-no-autoreact",
    "--workload", "-m", "-n",
})  # fmt: skip
"""Options that Quarterdeck itself cannot give."""
_WITH_MANY = frozenset({
    "--add-dir", "--allowed-tools", "--allowedTools", "--betas", "--channels",
    "--dangerously-load-development-channels", "--disallowed-tools", "--disallowedTools", "--file",
    "--mcp-config", "--tools",
})  # fmt: skip
"""They also take the words after their value, up to one that begins with a dash."""
_MORE_SWITCHES = frozenset({
    "--agents-view-if-allowed", "--allow-other-models", "--await-claim", "--await-initialize",
    "--ax-screen-reader", "--background", "--bg", "--brief", "--chrome", "--debug-to-stderr",
    "--deep-link-origin", "--desktop", "--enable-auth-status", "--enable-auto-mode", "--hard-fail",
    "--help", "--host-auth-is-org-sign-in", "--ide", "--include-unsupported-models", "--init",
    "--init-only", "--maintenance", "--managed-settings-in-initialize", "--mcp-debug",
    "--no-chrome", "--plan-mode-required", "--reply-on-resume", "--tmux", "--version", "-c", "-d2e",
    "-h", "-p", "-v",
})  # fmt: skip

_WITH_VALUE = (
    _MORE_WITH_VALUE
    | {
        flag
        for option in OPTIONS
        if option.kind not in _SWITCHES
        for flag in (option.flag, *option.spellings, option.file_flag)
        if flag is not None
    }
) - _MAY_HAVE_VALUE
_ALONE = (
    _MORE_SWITCHES
    | (SWITCHED_BY_US - _WITH_VALUE)
    | {option.flag for option in OPTIONS if option.kind in _SWITCHES}
) - _MAY_HAVE_VALUE
_SAME_AS = {
    "-r": "--resume", "-c": "--continue", "-n": "--name", "-p": "--print", "-d": "--debug",
    "-w": "--worktree", "--allowed-tools": "--allowedTools",
    "--disallowed-tools": "--disallowedTools",
}  # fmt: skip


class Flag(Value):
    """An option on a command line."""

    name: str
    value: str = ""
    """Empty, too, where it has none."""
    more: tuple[str, ...] = ()
    """Further values."""
    place: int
    at: int
    """Where its value is; its own place if there, or if it takes none; beyond the end: missing."""


class Words(Value):
    """A command line."""

    flags: tuple[Flag, ...]
    end: int
    """Where the options end: the place of `--`, or beyond the last word."""
    doubtful: frozenset[int]
    """Words that follow an option which is not known: each may be the value of that one."""


def read_words(argv: Sequence[str]) -> Words:
    """Tell options from values."""
    flags: list[Flag] = []
    doubtful: set[int] = set()
    place, end = 0, len(argv)
    while place < len(argv):
        word = argv[place]
        if word == END:
            end = place
            break
        following = argv[place + 1] if place + 1 < len(argv) else None
        name, equals, value = word.partition("=")
        name = _SAME_AS.get(name, name)
        at = place
        if word in _WITH_VALUE or (word in _MAY_HAVE_VALUE and not _is_option(following)):
            at, value = place + 1, following or ""
        if _is_option(word):
            more = _further(argv, at + 1) if name in _WITH_MANY else ()
            flags.append(Flag(name=name, value=value, more=more, place=place, at=at))
            if not equals and at == place and word not in _ALONE | _MAY_HAVE_VALUE:
                doubtful.add(place + 1)
        place = at + 1
    return Words(flags=tuple(flags), end=end, doubtful=frozenset(doubtful))


def _further(argv: Sequence[str], place: int) -> tuple[str, ...]:
    return tuple(takewhile(lambda word: not _is_option(word), argv[place:]))


def _is_option(word: str | None) -> bool:
    return word is not None and len(word) > 1 and word.startswith("-")
