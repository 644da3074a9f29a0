"""Decoding bodies and commands that may be large, in a bounded time on the event loop.

A decoder cannot be interrupted, and a thread does not help, since it holds the interpreter
meanwhile. So most bodies are small. Only what a prompt says may be large: images and documents.
Such a body is read once, with every member undecoded; what is large is put aside, and the rest,
which is small again, is decoded as every other body. Many small values (a million variables of an
environment) cost a hundred times as much as one long text of the same size.

Below the routes and the stream.
"""

from __future__ import annotations

from functools import cache, reduce
from operator import or_
from typing import TypeVar, get_args

import msgspec
from msgspec import Raw, Struct

from quarterdeck.domain.structs import ABSENT
from quarterdeck.fronts.http.problems import Refused
from quarterdeck.protocol.commands import AnyCommand, ChangePrompt, CreateSession, SendPrompt

MEGABYTE = 1024 * 1024
SMALL_BODY = 2 * MEGABYTE
"""The limit of most bodies, and of all members of a large one but its large member."""
LARGE_BODY = 24 * MEGABYTE
"""A prompt may carry images: three of the largest that the model takes (5 MB), or two of the
largest that the web app attaches (8 MiB). The Messages API takes 32 MB for a whole conversation, so
that a larger prompt would be refused there. For what a prompt of this size costs the event loop,
see `python -m bench large`."""
SMALL_FRAME = 256 * 1024
"""A frame of the stream that is no command, and every frame of a person who cannot steer."""

LARGE_MEMBERS: dict[type[Struct], str] = {
    CreateSession: "prompt",
    SendPrompt: "content",
    ChangePrompt: "content",
}
"""The commands that may be large, and their member that is."""

_T = TypeVar("_T", bound=Struct)


def decode_body(data: bytes, kind: type[_T], large_member: str | None = None) -> _T:
    """A body as a struct. Raises `Refused` for one that is too large, and errors of `msgspec`."""
    if len(data) <= SMALL_BODY or large_member is None:
        return msgspec.json.decode(data, type=kind)
    members, large = _set_aside(
        msgspec.json.decode(data, type=_undecoded_struct(kind)), large_member
    )
    made = msgspec.json.decode(msgspec.json.encode(members), type=kind)
    return msgspec.structs.replace(made, **large)


def decode_any_command(data: Raw) -> AnyCommand:
    """A command. Raises `Refused` for one that is too large, and errors of `msgspec`."""
    if len(memoryview(data)) <= SMALL_BODY:
        return _commands.decode(data)
    found = _undecoded_commands.decode(data)
    kind = _KINDS[type(found)]
    members, large = _set_aside(found, LARGE_MEMBERS.get(kind))
    tagged = {"command": kind.__struct_config__.tag, **members}
    return msgspec.structs.replace(_commands.decode(msgspec.json.encode(tagged)), **large)


def _set_aside(found: Struct, name: str | None) -> tuple[dict[str, Raw], dict[str, Raw]]:
    """The members with `null` for the large one, and the large one."""
    given: dict[str, Raw] = {each: getattr(found, each) for each in found.__struct_fields__}
    members = {each: raw for each, raw in given.items() if raw}
    large = {each: raw for each, raw in members.items() if each == name}
    rest = sum(len(memoryview(raw)) for each, raw in members.items() if each != name)
    if rest > SMALL_BODY:
        besides = "" if name is None else f" besides {name}"
        raise Refused("too_large", f"at most {SMALL_BODY} bytes{besides}")
    return members | dict.fromkeys(large, Raw(b"null")), large


@cache
def _undecoded_struct(kind: type[Struct]) -> type[Struct]:
    """The struct with the same members, none of them decoded."""
    config = kind.__struct_config__
    return msgspec.defstruct(
        f"Undecoded{kind.__name__}",
        [(field.encode_name, Raw, ABSENT) for field in msgspec.structs.fields(kind)],
        tag_field=config.tag_field,
        tag=config.tag,
        frozen=True,
        forbid_unknown_fields=True,
    )


_commands: msgspec.json.Decoder[AnyCommand] = msgspec.json.Decoder(AnyCommand)
_KINDS: dict[type[Struct], type[Struct]] = {
    _undecoded_struct(kind): kind for kind in get_args(AnyCommand)
}
_undecoded_commands: msgspec.json.Decoder[Struct] = msgspec.json.Decoder(reduce(or_, _KINDS))
