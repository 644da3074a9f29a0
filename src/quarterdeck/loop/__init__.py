"""Loops: an agent works on a task, turn by turn, until it is done or a limit is reached.

    state = new_loop(LoopSpec(task="…", directory="/work", stops=Stops(command="make test")))
    state = await run_loop(state, AgentWorker(Options()), LoopStore(data_home()))

`decide` is the pure core; `runner` carries out its steps. A worker runs the turns: `AgentWorker`
without a hub, `HubWorker` with sessions of a hub.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quarterdeck.later import load_later

if TYPE_CHECKING:
    from quarterdeck.loop.agent_worker import AgentWorker
    from quarterdeck.loop.hub_worker import HubWorker
    from quarterdeck.loop.report import LoopReport, as_markdown, pull_request_text, report_of
    from quarterdeck.loop.runner import new_loop, reopen, run_loop
    from quarterdeck.loop.spec import EXIT_CODES, GOALS, LoopSpec, Review, StopReason, Stops
    from quarterdeck.loop.state import LoopState
    from quarterdeck.loop.store import LoopStore, Wanted
    from quarterdeck.loop.worker import Worker

__all__ = [
    "EXIT_CODES",
    "GOALS",
    "AgentWorker",
    "HubWorker",
    "LoopReport",
    "LoopSpec",
    "LoopState",
    "LoopStore",
    "Review",
    "StopReason",
    "Stops",
    "Wanted",
    "Worker",
    "as_markdown",
    "new_loop",
    "pull_request_text",
    "reopen",
    "report_of",
    "run_loop",
]

__getattr__ = load_later(
    __name__,
    {
        "agent_worker": ("AgentWorker",),
        "hub_worker": ("HubWorker",),
        "report": ("LoopReport", "as_markdown", "pull_request_text", "report_of"),
        "runner": ("new_loop", "reopen", "run_loop"),
        "spec": ("EXIT_CODES", "GOALS", "LoopSpec", "Review", "StopReason", "Stops"),
        "state": ("LoopState",),
        "store": ("LoopStore", "Wanted"),
        "worker": ("Worker",),
    },
)
