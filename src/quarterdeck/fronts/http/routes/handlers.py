"""What all handlers need: their parameters, the decoding of bodies, and submitting commands.

Below the routes. A body is decoded here and not by the framework, so that raw JSON stays raw, and
so that an error names the path of the member.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Annotated, TypeVar

import anyio.lowlevel
import msgspec
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.handlers import BaseRouteHandler
from litestar.params import PathParameter, SkipValidation
from msgspec.structs import replace

from quarterdeck.domain.decode_errors import describe
from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.http.large_bodies import decode_any_command, decode_body
from quarterdeck.fronts.http.origins import Visit
from quarterdeck.fronts.http.problems import Refused
from quarterdeck.fronts.http.roles import Person
from quarterdeck.hub.api import HubApi, act_as
from quarterdeck.protocol.command_table import right_for
from quarterdeck.protocol.commands import AnswerAsk, AnyCommand, Outcome
from quarterdeck.protocol.roles import Right
from quarterdeck.runtime.off_loop import off_loop

SLICE = 1024 * 1024
"""Of a body that is checked without a pause."""

Hub = NamedDependency[SkipValidation[HubApi]]
Asking = Request[Person, object, State]
SessionId = Annotated[
    str, PathParameter(description="A session's id", max_length=128, min_length=1)
]
PromptId = Annotated[str, PathParameter(description="A prompt's id", max_length=128, min_length=1)]
AskId = Annotated[str, PathParameter(description="A question's id", max_length=256, min_length=1)]

_T = TypeVar("_T", bound=msgspec.Struct)


async def body_of(
    request: Asking,
    kind: type[_T],
    *,
    empty_is: _T | None = None,
    large_member: str | None = None,
) -> _T:
    """The body, decoded. Raises `Refused` or `UsageError` for what cannot be taken."""
    data = await request.body()
    if not data and empty_is is not None:
        return empty_is
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise Refused("unsupported_media_type", "Content-Type: must be application/json")
    await _check_text(data)
    return await off_loop(len(data), decode_struct, data, kind, large_member)


async def _check_text(data: bytes) -> None:
    """Raise `UsageError` unless it is UTF-8: raw members are passed on without another check.

    A large body is checked in slices, so that others may go on meanwhile.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(data), SLICE):
        if len(data) > SLICE:
            await anyio.lowlevel.checkpoint()
        try:
            decoder.decode(data[start : start + SLICE], final=start + SLICE >= len(data))
        except UnicodeDecodeError as error:
            raise UsageError(f"body: not UTF-8 at byte {start + error.start}") from error


def decode_struct(data: bytes, kind: type[_T], large_member: str | None = None) -> _T:
    """JSON, which is UTF-8, as a struct. Raises `UsageError` with the path of what is wrong."""
    try:
        return decode_body(data, kind, large_member)
    except msgspec.DecodeError as error:
        raise UsageError(f"body: {describe(error)}") from error
    except RecursionError as error:
        raise UsageError("body: nested too deeply") from error


def decode_command(data: msgspec.Raw) -> AnyCommand:
    """A command from JSON. Raises `UsageError` with the path of what is wrong, and `Refused`."""
    try:
        return decode_any_command(data)
    except msgspec.DecodeError as error:
        raise UsageError(f"command: {describe(error)}") from error
    except RecursionError as error:
        raise UsageError("command: nested too deeply") from error


async def do(hub: HubApi, person: Person, command: AnyCommand) -> Outcome:
    """Submit a command for a person, if they have its right. `by` and `role` are from the login."""
    person.need(right_for(command))
    if isinstance(command, AnswerAsk):
        command = replace(command, role=person.role.value)
    with act_as(person.role, person.name):
        return await hub.submit(replace(command, by=person.name))


def require_read(
    connection: ASGIConnection[object, Person, object, State], _: BaseRouteHandler
) -> None:
    """A guard: every path needs the right to read."""
    connection.user.need(Right.READ)


def visit_of(scope: Mapping[str, object]) -> Visit:
    """The origin of a request, as the gate found it."""
    visit = scope["quarterdeck.visit"]
    assert isinstance(visit, Visit)
    return visit
