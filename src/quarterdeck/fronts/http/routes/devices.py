"""The routes of devices: where the hub is, a login for another device, links to one session.

Owns the words of the routes, the rights that they need, and the QR codes. A login code and the
secret of a link are in the fragment of an address: no browser sends that, and no log has it.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal
from urllib.parse import urlsplit

import anyio.to_thread
from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.params import SkipValidation
from msgspec import Meta

from quarterdeck import __version__
from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import NotFound
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http.access import Access, login_link
from quarterdeck.fronts.http.openapi import COMMAND_ERRORS, READ_ERRORS, documented
from quarterdeck.fronts.http.origins import LOOPBACK_NAMES
from quarterdeck.fronts.http.problems import Refused
from quarterdeck.fronts.http.reach import FindingShape, Reach, Reaching
from quarterdeck.fronts.http.routes.access import GrantId
from quarterdeck.fronts.http.routes.audit_notes import Noter, note_change, note_if_there
from quarterdeck.fronts.http.routes.handlers import Asking, Hub, SessionId, body_of, visit_of
from quarterdeck.fronts.http.routes.hub import Doors
from quarterdeck.fronts.http.tokens import CODE_SECONDS, NAME_LIMIT, SHARED, Grant, Kind
from quarterdeck.protocol.roles import Right, Role
from quarterdeck.protocol.shapes import Body

HOUR_SECONDS = 3600.0
MOST_HOURS = 30 * 24.0
MOST_ADDRESSES = 8

Reacher = NamedDependency[SkipValidation[Reaching | None]]


class HubShape(Value, omit_defaults=False):
    """The hub that answers."""

    version: str
    reach: Reach | None
    """Null: this server does not know."""


class FindingList(Value, omit_defaults=False):
    """What `quarterdeck doctor` finds."""

    findings: tuple[FindingShape, ...]


class NewLogin(Body):
    """A login for another device."""

    name: Annotated[str, Meta(min_length=1, max_length=NAME_LIMIT)] | None = None
    """Whose login it is; default: yours."""
    role: Literal["owner", "operator", "viewer"] | None = None
    """Default: yours."""


class LoginLink(Value, omit_defaults=False):
    """A link that logs a browser in, and the same as a picture."""

    address: str
    link: str
    code: str
    """A QR code, as a `data:` URL of an SVG."""


class NewLoginLinks(Value, omit_defaults=False):
    """Links with one code in them: it works once, in one of them."""

    links: tuple[LoginLink, ...]
    seconds: float
    """How long the code works."""


class NewShare(Body):
    """A read-only link to a session."""

    hours: Annotated[float, Meta(gt=0, le=MOST_HOURS)] = 24.0
    name: Annotated[str, Meta(min_length=1, max_length=NAME_LIMIT)] = "link"
    """For whom it is, so that you know it in the list."""


class ShareShape(Value, omit_defaults=False):
    """A read-only link to a session, without its secret. Times are in seconds since 1970."""

    id: str
    session: str
    name: str
    made: float
    expires: float | None


class ShareList(Value, omit_defaults=False):
    """The links that are valid, oldest first."""

    shares: tuple[ShareShape, ...]


class MadeShare(Value, omit_defaults=False):
    """A link. Its secret is returned once, and not stored."""

    share: ShareShape
    path: str
    """Put it after the address of the hub."""


@get("/hub", opt=documented(READ_ERRORS))
async def get_hub(reaching: Reacher) -> HubShape:
    """The version of the hub, where other devices find it, and how it is encrypted."""
    reach = None if reaching is None else await reaching.reach()
    return HubShape(version=__version__, reach=reach)


@get("/hub/findings", opt=documented((*READ_ERRORS, "conflict")))
async def get_findings(request: Asking, reaching: Reacher) -> FindingList:
    """What `quarterdeck doctor` finds on the hub's machine. For owners."""
    request.user.need(Right.MANAGE)
    if reaching is None:
        raise Refused("not_found", "this server cannot look at its machine")
    return FindingList(findings=await reaching.findings())


