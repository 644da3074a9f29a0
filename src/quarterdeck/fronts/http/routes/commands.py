"""The routes of commands, made from the table of commands.

A path has the ids, the body has the other members, and the login gives `by`. `PATCH` of a session
makes several commands and is with the routes of sessions.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping

from litestar import route
from litestar.handlers import HTTPRouteHandler
from msgspec import Struct

from quarterdeck.fronts.http.large_bodies import LARGE_BODY, LARGE_MEMBERS, SMALL_BODY
from quarterdeck.fronts.http.openapi import COMMAND_ERRORS, documented
from quarterdeck.fronts.http.routes.handlers import (
    AskId,
    Asking,
    Hub,
    PromptId,
    SessionId,
    body_of,
    do,
)
from quarterdeck.hub.api import HubApi
from quarterdeck.protocol.command_table import TABLE, CommandRow
from quarterdeck.protocol.commands import Outcome

_PARAMETER = re.compile(r"{(\w+)}")


def command_route(row: CommandRow) -> HTTPRouteHandler:
    """The route of a command."""
    handle = _handlers(row)[row.in_path]
    handle.__name__ = re.sub(r"(?<!^)(?=[A-Z])", "_", row.command.__name__).lower()
    handle.__doc__ = row.command.__doc__
    return route(
        _PARAMETER.sub(r"{\1_id:str}", row.path),
        http_method=[row.method],
        status_code=200,
        request_max_body_size=LARGE_BODY if row.command in LARGE_MEMBERS else SMALL_BODY,
        opt=documented(COMMAND_ERRORS, takes=row.body, body_optional=row.body_optional),
    )(handle)


def _handlers(row: CommandRow) -> Mapping[tuple[str, ...], Callable[..., Awaitable[Outcome]]]:
    """A handler for each way in which a path names its parts; the framework reads signatures."""

    async def plain(request: Asking, hub: Hub) -> Outcome:
        return await _submit(row, request, hub, {})

    async def of_session(session_id: SessionId, request: Asking, hub: Hub) -> Outcome:
        return await _submit(row, request, hub, {"session": session_id})

    async def of_prompt(
        session_id: SessionId, prompt_id: PromptId, request: Asking, hub: Hub
    ) -> Outcome:
        return await _submit(row, request, hub, {"session": session_id, "prompt": prompt_id})

    async def of_ask(ask_id: AskId, request: Asking, hub: Hub) -> Outcome:
        return await _submit(row, request, hub, {"ask": ask_id})

    return {
        (): plain,
        ("session",): of_session,
        ("session", "prompt"): of_prompt,
        ("ask",): of_ask,
    }


async def _submit(
    row: CommandRow, request: Asking, hub: HubApi, path: Mapping[str, str]
) -> Outcome:
    request.user.need(row.right)  # before anything of the body is read
    body: Struct | None = None
    if row.body is not None:
        empty = row.body() if row.body_optional else None
        large = LARGE_MEMBERS.get(row.command)
        body = await body_of(request, row.body, empty_is=empty, large_member=large)
    return await do(hub, request.user, row.parse(path, body))


HANDLERS = [command_route(row) for row in TABLE if not row.shared]
