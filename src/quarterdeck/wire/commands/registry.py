"""All commands, by subtype, and the way of a command to JSON and back.

A new command belongs into the module of its theme; it is found there.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.wire.commands import conversation, files, mcp, session, settings, tasks
from quarterdeck.wire.commands.base import Command, UnknownCommand
from quarterdeck.wire.rawjson import dump, subtype_of

COMMANDS: dict[str, type[Command[Any]]] = {
    str(found.__struct_config__.tag): found
    for module in (session, conversation, files, mcp, settings, tasks)
    for found in vars(module).values()
    if isinstance(found, type) and issubclass(found, Command) and found is not Command
}
"""The commands that have a type, by subtype."""

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_decoders: dict[str, msgspec.json.Decoder[Command[Any]]] = {
    subtype: msgspec.json.Decoder(command) for subtype, command in COMMANDS.items()
}


def decode_command(json: Raw) -> Command[Any]:
    """Type the body of a request that is meant for a CLI. Never raises."""
    subtype = subtype_of(json)
    decoder = _decoders.get(subtype)
    if decoder is None:
        return UnknownCommand(name=subtype, json=json)
    try:
        return decoder.decode(json)
    except _UNREADABLE as error:
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
    except _UNREADABLE as error:
        raise UsageError(f"{command.subtype} cannot be sent: {error}") from error
    return json