@post(
    "/logins",
    status_code=200,
    opt=documented(COMMAND_ERRORS, takes=NewLogin, body_optional=True),
)
async def make_login(
    request: Asking, access: Doors, reaching: Reacher, noting: Noter
) -> NewLoginLinks:
    """Make a link, with a QR code, that logs in another device. For owners."""
    person = request.user
    person.need(Right.MANAGE)
    wanted = await body_of(request, NewLogin, empty_is=NewLogin())
    role = person.role if wanted.role is None else Role(wanted.role)
    make = partial(access.make_code, wanted.name or person.name, role)
    code = await anyio.to_thread.run_sync(make)
    note = CodedText(
        code=TextCode.LOGIN_LINK_MADE,
        name=person.name,
        other=wanted.name or person.name,
        names=(role.value,),
    )
    await note_change(noting, "login", note)
    visit = visit_of(request.scope)
    known = () if reaching is None else (await reaching.reach()).addresses
    addresses = _addresses(f"{visit.scheme}://{visit.host}", known)
    links = await anyio.to_thread.run_sync(
        lambda: tuple(_login_link(address, code) for address in addresses)
    )
    return NewLoginLinks(links=links, seconds=CODE_SECONDS)


def _addresses(here: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Where another device may find the hub. An address of this machine alone comes last."""
    local = (urlsplit(here).hostname or "") in LOOPBACK_NAMES
    ordered = (*known, here) if local else (here, *known)
    return tuple(dict.fromkeys(ordered))[:MOST_ADDRESSES]


def _login_link(address: str, code: str) -> LoginLink:
    import segno  # 0.05 s, which only this page needs

    link = login_link(address, code)
    picture = segno.make(link, micro=False).svg_data_uri(scale=4, border=4, light="#fff")
    return LoginLink(address=address, link=link, code=picture)


# --- links to one session ------------------------------------------------------------------------


@get("/shares", opt=documented(READ_ERRORS))
async def list_shares(request: Asking, access: Doors) -> ShareList:
    """The read-only links that are valid. For owners."""
    request.user.need(Right.MANAGE)
    return _shares(access)


@post(
    "/sessions/{session_id:str}/share",
    status_code=200,
    opt=documented(COMMAND_ERRORS, takes=NewShare, body_optional=True),
)
async def share_session(
    session_id: SessionId, request: Asking, hub: Hub, access: Doors, noting: Noter
) -> MadeShare:
    """Make a read-only link to a session, for people without access. For owners.

    It shows this session and nothing else, until it expires or is revoked. The audit log has it.
    """
    person = request.user
    person.need(Right.MANAGE)
    wanted = await body_of(request, NewShare, empty_is=NewShare())
    session = (await hub.session(session_id)).session
    make = partial(access.make_share, wanted.name, session, seconds=wanted.hours * HOUR_SECONDS)
    secret, grant = await anyio.to_thread.run_sync(make)
    if noting is not None:
        note = CodedText(
            code=TextCode.SHARE_MADE,
            name=person.name,
            other=grant.name,
            seconds=wanted.hours * HOUR_SECONDS,
        )
        await noting(session, note, by=person.name, about="link")
    return MadeShare(share=_share(grant), path=f"/share#{secret}")


@delete("/shares/{grant_id:str}", status_code=200, opt=documented(COMMAND_ERRORS))
async def revoke_share(
    grant_id: GrantId, request: Asking, access: Doors, noting: Noter
) -> ShareList:
    """Revoke a read-only link; gives those that are left. For owners."""
    request.user.need(Right.MANAGE)
    found = next((each for each in _links(access) if each.id == grant_id), None)
    if found is None:
        raise NotFound("link", grant_id)
    await anyio.to_thread.run_sync(access.revoke, grant_id)
    if noting is not None:
        by = request.user.name
        note = CodedText(code=TextCode.SHARE_REVOKED, name=by, other=found.name)
        await note_if_there(noting, session_of_link(found), note, by=by, about="link")
    return _shares(access)


def session_of_link(grant: Grant) -> str:
    """The session that a link shows."""
    return grant.label.removeprefix(SHARED)


def _links(access: Access) -> list[Grant]:
    return [grant for grant in access.grants() if grant.kind is Kind.SHARE]


def _shares(access: Access) -> ShareList:
    return ShareList(shares=tuple(map(_share, _links(access))))


def _share(grant: Grant) -> ShareShape:
    return ShareShape(
        id=grant.id,
        session=session_of_link(grant),
        name=grant.name,
        made=grant.made,
        expires=grant.expires,
    )


HANDLERS = [
    get_hub,
    get_findings,
    make_login,
    list_shares,
    share_session,
    revoke_share,
]
