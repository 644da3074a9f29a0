"""Loops as the API shows them, and what it takes to start one."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from quarterdeck.domain.structs import Value
from quarterdeck.loop.spec import EXIT_CODES, GOALS, LoopSpec, StopReason
from quarterdeck.loop.state import Host, LoopState
from quarterdeck.loop.store import Wanted
from quarterdeck.protocol.sessions import SessionSpec

LoopAction = Literal["pause", "resume", "stop"]
Condition = Literal["running", "paused", "waiting", "stopped", "cut_off"]
"""`waiting`: for the account's limit. `cut_off`: no process runs it, and it has not stopped."""


class LoopShape(Value, omit_defaults=False):
    """A loop, in a list."""

    loop: str
    title: str
    state: Condition
    reason: StopReason | None
    """Why it stopped."""
    text: str
    """The reason as a sentence."""
    done: bool
    exit_code: int | None
    host: Host
    by: str
    created: float
    """In seconds since 1970."""
    directory: str
    worktree: str | None
    turns: int
    most_turns: int
    cost_usd: float
    waiting_until: float | None
    last: str
    """The end of the last answer."""


class LoopList(Value):
    """Loops, newest first."""

    loops: tuple[LoopShape, ...]


class LoopText(Value, omit_defaults=False):
    """A text about a loop, as Markdown."""

    text: str


class NewLoop(Value, forbid_unknown_fields=True):
    """A loop to start in the hub."""

    spec: LoopSpec
    session: SessionSpec
    """How the sessions of its turns are started. Name, folder and worktree are the loop's."""
    loop: Annotated[str, Meta(min_length=26, max_length=26)] | None = None
    """An id of the caller's choice makes the call idempotent."""


def request_of(action: LoopAction, by: str) -> Wanted:
    """An action as what a person wants."""
    return Wanted(paused=action == "pause", stop=action == "stop", by=by)


def shape_of(state: LoopState, *, runs: bool) -> LoopShape:
    """A loop as the API shows it."""
    stopped = state.stopped
    condition: Condition = "running"
    if stopped is not None:
        condition = "stopped"
    elif not runs:
        condition = "cut_off"
    elif state.paused:
        condition = "paused"
    elif state.waiting_until is not None:
        condition = "waiting"
    return LoopShape(
        loop=state.id,
        title=state.spec.title,
        state=condition,
        reason=None if stopped is None else stopped.reason,
        text="" if stopped is None else stopped.text,
        done=stopped is not None and stopped.reason in GOALS,
        exit_code=None if stopped is None else EXIT_CODES[stopped.reason],
        host=state.host,
        by=state.by,
        created=state.created,
        directory=state.directory or state.spec.directory,
        worktree=state.spec.worktree,
        turns=len(state.turns),
        most_turns=state.spec.stops.turns,
        cost_usd=state.cost_usd,
        waiting_until=state.waiting_until,
        last=state.turns[-1].outcome.text[-500:] if state.turns else "",
    )
