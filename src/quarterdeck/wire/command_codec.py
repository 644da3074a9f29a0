"""Commands to JSON and back.

Owns the decoding and encoding of the body of a control request of ours. `commands` declares them.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import DECODE_ERRORS
from quarterdeck.wire.command_base import Command, UnknownCommand
from quarterdeck.wire.commands import COMMANDS
from quarterdeck.wire.rawjson import dump, subtype_of

_decoders: dict[str, msgspec.json.Decoder[Command[Any]]] = {
    subtype: msgspec.json.Decoder(command) for subtype, command in COMMANDS.items()
}


def decode_command(json: Raw) -> Command[Any]:
    """Type the body of a request to a CLI. Never raises."""
    subtype = subtype_of(json)
    decoder = _decoders.get(subtype)
    if decoder is None:
        return UnknownCommand(name=subtype, json=json)
    try:
        return decoder.decode(json)
    except DECODE_ERRORS as error:
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
    except DECODE_ERRORS as error:
        raise UsageError(f"{command.subtype} cannot be sent: {error}") from error
    return json
