"""The routes that belong to no one session: questions, machines, the audit log, logins, health."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import anyio
from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import QueryParameter, SkipValidation

from quarterdeck import __version__
from quarterdeck.fronts.http.access import Access
from quarterdeck.fronts.http.events import page
from quarterdeck.fronts.http.openapi import (
    LOGIN_ERRORS,
    OPEN_ERRORS,
    READ_ERRORS,
    documented,
)
from quarterdeck.fronts.http.problems import Refused
from quarterdeck.fronts.http.roles import Person
from quarterdeck.fronts.http.routes.handlers import Asking, Hub, body_of, visit_of
from quarterdeck.fronts.http.routes.sessions import After, Limit
from quarterdeck.fronts.http.tokens import Kind
from quarterdeck.protocol.audit import AuditKind
from quarterdeck.protocol.roles import RIGHTS
from quarterdeck.protocol.shapes import (
    AskList,
    EventPage,
    Health,
    HubAlarm,
    LoggedIn,
    LoginCode,
    MachineList,
    Me,
)

LOGIN_LIMIT = 4096
"""The sender has no login yet."""

Doors = NamedDependency[SkipValidation[Access]]
Alarmer = NamedDependency[SkipValidation[Callable[[], tuple[HubAlarm, ...]] | None]]
Failing = NamedDependency[SkipValidation[Callable[[], str | None]]]
OfSession = Annotated[
    str | None, QueryParameter(description="Only of this session", max_length=128)
]


Before = Annotated[
    int | None,
    QueryParameter(
        description="Go backwards from before this position; 0: from the newest entry", ge=0
    ),
]
OfKind = Annotated[
    Literal["denied", "people", "changes", "programs", "sandbox", "refused"] | None,
    QueryParameter(description="Only entries of this kind, the newest first"),
]
OfEnded = Annotated[
    bool,
    QueryParameter(description="Also those whose agent has ended: an answer resumes the session"),
]


@get("/asks", opt=documented(READ_ERRORS))
async def list_asks(hub: Hub, session: OfSession = None, ended: OfEnded = False) -> AskList:
    """The open questions, oldest first."""
    return AskList(asks=tuple(await hub.asks(session=session, ended=ended)))


@get("/machines", opt=documented(READ_ERRORS))
async def list_machines(hub: Hub, alarming: Alarmer) -> MachineList:
    """The machines that run agents, or did; and what is wrong between several hubs."""
    alarms = () if alarming is None else alarming()
    return MachineList(machines=tuple(await hub.machines()), alarms=alarms)


@get("/audit", opt=documented(READ_ERRORS, gives=EventPage))
async def list_audit(
    hub: Hub,
    session: OfSession = None,
    after: After = 0,
    before: Before = None,
    limit: Limit = 500,
    kind: OfKind = None,
) -> Response[bytes]:
    """The audit log: who or what allowed or denied each call, and who changed its rules.

    `after` is a position. With `before` the pages go backwards, the newest entry first; `next` is
    the `before` of the following page. With `kind` they always do. The hub reads a bounded number
    of entries for a request, so a page of a rare kind may be empty while `next` is not null.
    """
    if before == 0 or (before is None and kind is not None):
        before = hub.position + 1
    if kind is not None and before is not None:
        found = await hub.audit_page(
            AuditKind(kind), session=session, after=after, before=before, limit=limit
        )
        body = await page(hub.epoch, list(found.entries), found.next)
        return Response(body, media_type="application/json")
    entries = await hub.audit(session=session, after=after, before=before, limit=limit)
    following = entries[-1].position if entries else None
    return Response(await page(hub.epoch, entries, following), media_type="application/json")


@get("/whoami", opt=documented(READ_ERRORS))
async def whoami(request: Asking) -> Me:
    """Your name, role and rights."""
    return me(request.user)


@post("/logout", status_code=200, opt=documented(READ_ERRORS))
async def logout(request: Asking, access: Doors) -> Response[Me]:
    """End a browser's login. A bearer token stays valid."""
    person = request.user
    for grant in access.grants():
        if grant.id == person.grant and grant.kind is Kind.BROWSER:
            await anyio.to_thread.run_sync(access.revoke, grant.id)
    headers = {"Set-Cookie": access.set_cookie(None, visit_of(request.scope))}
    return Response(me(person), headers=headers)


@post(
    "/login",
    status_code=200,
    request_max_body_size=LOGIN_LIMIT,
    opt=documented(LOGIN_ERRORS, takes=LoginCode, open=True),
)
async def login(request: Asking, access: Doors) -> Response[LoggedIn]:
    """Exchange the code of a login link for a cookie and a page key, of use only together.

    A code works once, for ten minutes.
    """
    given = await body_of(request, LoginCode)
    visit = visit_of(request.scope)
    made = await anyio.to_thread.run_sync(access.login, given.code, visit)
    person_shape = me(made.person)
    body = LoggedIn(
        name=person_shape.name,
        role=person_shape.role,
        rights=person_shape.rights,
        expires=person_shape.expires,
        page_key=made.page_key,
    )
    return Response(body, headers={"Set-Cookie": access.set_cookie(made, visit)})


@get("/healthz", opt=documented((*OPEN_ERRORS, "journal_unavailable"), open=True))
async def healthz(failing: Failing) -> Health:
    """Health check.

    503 while the journal cannot be used: `detail` is its code, such as `away` (the database does
    not answer) or `moved` (the database is another one).
    """
    if (code := failing()) is not None:
        raise Refused("journal_unavailable", code)
    return Health(ok=True, version=__version__)


def me(person: Person) -> Me:
    """The person as the API returns them."""
    rights = tuple(sorted(RIGHTS[person.role]))
    return Me(name=person.name, role=person.role, rights=rights, expires=person.expires)


HANDLERS = [list_asks, list_machines, list_audit, whoami, logout]
OPEN_HANDLERS = [login, healthz]
