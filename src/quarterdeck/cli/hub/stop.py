"""`quarterdeck stop`: ends the agents and the runners of this machine, and the hub.

Owns the order: the agents first, by their runner, while the hub can still be told how they ended.
Each process is known by a lock that it holds, never by a number alone.
"""

from __future__ import annotations

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.output import print_line
from quarterdeck.cli.hub.target import Target, connect, find_session
from quarterdeck.cli.terminal.text import count
from quarterdeck.domain.errors import UsageError
from quarterdeck.runner.home import live_runner
from quarterdeck.runtime.data_dir import data_home
from quarterdeck.service.local_hub import (
    FAR_RUNNER,
    RUNNER,
    agents_in,
    end_process,
    end_runner,
    live_hub,
)


def run_stop(sessions: list[str], target: Target, *, hub_only: bool) -> int:
    """End these sessions' agents; or everything."""
    if sessions:
        client = connect(target)
        for session in [find_session(client, given) for given in sessions]:
            client.stop(session)
        return Exit.SUCCESS
    if not target.is_here:
        raise UsageError("all that runs elsewhere is ended there; name the sessions to end")
    home = data_home(create=False)
    done: list[str] = []
    failed = False
    for folder in () if hub_only else (home / RUNNER, home / FAR_RUNNER):
        if live_runner(folder) is None:
            continue
        agents = len(agents_in(folder))
        ended = end_runner(folder)
        failed |= not ended
        what = f"{count(agents, 'agent')} and the runner" if agents else "The runner"
        done.append(f"{what} {'ended' if ended else 'would not end'}.")
    if (hub := live_hub(home)) is not None:
        ended = end_process(hub.pid, lambda: live_hub(home) is None)
        failed |= not ended
        done.append(f"The hub at {hub.address} {'ended' if ended else 'would not end'}.")
    elif hub_only:
        done.append("No hub runs here.")
    print_line("\n".join(done or ["Nothing runs here."]))
    return Exit.FAILED if failed else Exit.SUCCESS
