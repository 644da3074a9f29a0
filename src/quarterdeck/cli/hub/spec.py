"""From the command line of `new` to the spec of a session.

Owns that step, with an error for each invalid value, before anything is sent.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.launch_options import CARRIED
from quarterdeck.protocol.sandbox import SandboxMode
from quarterdeck.protocol.sessions import Budget, SessionSpec

LARGEST_STDIN = 16 * 1024 * 1024


class _McpConfig(msgspec.Struct):
    servers: dict[str, Raw] = msgspec.field(name="mcpServers")


def absolute(directory: str, *, here: bool) -> str:
    """The absolute folder. A relative one makes sense only on this machine."""
    path = Path(directory).expanduser()
    if path.is_absolute():
        return os.path.normpath(path)
    if not here:
        raise UsageError(f"{directory!r}: on another machine the path must be absolute")
    return os.path.normpath(path.absolute())


def launch_members(given: Mapping[str, Any], *, here: bool) -> dict[str, Any]:
    """The members of a spec for the launch options that were given. Raises `UsageError`."""
    members: dict[str, Any] = {}
    for member, option in CARRIED:
        value = given.get(member)
        flag = option.offer.flags[0] if option.offer and option.offer.flags else option.flag
        if value is None or value == ():
            continue
        match option.name:
            case "settings":
                members[member] = settings(value, here=here)
            case "mcp_config":
                members["mcp_servers"] = mcp_servers(value)
            case _ if option.json:
                members[member] = json_members(value, flag)
            case _ if option.path:
                members[member] = absolute(value, here=here)
            case _ if option.paths:
                members[member] = tuple(absolute(each, here=here) for each in value)
            case _ if option.several and isinstance(value, str):
                members[member] = comma_list(value)
            case _:
                members[member] = value
    return members


def read_prompt(text: str) -> str:
    """The prompt; `-` reads it from stdin."""
    if text == "-":
        data = sys.stdin.buffer.read(LARGEST_STDIN + 1)
        if len(data) > LARGEST_STDIN:
            raise UsageError(f"stdin has more than {LARGEST_STDIN >> 20} MB: too long for a prompt")
        text = data.decode("utf-8", "replace")
    if not text.strip():
        raise UsageError("the prompt is empty")
    return text


def variables(given: Sequence[str]) -> dict[str, str]:
    """`--env NAME=VALUE`, all of them."""
    found: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise UsageError(f"--env: {name!r} is not of the form NAME=VALUE")
        found[name] = value
    return found


def budget(usd: float | None, tokens: int | None) -> Budget | None:
    """The session's budget."""
    if usd is None and tokens is None:
        return None
    return Budget(session_usd=usd, session_tokens=tokens)


def sandbox_mode(given: str | None) -> SandboxMode | None:
    """`--sandbox MODE`."""
    if given is None:
        return None
    if given not in get_args(SandboxMode):
        raise UsageError(f"--sandbox: {given!r} is not one of {', '.join(get_args(SandboxMode))}")
    mode: SandboxMode = msgspec.convert(given, SandboxMode)
    return mode


def mcp_servers(given: Sequence[str]) -> dict[str, Raw]:
    """`--mcp-config FILE|JSON`, all of them; later ones override."""
    found: dict[str, Raw] = {}
    for each in given:
        text = file_or_json(each, "--mcp-config")
        try:
            found |= msgspec.json.decode(text, type=_McpConfig).servers
        except msgspec.DecodeError as error:
            raise UsageError(f"--mcp-config: {error}") from error
    return {name: Raw(bytes(server)) for name, server in found.items()}


def settings(given: str, *, here: bool) -> str:
    """`--settings FILE|JSON`. A local file is sent as text: the agent may run elsewhere."""
    if not here and given.startswith("/"):
        return given
    return file_or_json(given, "--settings").decode()


def file_or_json(given: str, option: str) -> bytes:
    """JSON that was given directly, or in a file."""
    if given.lstrip().startswith(("{", "[")):
        return given.encode()
    try:
        return Path(given).expanduser().read_bytes()
    except OSError as error:
        raise UsageError(f"{option}: cannot read {given}: {error.strerror}") from error


def json_members(given: str, option: str) -> dict[str, Raw]:
    """A JSON object that was given directly or in a file, by its members."""
    try:
        found = msgspec.json.decode(file_or_json(given, option), type=dict[str, Raw])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{option}: {error}") from error
    return {name: Raw(bytes(value)) for name, value in found.items()}


def comma_list(given: str) -> tuple[str, ...]:
    """The entries of a list with commas; an empty text is an empty list."""
    return tuple(entry.strip() for entry in given.split(",")) if given.strip() else ()


def cli_flags(given: list[str]) -> dict[str, str | None]:
    """`--cli-flag NAME[=VALUE]`, all of them."""
    found: dict[str, str | None] = {}
    for each in given:
        name, equals, value = each.partition("=")
        found[name.removeprefix("--")] = value if equals else None
    return found


def check_folder(spec: SessionSpec) -> SessionSpec:
    """Refuse a folder that does not exist, if it is on this machine."""
    # A project may be on another machine.
    if spec.machine is None and spec.project is None and not Path(spec.directory).is_dir():
        raise UsageError(f"{spec.directory} is not a folder")
    return spec
