"""The routes of loops: list, start, report, pause, resume, stop.

Owns the words of the routes, and `LoopService`: what they need of the service that runs loops.
"""

from __future__ import annotations

from typing import Annotated, Literal, Protocol

from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter, SkipValidation

from quarterdeck.fronts.http.openapi import COMMAND_ERRORS, READ_ERRORS, documented
from quarterdeck.fronts.http.problems import Refused
from quarterdeck.fronts.http.routes.handlers import Asking, body_of
from quarterdeck.loop.report import LoopReport, as_markdown, pull_request_text, report_of
from quarterdeck.loop.shapes import LoopAction, LoopList, LoopShape, LoopText, NewLoop
from quarterdeck.loop.state import LoopState
from quarterdeck.protocol.roles import Right
from quarterdeck.runtime.off_loop import large_turn, off_loop


class LoopService(Protocol):
    """Runs loops, and knows those of this machine."""

    async def list(self) -> tuple[LoopShape, ...]:
        """All loops, newest first."""

    async def load(self, loop: str) -> LoopState:
        """One loop. Raises `NotFound`."""

    async def start(self, new: NewLoop, by: str) -> LoopShape:
        """Start a loop. Raises `UsageError`."""

    async def control(self, loop: str, action: LoopAction, by: str) -> LoopShape:
        """Pause, resume or stop a loop. Raises `NotFound` and `Conflict`."""


Loops = NamedDependency[SkipValidation[LoopService | None]]
LoopId = Annotated[str, PathParameter(description="A loop's id", max_length=128, min_length=1)]
TextForm = Literal["report", "pull_request"]


@get("/loops", opt=documented(READ_ERRORS))
async def list_loops(loops: Loops) -> LoopList:
    """All loops of this machine, newest first."""
    return LoopList(loops=await _there(loops).list())


@post("/loops", status_code=200, opt=documented(COMMAND_ERRORS, takes=NewLoop))
async def start_loop(request: Asking, loops: Loops) -> LoopShape:
    """Start a loop in the hub.

    Its commands run as the hub's user, on the hub's machine and outside of any sandbox.
    """
    person = request.user
    person.need(Right.MANAGE)
    return await _there(loops).start(await body_of(request, NewLoop), person.name)


@get("/loops/{loop_id:str}", opt=documented(READ_ERRORS))
async def get_loop(loop_id: LoopId, loops: Loops) -> LoopReport:
    """The report of a loop, also of one that still runs."""
    state = await _there(loops).load(loop_id)
    await large_turn(_size(state))  # it is encoded when this returns
    return report_of(state)


@get("/loops/{loop_id:str}/text", opt=documented(READ_ERRORS))
async def get_loop_text(
    loop_id: LoopId,
    loops: Loops,
    form: Annotated[TextForm, QueryParameter(description="Which text")] = "report",
) -> LoopText:
    """The report of a loop as Markdown, or a text for a pull request."""
    state = await _there(loops).load(loop_id)
    write = as_markdown if form == "report" else pull_request_text
    text = await off_loop(_size(state), write, state)
    await large_turn(len(text))
    return LoopText(text=text)


@post("/loops/{loop_id:str}/pause", status_code=200, opt=documented(COMMAND_ERRORS))
async def pause_loop(request: Asking, loop_id: LoopId, loops: Loops) -> LoopShape:
    """Pause a loop: the turn that runs ends, and no other begins."""
    return await _control(request, loop_id, loops, "pause")


@post("/loops/{loop_id:str}/resume", status_code=200, opt=documented(COMMAND_ERRORS))
async def resume_loop(request: Asking, loop_id: LoopId, loops: Loops) -> LoopShape:
    """Let a paused loop go on."""
    return await _control(request, loop_id, loops, "resume")


@post("/loops/{loop_id:str}/stop", status_code=200, opt=documented(COMMAND_ERRORS))
async def stop_loop(request: Asking, loop_id: LoopId, loops: Loops) -> LoopShape:
    """Stop a loop, and interrupt the turn that runs."""
    return await _control(request, loop_id, loops, "stop")


async def _control(
    request: Asking, loop: str, loops: LoopService | None, action: LoopAction
) -> LoopShape:
    person = request.user
    person.need(Right.STEER)
    return await _there(loops).control(loop, action, person.name)


def _size(state: LoopState) -> int:
    """About how many characters a report has: a loop of ten thousand turns has megabytes."""
    return sum(
        len(turn.outcome.text) + (len(turn.check.output) if turn.check else 0)
        for turn in state.turns
    )


def _there(loops: LoopService | None) -> LoopService:
    if loops is None:
        raise Refused("not_found", "this server runs no loops")
    return loops


HANDLERS = [
    list_loops,
    start_loop,
    get_loop,
    get_loop_text,
    pause_loop,
    resume_loop,
    stop_loop,
]
