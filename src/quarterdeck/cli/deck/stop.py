"""`quarterdeck stop`: ends the agents and the runners of this machine, and the hub.

Owns the order: the agents first, by their runner, while the hub can still be told how they ended.
Each process is known by a lock that it holds, never by a number alone.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from quarterdeck.cli.deck.output import print_line
from quarterdeck.cli.deck.place import FAR_RUNNER, RUNNER, agents_in, living_hub
from quarterdeck.cli.deck.target import Target, connect, find_session
from quarterdeck.cli.exits import Exit
from quarterdeck.cli.text import count
from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.http.home import data_home
from quarterdeck.runner.home import living_runner

GENTLY_SECONDS = 20.0
"""A CLI has a few seconds to end its shells and to write down its last words."""
HURRY_SECONDS = 10.0


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
        if living_runner(folder) is None:
            continue
        agents = len(agents_in(folder))
        ended = end_runner(folder)
        failed |= not ended
        what = f"{count(agents, 'agent')} and the runner" if agents else "The runner"
        done.append(f"{what} {'ended' if ended else 'would not end'}.")
    if (hub := living_hub(home)) is not None:
        ended = _end(hub.pid, lambda: living_hub(home) is None)
        failed |= not ended
        done.append(f"The hub at {hub.address} {'ended' if ended else 'would not end'}.")
    elif hub_only:
        done.append("No hub runs here.")
    print_line("\n".join(done or ["Nothing runs here."]))
    return Exit.FAILED if failed else Exit.SUCCESS


def end_runner(folder: Path) -> bool:
    """End the runner of a folder with all its agents; False if it would not. Blocks."""
    living = living_runner(folder)
    return living is None or _end(living.pid, lambda: living_runner(folder) is None)


def _end(pid: int, gone: Callable[[], bool]) -> bool:
    """Ask it to end, and after a while again: then it hurries."""
    for seconds in (GENTLY_SECONDS, HURRY_SECONDS):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if gone():
                return True
            time.sleep(0.05)
    return gone()
