"""The whole front as one ASGI app: the gate, the API, the stream, the pages.

`make_app` puts the parts together and is the only way in. It is given the hub and the endpoints of
runners and CLIs as ASGI apps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import TypeVar, cast

from litestar import Litestar, Request, Response, Router
from litestar.datastructures import State
from litestar.di import Provide
from litestar.exceptions import HTTPException, ValidationException
from litestar.openapi.config import OpenAPIConfig
from litestar.plugins import OpenAPISchemaPlugin, PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin
from litestar.types import Scope as RouteScope
from msgspec import Struct

from quarterdeck import __version__
from quarterdeck.fronts.http.access import Access
from quarterdeck.fronts.http.asgi import ASGIApp, Receive, Scope, Send, path_of
from quarterdeck.fronts.http.connection import Pace
from quarterdeck.fronts.http.gate import SHARED_PATHS, Gate
from quarterdeck.fronts.http.large_bodies import SMALL_BODY
from quarterdeck.fronts.http.openapi import StructNames, document
from quarterdeck.fronts.http.pages import Pages
from quarterdeck.fronts.http.people import PeopleStore
from quarterdeck.fronts.http.problems import MEDIA_TYPE, Refused, encode, problem_of
from quarterdeck.fronts.http.reach import Reaching
from quarterdeck.fronts.http.relay_access import RelayAccess
from quarterdeck.fronts.http.request_limits import RequestLimits
from quarterdeck.fronts.http.request_metrics import MetricsPage, MetricsSource, Requests
from quarterdeck.fronts.http.routes import (
    access as access_routes,
)
from quarterdeck.fronts.http.routes import (
    asks as asks_routes,
)
from quarterdeck.fronts.http.routes import (
    commands,
    devices,
    history,
    loops,
    people,
    policy,
    push,
    schedules,
    sessions,
    share_links,
    usage,
    worktrees,
)
from quarterdeck.fronts.http.routes import (
    hub as hub_routes,
)
from quarterdeck.fronts.http.routes import (
    reviews as reviews_routes,
)
from quarterdeck.fronts.http.routes.audit_notes import Noting
from quarterdeck.fronts.http.routes.handlers import require_read
from quarterdeck.fronts.http.routes.loops import LoopService
from quarterdeck.fronts.http.routes.push import Pushing
from quarterdeck.fronts.http.routes.schedules import Scheduling
from quarterdeck.fronts.http.stream import StreamEndpoint
from quarterdeck.history.service import HistoryService
from quarterdeck.hub.api import (
    CliAccess,
    CliSessions,
    HubApi,
    ReviewService,
    WorktreeService,
    act_as,
)
from quarterdeck.protocol.problems import Problem, of_status
from quarterdeck.protocol.shapes import HubAlarm

_T = TypeVar("_T")
SERVICES = "quarterdeck.services"
"""Where a scope has the services of its app."""


def make_app(
    hub: HubApi,
    access: Access,
    *,
    runner_endpoint: ASGIApp | None = None,
    program_endpoint: ASGIApp | None = None,
    cli_endpoint: ASGIApp | None = None,
    static: Path | None = None,
    pace: Pace | None = None,
    metrics: MetricsSource | None = None,
    requests: Requests | None = None,
    worktree_service: WorktreeService | None = None,
    reviews: ReviewService | None = None,
    history_service: HistoryService | None = None,
    pushing: Pushing | None = None,
    loop_service: LoopService | None = None,
    limits: RequestLimits | None = None,
    relay: RelayAccess | None = None,
    scheduling: Scheduling | None = None,
    cli_access: CliAccess | None = None,
    inbound: ASGIApp | None = None,
    mcp: ASGIApp | None = None,
    more_pages: Mapping[str, tuple[bytes, str]] | None = None,
    people_store: PeopleStore | None = None,
    reaching: Reaching | None = None,
    alarming: Callable[[], tuple[HubAlarm, ...]] | None = None,
    noting: Noting | None = None,
    disk_sessions: CliSessions | None = None,
    peers: ASGIApp | None = None,
    failing: Callable[[], str | None] = lambda: None,
) -> ASGIApp:
    """The app. `static` is the folder of the built web app; without it there is a plain page.

    `runner_endpoint` serves `/runner`; `cli_endpoint` serves paths below `/v1/` and WebSockets at
    `/`. Both check their tokens themselves; see `Access.runner_named`. `metrics` makes the page at
    `/metrics`, and `requests` counts requests. Without a `worktree_service` the routes for
    projects, folders and worktrees answer 404, and without `reviews` those of a review. So do
    search, import and retention without a `history_service`, push without `pushing`, and loops
    without `loop_service`. `limits` is what one client may have under way. `relay` lets frontends
    in at `/ws`, and `mcp` agents at `/mcp`.
    `people_store` keeps preferences and the library, `reaching` knows how others reach the hub,
    `alarming` what is wrong between several hubs,
    `noting` writes into a session's audit log, `disk_sessions` looks at the disks of machines.
    `peers` serves other hubs on the same journal below `/hub/`, and checks their seals itself.
    `failing` gives a code while the hub can do nothing: `/healthz` then answers 503.
    `more_pages` are further files, by path: content and type. Nobody needs a login for them.
    """
    services = Services(
        hub=hub,
        access=access,
        worktree_service=worktree_service,
        reviews=reviews,
        history_service=history_service,
        pushing=pushing,
        loop_service=loop_service,
        scheduling=scheduling,
        cli_access=cli_access,
        people=people_store,
        reaching=reaching,
        alarming=alarming,
        noting=noting,
        disk_sessions=disk_sessions,
        failing=failing,
    )
    switch = _Switch(cast("ASGIApp", _api()), Pages(openapi_document, static, more_pages), services)
    stream = StreamEndpoint(hub, access, pace)
    if people_store is not None:
        people_store.listen(stream.notify_person)
    requests = requests or Requests()
    requests.count_streams = stream.clients
    return Gate(
        access,
        switch,
        stream=stream,
        runner=runner_endpoint,
        program=program_endpoint,
        cli=cli_endpoint,
        metrics=None if metrics is None else MetricsPage(metrics),
        requests=requests,
        limits=limits,
        relay=relay,
        inbound=inbound,
        mcp=mcp,
        peers=peers,
    )


class Services(Struct, frozen=True, kw_only=True):
    """The objects that the routes of one app use."""

    hub: HubApi
    access: Access
    worktree_service: WorktreeService | None
    reviews: ReviewService | None
    history_service: HistoryService | None
    pushing: Pushing | None
    loop_service: LoopService | None
    scheduling: Scheduling | None
    cli_access: CliAccess | None = None
    people: PeopleStore | None = None
    reaching: Reaching | None = None
    alarming: Callable[[], tuple[HubAlarm, ...]] | None = None
    noting: Noting | None = None
    disk_sessions: CliSessions | None = None
    failing: Callable[[], str | None] = lambda: None


class _Switch:
    """To the API or to the pages, by the path alone. The API gets the services of this app."""

    def __init__(self, api: ASGIApp, pages: Pages, services: Services) -> None:
        self._api = api
        self._pages = pages
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif self._is_api(scope):
            scope[SERVICES] = self._services
            person = scope.get("user")
            with nullcontext() if person is None else act_as(person.role, person.name):
                await self._api(scope, receive, send)
        else:
            await self._pages(scope, send)

    @staticmethod
    def _is_api(scope: Scope) -> bool:
        path = path_of(scope)
        if path == "/login":
            return scope["method"] not in {"GET", "HEAD"}
        return path.startswith(("/api/", SHARED_PATHS)) or path in {"/healthz", "/push/answer"}


async def _live(receive: Receive, send: Send) -> None:
    """Start and stop. The framework has no part in it: one API may serve several apps at a time."""
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return


class _Api(Litestar):
    """The framework, with nothing loaded for libraries that no route uses."""

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        # The framework's own list has support for Pydantic in it, which takes as long to load as
        # the framework. A version that has no such list would load what it likes.
        return [*plugins, MsgspecDIPlugin()]


@cache
def _api() -> Litestar:
    """The API, which keeps nothing of an app: making it costs more than a hundred requests."""
    return _make_api()


def _make_api(
    openapi: OpenAPIConfig | None = None, plugins: Sequence[OpenAPISchemaPlugin] = ()
) -> Litestar:
    api = Router(
        path="/api",
        route_handlers=[
            *commands.HANDLERS,
            *sessions.HANDLERS,
            *hub_routes.HANDLERS,
            *asks_routes.HANDLERS,
            *access_routes.HANDLERS,
            *policy.HANDLERS,
            *push.HANDLERS,
            *schedules.HANDLERS,
            *loops.HANDLERS,
            *usage.HANDLERS,
            *worktrees.HANDLERS,
            *reviews_routes.HANDLERS,
            *history.HANDLERS,
            *people.HANDLERS,
            *devices.HANDLERS,
        ],
        guards=[require_read],
    )
    return _Api(
        route_handlers=[api, *hub_routes.OPEN_HANDLERS, *share_links.HANDLERS],
        dependencies={
            "hub": _provide(lambda services: services.hub),
            "access": _provide(lambda services: services.access),
            "history_service": _provide(lambda services: services.history_service),
            "pushing": _provide(lambda services: services.pushing),
            "scheduling": _provide(lambda services: services.scheduling),
            "cli_access": _provide(lambda services: services.cli_access),
            "people": _provide(lambda services: services.people),
            "reaching": _provide(lambda services: services.reaching),
            "alarming": _provide(lambda services: services.alarming),
            "noting": _provide(lambda services: services.noting),
            "disk_sessions": _provide(lambda services: services.disk_sessions),
            "failing": _provide(lambda services: services.failing),
            "loops": _provide(lambda services: services.loop_service),
            "worktree_service": _provide(lambda services: _there(services.worktree_service)),
            "reviews": _provide(lambda services: _there(services.reviews)),
        },
        exception_handlers={Exception: _answer},
        request_max_body_size=SMALL_BODY,
        openapi_config=openapi,
        plugins=plugins,
        logging_config=None,
    )


@cache
def openapi_document() -> bytes:
    """The OpenAPI document, as JSON. It is the same for every app, which serves it as a page."""
    names = StructNames()
    config = OpenAPIConfig(
        title="Quarterdeck",
        version=__version__,
        description="Run many Claude Code agents, and steer them from anywhere.",
        render_plugins=[],
        use_handler_docstrings=True,
    )
    return document(_make_api(config, [names]), names)


def _provide(choose: Callable[[Services], object]) -> Provide:
    def provide(scope: RouteScope) -> object:
        return choose(cast("Scope", scope)[SERVICES])

    return Provide(provide, sync_to_thread=False)


def _there(service: _T | None) -> _T:
    if service is None:
        raise Refused("not_found", "this server has no projects and no machines")
    return service


def _answer(request: Request[object, object, State], error: Exception) -> Response[bytes]:
    """The boundary of the API: whatever was raised becomes a problem document."""
    headers: dict[str, str] = {}
    found: Problem
    match error:
        case ValidationException():
            found = of_status(400, _validation(error))
        case HTTPException(status_code=413):
            most = request.route_handler.resolve_request_max_body_size()
            found = of_status(413, f"the body has at most {most} bytes here")
        case HTTPException():
            found = of_status(error.status_code, error.detail)
            headers = {**(error.headers or {})}
        case _:
            found = problem_of(error)
    if isinstance(error, Refused):
        headers = {name.decode(): value.decode() for name, value in error.headers}
    return Response(encode(found), status_code=found.status, media_type=MEDIA_TYPE, headers=headers)


def _validation(error: ValidationException) -> str:
    """The errors of the parameters, in one line."""
    if not isinstance(error.extra, list):
        return error.detail
    documented = (f"{entry.get('key', '?')}: {entry.get('message', '')}" for entry in error.extra)
    return "; ".join(documented) or error.detail
