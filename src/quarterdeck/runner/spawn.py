"""Starting a runner that outlives whoever starts it.

Above it stands the hub's command; below it is `__main__` in a process of its own. It waits only
until that process has its number, not until it is of use.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from quarterdeck.domain.errors import LaunchError
from quarterdeck.runner.home import live_runner

SECONDS = 30.0
"""A cold start of Python on a busy machine, with all that is imported."""

KILLED_SECONDS = 0.2

CRASH_LOG = "runner.err"
"""What the interpreter itself has to say; the log is the runner's own."""


def spawn_runner(
    home: Path,
    hub_url: str,
    token_file: Path,
    *,
    machine: str | None = None,
    options: tuple[str, ...] = (),
) -> int:
    """Start a runner in a session of its own; gives its pid. Blocks: call it from a thread.

    Where one lives in `home` already, its pid is given and nothing is started. The runner is no
    child of ours: it leaves no zombie, and a signal to our group does not reach it. `options` are
    more of its command line.
    """
    if (state := live_runner(home)) is not None:
        # One that was killed just now holds its lock until its last thread is gone.
        time.sleep(KILLED_SECONDS)
        if live_runner(home) == state:
            return state.pid
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = [sys.executable, "-P", "-m", "quarterdeck.runner", "--detach"]
    command += ["--home", str(home.resolve()), "--hub", hub_url]
    command += ["--token-file", str(token_file.resolve())]
    if machine is not None:
        command += ["--machine", machine]
    command += options
    errors = os.open(home / CRASH_LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd="/",
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LaunchError(f"the runner could not be started: {error}") from error
    finally:
        os.close(errors)
    if done.returncode != 0 or not done.stdout.strip().isdigit():
        words = (home / CRASH_LOG).read_text(errors="replace").strip()
        raise LaunchError(f"the runner could not be started: {words or done.returncode}")
    return int(done.stdout)
