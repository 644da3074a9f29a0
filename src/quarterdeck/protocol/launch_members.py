"""Checks of the members of a spec that become flags of the CLI. Pure.

Owns what a machine must be able to rely on before it builds a command line: paths are absolute,
texts have no NUL, a flag that a member of its own sets is not given a second time. Which members
there are, and which flags, is in `domain.launch_options`; a few need a check of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.launch_options import (
    CARRIED,
    LONGEST_ARGUMENT,
    OPTIONS,
    SWITCHED_BY_US,
    Kind,
    Option,
)

BYPASS = "bypassPermissions"
MOST_ENTRIES = 100
"""Entries of one member: plugins, flags, subagents, settings' sources."""

_NAME = r"[A-Za-z][\w.:\[\]-]*"
_FLAG = r"[a-zA-Z][a-zA-Z0-9-]*"

_OTHERS_OF_THE_HUB = frozenset(
    {"from-pr", "help", "ide", "remote", "remote-control", "teleport", "version"}
)
"""Flags that no option gives, and with which the hub would not have the CLI, or not this
conversation."""

Check = Callable[[str, Any], None]


def _plain(flag: str) -> str:
    return flag.removeprefix("--").lower()


_MEMBER_OF_FLAG = {
    _plain(flag): option.member
    for option in OPTIONS
    if option.member is not None
    for flag in (option.flag, *option.spellings)
} | {"mcp-config": "mcp_servers"}
"""The flags that a member sets, in every spelling that the CLI takes. Of the two members for MCP
servers, it is the one that takes more than files."""

_OF_THE_HUB = {
    *_OTHERS_OF_THE_HUB,
    *map(_plain, SWITCHED_BY_US),
    *(_plain(option.flag) for option in OPTIONS if option.member is None),
}


def _check_path(member: str, path: str | None) -> None:
    """A path of the machine must be absolute."""
    if path is not None and (not path.startswith("/") or "\0" in path):
        raise UsageError(f"{member}: must be an absolute path")


def _check_paths(member: str, paths: tuple[str, ...]) -> None:
    _few(member, paths)
    for path in paths:
        _check_path(member, path)


def _check_name(member: str, name: str | None) -> None:
    """A name: no blanks, no dash in front."""
    if name is not None and not re.fullmatch(_NAME, name):
        raise UsageError(f"{member}: {name[:100]!r} is not a name")


def _check_text(member: str, text: str | None) -> None:
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


def _check_choices(choices: tuple[str, ...], member: str, given: tuple[str, ...] | None) -> None:
    for each in given or ():
        if each not in choices:
            raise UsageError(f"{member}: {each[:100]!r} is not one of {', '.join(choices)}")


def _check_number(least: float, member: str, number: float | None) -> None:
    if number is not None and number < least:
        raise UsageError(f"{member}: must be {least} or more")


def _check_of(option: Option) -> Check | None:
    """The check of an option's member. None: its type is enough, or it has a check of its own."""
    match option.kind:
        case Kind.NUMBER:
            return partial(_check_number, option.least)
        case Kind.EACH:
            return _check_paths
        case Kind.COMMAS | Kind.COMMAS_OR_NONE:
            return partial(_check_choices, option.choices) if option.choices else check_list
        case Kind.VALUE if not option.choices and option.json != "only":
            return _check_path if option.path else _check_name if option.word else _check_text
        case _:
            return None


CHECKS: tuple[tuple[str, Check], ...] = tuple(
    (member, check)
    for member, option in CARRIED
    if not option.lenient and (check := _check_of(option))
)
"""The members of a spec whose values are checked by their kind, each with its check."""

FIXED = tuple(member for member, option in CARRIED if option.paths and not option.changeable)
"""The members with paths of what the CLI reads at its start, and in part runs."""


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


def bypass_names(subagents: Mapping[str, Raw]) -> list[str]:
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
        _check_text("subagents", name)
        try:
            msgspec.json.decode(definition, type=_Subagent)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"subagents: {name[:100]!r}: {error}") from error
    if subagents and len(msgspec.json.encode(subagents)) > LONGEST_ARGUMENT:
        raise UsageError(f"subagents: they are longer than {LONGEST_ARGUMENT >> 10} KiB")


def without_bypass(subagents: Mapping[str, Raw]) -> dict[str, Raw]:
    """Subagents for a session that may not bypass permissions: such a mode is left out."""
    kept = dict(subagents)
    for name in bypass_names(subagents):
        members = msgspec.json.decode(subagents[name], type=dict[str, Raw])
        del members["permissionMode"]
        kept[name] = Raw(msgspec.json.encode(members))
    return kept


def check_extra(flags: Mapping[str, str | None]) -> None:
    """Flags that have no member: names without dashes."""
    _few("extra_args", flags)
    for name, value in flags.items():
        if not re.fullmatch(_FLAG, name):
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
