"""The routes of who has access: an owner sees it, gives it and takes it back.

The same as `quarterdeck token`, for owners without a terminal on the hub's machine. Tokens of
runners are not created here, but on the hub's machine. Everybody pairs chats with themselves, and
ends the access that they use.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import anyio.to_thread
from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, SkipValidation
from msgspec import Meta

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http.access import Access
from quarterdeck.fronts.http.openapi import COMMAND_ERRORS, READ_ERRORS, documented
from quarterdeck.fronts.http.routes.audit_notes import Noter, note_change
from quarterdeck.fronts.http.routes.handlers import Asking, body_of
from quarterdeck.fronts.http.routes.hub import Doors, me
from quarterdeck.fronts.http.tokens import NAME_LIMIT, PAIRING_SECONDS, Kind
from quarterdeck.hub.api import CliAccess, session_of
from quarterdeck.protocol.roles import Right, Role
from quarterdeck.protocol.shapes import Body, Me

DAY_SECONDS = 86400.0

OfClis = NamedDependency[SkipValidation[CliAccess | None]]
"""The tokens of dialling CLIs; None where there are none."""

GrantId = Annotated[
    str, PathParameter(description="The id of a grant of access", max_length=64, min_length=1)
]


class NewToken(Body):
    """Grant access."""

    name: Annotated[str, Meta(min_length=1, max_length=NAME_LIMIT)]
    role: Literal["owner", "operator", "viewer", "program"]
    days: Annotated[float, Meta(gt=0, le=3660)] = 90.0
    """After so many days the token expires."""


class GrantShape(Value, omit_defaults=False):
    """A grant of access. Times are in seconds since 1970."""

    id: str
    name: str
    role: Role
    kind: Kind
    made: float
    expires: float | None
    label: str
    """What a token is used by, such as `telegram:1234`; empty if nobody said."""
    own: bool = False
    """It is the access that this request uses."""


class GrantList(Value, omit_defaults=False):
    """Who has access, oldest first."""

    tokens: tuple[GrantShape, ...]


class MadeToken(Value, omit_defaults=False):
    """A token. It is returned once, and not stored."""

    token: str


class PairingCode(Value, omit_defaults=False):
    """A code to type into a chat with the bot: `/pair CODE`. It works once."""

    code: str
    seconds: float
    """How long it works."""
    name: str
    role: Role
    """The person that the chat will act as: you."""


class NewPairing(Body):
    """The code that a person typed, and where."""

    code: Annotated[str, Meta(min_length=1, max_length=64)]
    label: Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[a-z]+:[!-~]+$")]
    """The user of the chat, as `telegram:1234`."""


class ReadCode(Body):
    """A code that others may have read."""

    code: Annotated[str, Meta(min_length=1, max_length=64)]


class CancelledCode(Value, omit_defaults=False):
    """The code does not work, whether or not it did."""

    ok: bool


class MadePairing(Value, omit_defaults=False):
    """The token of the person who made the code. It is returned once, and not stored."""

    token: str
    name: str
    role: Role
    expires: float | None


@post("/pairing/code", status_code=200, opt=documented(COMMAND_ERRORS))
async def make_pairing_code(request: Asking, access: Doors) -> PairingCode:
    """Make a code with which a chat is paired with you. The chat's access ends with yours."""
    person = request.user
    make = partial(
        access.make_pairing,
        person.name,
        person.role,
        until=person.expires,
        parent=person.grant,
    )
    code = await anyio.to_thread.run_sync(make)
    return PairingCode(code=code, seconds=PAIRING_SECONDS, name=person.name, role=person.role)


@post("/pairing", status_code=200, opt=documented(COMMAND_ERRORS, takes=NewPairing))
async def pair(request: Asking, access: Doors) -> MadePairing:
    """Exchange a code for a token of the person who made it. For the program behind the chat."""
    wanted = await body_of(request, NewPairing)
    made = await anyio.to_thread.run_sync(access.pair, wanted.code, wanted.label)
    person = made.person
    return MadePairing(token=made.token, name=person.name, role=person.role, expires=person.expires)


