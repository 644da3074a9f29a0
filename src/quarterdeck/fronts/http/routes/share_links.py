"""What a read-only link to one session can read, and the answer from a notification.

Both are outside of `/api`: neither has a login with a page key. The gate has checked the link
before a handler is called, and the handlers take the session from it and never from the request.
There is no stream: the page of a link asks again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, cast

from litestar import Response, get, post
from litestar.datastructures import State
from msgspec import Meta

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http.asgi import Scope
from quarterdeck.fronts.http.events import page
from quarterdeck.fronts.http.openapi import LOGIN_ERRORS, READ_ERRORS, documented
from quarterdeck.fronts.http.problems import Refused
from quarterdeck.fronts.http.routes.audit_notes import Noter, note_if_there
from quarterdeck.fronts.http.routes.devices import session_of_link
from quarterdeck.fronts.http.routes.handlers import Asking, Hub, body_of, do, visit_of
from quarterdeck.fronts.http.routes.hub import Doors
from quarterdeck.fronts.http.routes.push import Pusher
from quarterdeck.fronts.http.routes.sessions import After, Limit
from quarterdeck.fronts.http.tokens import Grant
from quarterdeck.protocol.audit import ACCESS
from quarterdeck.protocol.commands import AllowAnswer, AnswerAsk, DenyAnswer, Outcome
from quarterdeck.protocol.events import Event, Noted
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.protocol.shapes import Body, EventPage

ANSWER_LIMIT = 4096
MOST_NOTED = 1000

_noted: set[tuple[str, str]] = set()
"""Links and addresses whose first visit is in the audit log. It is noted again by the next hub."""


class SharedSession(Value, omit_defaults=False):
    """A session, as a link shows it: nothing of the machine, of budgets or of other sessions."""

    name: str
    state: SessionState
    model: str | None
    created: int
    updated: int
    head: int
    turns: int
    expires: float | None
    """When the link ends, in seconds since 1970."""


class NotificationAnswer(Body):
    """The answer to the question of a notification."""

    token: Annotated[str, Meta(min_length=1, max_length=1000)]
    """From the notification. It works once, for its question and in its browser."""
    answer: Literal["allow", "deny"]


@get("/shared/session", opt=documented(READ_ERRORS))
async def shared_session(request: Asking, hub: Hub, noting: Noter) -> SharedSession:
    """The session of a read-only link. The link's secret is the bearer token."""
    link = _link(request.scope)
    session = session_of_link(link)
    view = await hub.session(session)
    visit = link.id, visit_of(request.scope).address
    if noting is not None and visit not in _noted:
        if len(_noted) >= MOST_NOTED:
            _noted.clear()
        _noted.add(visit)
        note = CodedText(code=TextCode.SHARE_OPENED, other=link.name, detail=visit[1] or "")
        await note_if_there(noting, session, note)
    return SharedSession(
        name=view.name,
        state=view.state,
        model=view.model,
        created=view.created,
        updated=view.updated,
        head=view.head,
        turns=view.turns,
        expires=link.expires,
    )


@get("/shared/events", opt=documented(READ_ERRORS, gives=EventPage))
async def shared_events(
    request: Asking, hub: Hub, after: After = 0, limit: Limit = 500
) -> Response[bytes]:
    """The history of the session of a read-only link, a page at a time.

    Events about access to it are left out. Ask on with `next`, and not with the last number.
    """
    session = session_of_link(_link(request.scope))
    view = await hub.session(session)
    events = await hub.events(session, after=after, limit=limit)
    shown = [each for each in events if not _is_about_access(each.event)]
    following = events[-1].seq if events and events[-1].seq < view.head else None
    return Response(await page(hub.epoch, shown, following), media_type="application/json")


@post(
    "/push/answer",
    status_code=200,
    request_max_body_size=ANSWER_LIMIT,
    opt=documented((*LOGIN_ERRORS, "conflict", "not_found"), takes=NotificationAnswer, open=True),
)
async def answer_notification(
    request: Asking, state: State, hub: Hub, access: Doors, pushing: Pusher
) -> Outcome:
    """Answer the question of a notification, for its service worker: allow it once, or deny it.

    Both the browser's cookie and the notification's token are required. The token is bound to the
    question and to the login that subscribed, and works once.
    """
    del state
    if pushing is None:
        raise Refused("not_found", "this server sends no push messages")
    given = await body_of(request, NotificationAnswer)
    people = {person.grant: person for person in access.browsers(cast("Scope", request.scope))}
    allow = given.answer == "allow"
    redeemed = await pushing.redeem(given.token, frozenset(people), allow=allow)
    if redeemed is None:
        raise Refused("bad_code", "answer in Quarterdeck: this notification cannot answer any more")
    grant, ask = redeemed
    answer = AllowAnswer() if allow else DenyAnswer(message="Denied from a notification.")
    return await do(hub, people[grant], AnswerAsk(ask=ask, answer=answer))


def _is_about_access(event: Event) -> bool:
    """Who else has a link, and from where it was opened, is nothing for those who have one."""
    return isinstance(event, Noted) and event.level == ACCESS


def _link(scope: Mapping[str, object]) -> Grant:
    link = scope.get("quarterdeck.link")
    assert isinstance(link, Grant)
    return link


HANDLERS = [shared_session, shared_events, answer_notification]
