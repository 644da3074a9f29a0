"""The routes of who has access: an owner sees it, gives it and takes it back.

The same as `quarterdeck token`, for owners without a terminal on the hub's machine. Tokens of
runners are not created here, but on the hub's machine.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import anyio.to_thread
from litestar import delete, get, post
from litestar.params import PathParameter
from msgspec import Meta

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http.access import Access
from quarterdeck.fronts.http.openapi import COMMAND_ERRORS, READ_ERRORS, documented
from quarterdeck.fronts.http.routes.handlers import Asking, body_of
from quarterdeck.fronts.http.routes.hub import Doors
from quarterdeck.fronts.http.tokens import NAME_LIMIT, Kind
from quarterdeck.protocol.roles import Right, Role
from quarterdeck.protocol.shapes import Body

DAY_SECONDS = 86400.0

GrantId = Annotated[
    str, PathParameter(description="The id of a grant of access", max_length=64, min_length=1)
]


class NewToken(Body):
    """Grant access."""

    name: Annotated[str, Meta(min_length=1, max_length=NAME_LIMIT)]
    role: Literal["owner", "operator", "viewer"]
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


class GrantList(Value, omit_defaults=False):
    """Who has access, oldest first."""

    tokens: tuple[GrantShape, ...]


class MadeToken(Value, omit_defaults=False):
    """A token. It is returned once, and not stored."""

    token: str


@get("/tokens", opt=documented(READ_ERRORS))
async def list_tokens(request: Asking, access: Doors) -> GrantList:
    """Who has access. For owners."""
    request.user.need(Right.MANAGE)
    return _listed(access)


@post("/tokens", status_code=200, opt=documented(COMMAND_ERRORS, takes=NewToken))
async def make_token(request: Asking, access: Doors) -> MadeToken:
    """Make a bearer token for a program or a person. For owners."""
    request.user.need(Right.MANAGE)
    wanted = await body_of(request, NewToken)
    make = partial(
        access.make_token, wanted.name, Role(wanted.role), seconds=wanted.days * DAY_SECONDS
    )
    made = await anyio.to_thread.run_sync(make)
    return MadeToken(token=made)


@delete("/tokens/{grant_id:str}", status_code=200, opt=documented(COMMAND_ERRORS))
async def revoke_token(grant_id: GrantId, request: Asking, access: Doors) -> GrantList:
    """Take access back, from open connections too; gives who is left. For owners."""
    request.user.need(Right.MANAGE)
    if grant_id == request.user.grant:
        raise UsageError("this is the access that you use right now: log out instead")
    await anyio.to_thread.run_sync(access.revoke, grant_id)
    return _listed(access)


def _listed(access: Access) -> GrantList:
    shapes = (
        GrantShape(
            id=grant.id,
            name=grant.name,
            role=grant.role,
            kind=grant.kind,
            made=grant.made,
            expires=grant.expires,
        )
        for grant in access.grants()
    )
    return GrantList(tokens=tuple(shapes))


HANDLERS = [list_tokens, make_token, revoke_token]