@post("/pairing/cancel", status_code=200, opt=documented(COMMAND_ERRORS, takes=ReadCode))
async def cancel_pairing(request: Asking, access: Doors) -> CancelledCode:
    """Let a code work no more, because others may have read it. For who knows the code."""
    given = await body_of(request, ReadCode)
    await anyio.to_thread.run_sync(access.cancel_pairing, given.code)
    return CancelledCode(ok=True)


@delete("/token", status_code=200, opt=documented(COMMAND_ERRORS))
async def end_own_access(request: Asking, access: Doors) -> Me:
    """End the access that this request uses, and that of the chats which were paired by it."""
    person = request.user
    await anyio.to_thread.run_sync(access.revoke, person.grant)
    return me(person)


@get("/tokens", opt=documented(READ_ERRORS))
async def list_tokens(request: Asking, access: Doors, cli_access: OfClis) -> GrantList:
    """Who has access. For owners."""
    request.user.need(Right.MANAGE)
    return await _list_grants(access, cli_access, request.user.grant)


@post("/tokens", status_code=200, opt=documented(COMMAND_ERRORS, takes=NewToken))
async def make_token(request: Asking, access: Doors, noting: Noter) -> MadeToken:
    """Make a bearer token for a program or a person. For owners."""
    request.user.need(Right.MANAGE)
    wanted = await body_of(request, NewToken)
    make = partial(
        access.make_token, wanted.name, Role(wanted.role), seconds=wanted.days * DAY_SECONDS
    )
    made = await anyio.to_thread.run_sync(make)
    note = CodedText(
        code=TextCode.TOKEN_MADE,
        name=request.user.name,
        other=wanted.name,
        names=(str(wanted.role),),
        seconds=wanted.days * DAY_SECONDS,
    )
    await note_change(noting, "token", note)
    return MadeToken(token=made)


@delete("/tokens/{grant_id:str}", status_code=200, opt=documented(COMMAND_ERRORS))
async def revoke_token(
    grant_id: GrantId, request: Asking, access: Doors, cli_access: OfClis, noting: Noter
) -> GrantList:
    """Take access back, from open connections too; gives who is left. For owners."""
    request.user.need(Right.MANAGE)
    session = session_of(grant_id)
    if session is not None and cli_access is not None:
        await cli_access.revoke(session, request.user.name)
        return await _list_grants(access, cli_access, request.user.grant)
    if grant_id == request.user.grant:
        raise UsageError("this is the access that you use right now: log out instead")
    found = next((each for each in access.grants() if each.id == grant_id), None)
    await anyio.to_thread.run_sync(access.revoke, grant_id)
    if found is not None:
        note = CodedText(
            code=TextCode.ACCESS_REVOKED,
            name=request.user.name,
            other=found.name,
            names=(found.role.value, found.kind.value),
        )
        await note_change(noting, "token", note)
    return await _list_grants(access, cli_access, request.user.grant)


async def _list_grants(access: Access, cli_access: CliAccess | None, own: str) -> GrantList:
    clis = [] if cli_access is None else await cli_access.tokens()
    shapes = (
        GrantShape(
            id=grant.id,
            name=grant.name,
            role=grant.role,
            kind=grant.kind,
            made=grant.made,
            expires=grant.expires,
            label=grant.label,
            own=grant.id == own,
        )
        for grant in access.grants()
    )
    used = (
        GrantShape(
            id=each.id,
            name=each.name,
            role=Role.RUNNER,
            kind=Kind.TOKEN,
            made=each.since,
            expires=None,
            label=f"cli:{each.session}",
        )
        for each in clis
    )
    return GrantList(tokens=(*shapes, *used))


HANDLERS = [
    list_tokens,
    make_token,
    revoke_token,
    make_pairing_code,
    pair,
    cancel_pairing,
    end_own_access,
]
