"""The base of commands: control requests of ours with typed answers.

Owns `Command`, the generic base whose parameter is the answer, and the decoding of answers.
`commands` declares the commands, and `command_codec` encodes them. `outbound` puts a command into
its envelope; `versions` knows which version accepts it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar, Generic, TypeVar, cast, get_args, get_origin

import msgspec
from msgspec import Raw, Struct

from quarterdeck.domain.errors import RequestRefused
from quarterdeck.domain.structs import DECODE_ERRORS
from quarterdeck.wire.base import Part
from quarterdeck.wire.rawjson import EMPTY, is_null, is_object, members

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_SHOWN = 2000
"""Bytes of an answer that does not fit which its error shows."""


class Command(Part, Generic[R_co], tag_field="subtype"):
    """A request that we send to a CLI. Its parameter is the type of the answer::

        class SetModel(Command[ModelAnswer], tag="set_model"): ...

    `since` is the first version 2.1.N that was seen to answer it, out of 37, 52, 62, 92, 120, 150,
    200 and 325; None if no version did that was driven over a pipe.
    """

    since: ClassVar[int | None] = 37

    @property
    def subtype(self) -> str:
        """The wire's name of the command."""
        return str(self.__struct_config__.tag)


class Empty(Part):
    """The answer of a command that only succeeds. Members that it may have are not looked at."""


class UnknownCommand(Command[Raw], tag=False):
    """A command that we have no type for. `json` is its whole body, with the subtype in it."""

    # 2.1.37 leaves a subtype that it does not know without an answer.
    since: ClassVar[int | None] = 52

    name: str = ""
    json: Raw = EMPTY
    error: str | None = None

    @property
    def subtype(self) -> str:
        """The wire's name of the command."""
        return self.name


def answer_type(command: type[Command[R]]) -> type[R]:
    """The type of a command's answer: the type parameter of its class."""
    for base in getattr(command, "__orig_bases__", ()):
        if isinstance(origin := get_origin(base), type) and issubclass(origin, Command):
            found: type[R] = get_args(base)[0]
            return found
    raise TypeError(f"{command.__name__} does not name the type of its answer")


_decoders: dict[object, msgspec.json.Decoder[Any]] = {}


def _decoder(shape: Any) -> msgspec.json.Decoder[Any]:
    """The decoder of a type, made once."""
    if shape not in _decoders:
        _decoders[shape] = msgspec.json.Decoder(shape)
    return _decoders[shape]


def decode_answer(command: Command[R], json: Raw | None) -> R:
    """Type the answer to a command. A missing body is an empty one.

    Raises `RequestRefused` when the body does not fit; the CLI has then carried out the request,
    but its answer has an unknown form. The exception's note is the head of the body.
    """
    body = EMPTY if json is None or is_null(json) else json
    shape = answer_type(type(command))
    try:
        answer: R = _decoder(shape).decode(body)
    except DECODE_ERRORS as error:
        if getattr(shape, "salvage", False) and is_object(body):
            return _salvage(body, shape)
        refused = RequestRefused(command.subtype, f"the answer does not fit: {error}")
        refused.add_note(bytes(body)[:_SHOWN].decode("utf-8", "replace"))
        raise refused from error
    return answer


def _salvage(body: Raw, shape: type[R]) -> R:
    """Decode each member separately, and skip those that do not fit."""
    found = members(body)
    values: dict[str, Any] = {}
    for member in msgspec.structs.fields(cast("type[Struct]", shape)):
        if member.encode_name in found:
            with suppress(*DECODE_ERRORS):
                values[member.name] = _decoder(member.type).decode(found[member.encode_name])
    return shape(**values)


def decode_or_none(json: Raw | None, shape: type[R]) -> R | None:
    """Type the JSON, or None if it does not fit. Never raises."""
    if json is None or is_null(json):
        return None
    try:
        found: R = _decoder(shape).decode(json)
    except DECODE_ERRORS:
        return None
    return found
