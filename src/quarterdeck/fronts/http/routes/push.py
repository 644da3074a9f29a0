"""The routes of Web Push: a browser asks for notifications, also with no page open.

Owns the words of the routes, and `Pushing`: what they need of the sender. It knows nothing of
keys and of push services.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Literal, Protocol

from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.params import SkipValidation
from msgspec import Meta

from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http.openapi import COMMAND_ERRORS, READ_ERRORS, documented
from quarterdeck.fronts.http.problems import Refused
from quarterdeck.fronts.http.routes.handlers import Asking, body_of
from quarterdeck.protocol.roles import Right
from quarterdeck.protocol.shapes import Body

Endpoint = Annotated[str, Meta(min_length=1, max_length=2048)]
Key = Annotated[str, Meta(min_length=1, max_length=128)]


class Pushing(Protocol):
    """The store of subscriptions, and the sender."""

    async def public_key(self) -> str:
        """The key that a browser subscribes with, in base 64 as web addresses have it."""

    async def subscribe(
        self,
        grant: str,
        endpoint: str,
        p256dh: str,
        auth: str,
        *,
        kinds: Collection[str],
        buttons: bool,
    ) -> None:
        """Tell a browser while its grant is valid. Raises `UsageError` and `Conflict`."""

    async def unsubscribe(self, endpoint: str) -> None:
        """Remove a subscription. An unknown one is ignored."""

    async def redeem(
        self, token: str, grants: Collection[str], *, allow: bool
    ) -> tuple[str, str] | None:
        """The grant and the question that a notification's token is for: once, or None."""


Pusher = NamedDependency[SkipValidation[Pushing | None]]


class BrowserKeys(Body):
    """What a message for the browser is sealed with, in base 64 as web addresses have it."""

    p256dh: Key
    auth: Key


class NewSubscription(Body):
    """A browser's subscription, as its `PushSubscription` has it."""

    endpoint: Endpoint
    keys: BrowserKeys
    kinds: Annotated[
        tuple[Literal["question", "finished", "failed", "budget"], ...], Meta(max_length=4)
    ] = ("question",)
    """The kinds of events that the browser is notified of."""
    buttons: bool = False
    """Permission requests get buttons that deny them, and allow once what is shown completely.
    A person who sees the notification can press them, also on a locked screen."""


class OldSubscription(Body):
    """A subscription that ends."""

    endpoint: Endpoint


class PushKey(Value, omit_defaults=False):
    """The hub's public key, in base 64 as web addresses have it."""

    key: str


@get("/push", opt=documented(READ_ERRORS))
async def push_key(pushing: Pusher) -> PushKey:
    """The key that a browser subscribes with (`applicationServerKey`)."""
    return PushKey(key=await _there(pushing).public_key())


@post("/push/subscriptions", status_code=200, opt=documented(COMMAND_ERRORS, takes=NewSubscription))
async def subscribe(request: Asking, pushing: Pusher) -> PushKey:
    """Tell a browser of questions, or of other kinds of events, while your access is valid.

    Again with the same endpoint replaces the former choice. Gives the key that it must have been
    made with.
    """
    there = _there(pushing)
    new = await body_of(request, NewSubscription)
    await there.subscribe(
        request.user.grant,
        new.endpoint,
        new.keys.p256dh,
        new.keys.auth,
        kinds=new.kinds,
        buttons=new.buttons and request.user.may(Right.STEER),
    )
    return PushKey(key=await there.public_key())


@delete(
    "/push/subscriptions", status_code=200, opt=documented(COMMAND_ERRORS, takes=OldSubscription)
)
async def unsubscribe(request: Asking, pushing: Pusher) -> PushKey:
    """Unsubscribe a browser by its endpoint, which is secret."""
    there = _there(pushing)
    old = await body_of(request, OldSubscription)
    await there.unsubscribe(old.endpoint)
    return PushKey(key=await there.public_key())


def _there(pushing: Pushing | None) -> Pushing:
    if pushing is None:
        raise Refused("not_found", "this server sends no push messages")
    return pushing


HANDLERS = [push_key, subscribe, unsubscribe]
