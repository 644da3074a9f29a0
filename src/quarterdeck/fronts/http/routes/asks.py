"""The route of what an open question is about: the file that a call would replace."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import get
from litestar.params import PathParameter

from quarterdeck.domain.errors import Conflict, NotFound
from quarterdeck.fronts.http.openapi import documented
from quarterdeck.fronts.http.routes.handlers import Asking, Hub
from quarterdeck.fronts.http.routes.worktrees import MACHINE_ERRORS, Worktrees
from quarterdeck.protocol.events import AskOpened
from quarterdeck.protocol.machine_requests import SeenFile
from quarterdeck.protocol.roles import Right

AskId = Annotated[str, PathParameter(description="A question's id", max_length=256, min_length=1)]
_CHANGES = frozenset({"Write", "Edit"})
"""The tools that change a file, which their input names."""


class _Input(msgspec.Struct):
    file_path: str = ""


class _Request(msgspec.Struct):
    input: _Input = msgspec.field(default_factory=_Input)


@get("/asks/{ask_id:str}/file", opt=documented(MACHINE_ERRORS))
async def get_file_of_ask(
    ask_id: AskId, request: Asking, hub: Hub, worktree_service: Worktrees
) -> SeenFile:
    """What is in the file now that the call of an open question would change.

    Only a file below the session's folder is read. It may change until the call is answered.
    """
    request.user.need(Right.STEER)
    session = ask_id.rpartition(".")[0]
    found = await hub.asks(session=session, ended=True) if session else []
    opened = next((ask.opened for ask in found if ask.opened.ask == ask_id), None)
    if opened is None:
        raise NotFound("ask", ask_id)
    return await worktree_service.see_file(session, _path(opened))


def _path(opened: AskOpened) -> str:
    if opened.tool not in _CHANGES:
        raise Conflict("no_file", "the call does not change a file")
    try:
        path = msgspec.json.decode(opened.request, type=_Request).input.file_path
    except msgspec.DecodeError:
        path = ""
    if not path:
        raise Conflict("no_file", "the call names no file")
    return path


HANDLERS = [get_file_of_ask]
