"""Starts that are loops: make one, and see what became of it.

Like `sessions`, for jobs with a `loop`. The hub's loops are given as `Looping`. What a request
brings is a part of the task only; commands and options are those of the job.
"""

from __future__ import annotations

from typing import Protocol

from quarterdeck.domain.errors import Conflict, NotFound
from quarterdeck.fronts.schedules import decide
from quarterdeck.fronts.schedules.sessions import Ending, session_id, short
from quarterdeck.loop.shapes import LoopShape, NewLoop
from quarterdeck.loop.spec import GOALS, LoopSpec, Review, Stops
from quarterdeck.loop.state import LoopState
from quarterdeck.protocol.schedules import Firing, Job, LoopJob
from quarterdeck.protocol.sessions import SessionSpec

ASK_SECONDS = 300.0
"""A question of a loop that nobody answers is denied after so long, where the job says nothing."""


class Looping(Protocol):
    """The loops of the hub."""

    async def start(self, new: NewLoop, by: str) -> LoopShape:
        """Start a loop, once for an id. Raises `UsageError`, `Conflict`."""

    async def load(self, loop: str) -> LoopState:
        """One loop. Raises `NotFound`."""


def loop_of(job: Job, wanted: LoopJob, spec: SessionSpec, prompt: str, loop: str) -> NewLoop:
    """The loop of a start. `spec` has the defaults of the project. Raises `UsageError`."""
    stops = Stops(
        phrase=wanted.phrase,
        command=wanted.command,
        turns=wanted.turns,
        no_progress=wanted.no_progress,
        seconds=None if job.max_minutes is None else job.max_minutes * 60,
        budget_usd=job.budget_usd,
    )
    task = LoopSpec(
        task=prompt,
        directory=spec.directory,
        name=spec.name,
        plan=wanted.plan,
        review=Review() if wanted.review else None,
        worktree=spec.worktree,
        commit=wanted.commit,
        ask_timeout=job.ask_timeout or ASK_SECONDS,
        stops=stops,
    )
    return NewLoop(spec=task, session=spec, loop=loop)


async def start_loop(
    loops: Looping | None,
    job: Job,
    wanted: LoopJob,
    spec: SessionSpec,
    firing: Firing,
    prompt: str,
    owner: str,
) -> str:
    """Start the loop of a start, or find the one that there is; gives its id."""
    if loops is None:
        raise Conflict("no_loops", "this hub has no loops")
    new = loop_of(job, wanted, spec, prompt, session_id(firing))
    return (await loops.start(new, owner)).loop


async def loop_ending(loops: Looping | None, loop: str) -> Ending | None:
    """How a loop ended; None while it goes on."""
    if loops is None:
        return Ending(reason=decide.DELETED)
    try:
        state = await loops.load(loop)
    except NotFound:
        return Ending(reason=decide.DELETED)
    if state.stopped is None:
        return None
    reason = "" if state.stopped.reason in GOALS else f"loop_{state.stopped.reason.value}"
    return Ending(reason=reason, detail=short(state.stopped.text), cost_usd=state.cost_usd)
