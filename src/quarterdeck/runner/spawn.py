"""Starting a runner that outlives its starter.

The hub's command is above; `__main__` is below, in a process of its own. It waits only until that
process has its pid, not until it is ready.
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
"""A cold start of Python on a busy machine, with all imports."""

KILLED_SECONDS = 0.2

CRASH_LOG = "runner.err"
"""Errors of the interpreter itself; the runner has its own log."""


def spawn_runner(
    home: Path,
    hub_url: str,
    token_file: Path,
    *,
    machine: str | None = None,
    options: tuple[str, ...] = (),
) -> int:
    """Start a runner in a session of its own; returns its pid. Blocks: call it from a thread.

    If a runner uses `home` already, its pid is returned and nothing is started. The runner is no
    child of this process: it leaves no zombie, and a signal to our process group does not reach it.
    `options` are added to its command line.
    """
    if (state := live_runner(home)) is not None:
        # A runner that was just killed holds its lock until its last thread has ended.
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
        raise LaunchError(f"cannot start the runner: {error}") from error
    finally:
        os.close(errors)
    if done.returncode != 0 or not done.stdout.strip().isdigit():
        words = (home / CRASH_LOG).read_text(errors="replace").strip()
        raise LaunchError(f"cannot start the runner: {words or done.returncode}")
    return int(done.stdout)
