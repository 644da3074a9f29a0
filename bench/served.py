"""The whole hub in a process of its own, as people run it: `quarterdeck serve` and its runner.

Owns the data folder, the processes and their end. Above are the rows that need a hub; below is the
command line of Quarterdeck, and `client`, which talks to it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from bench.client import Client
from quarterdeck.runner import live_runner
from quarterdeck.service.local_hub import RUNNER, end_runner, live_hub, own_token

AGENT = Path(__file__).with_name("agent.py")
START_SECONDS = 60.0
# In a sandbox the agent would not see the files that it sends; `bench sandbox` measures it.
SETTINGS = '[sandbox]\nmode = "off"\n[runner]\nmax_agents = 2000\nmemory_floor_mb = 0\n'
TICKS = os.sysconf("SC_CLK_TCK")


class Served:
    """A hub that serves, and what is known of its processes."""

    def __init__(self, home: Path, work: Path, process: subprocess.Popen[bytes]) -> None:
        self.home = home
        self.work = work
        self.pid = process.pid
        self.process = process
        state = live_hub(home)
        if state is None:
            raise RuntimeError(f"the hub in {home} does not serve")
        self.address = state.address
        self.token = own_token(home)

    @property
    def runner(self) -> int:
        """The process of its runner."""
        state = live_runner(self.home / RUNNER)
        if state is None:
            raise RuntimeError(f"no runner lives in {self.home}")
        return state.pid

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """A client of its stream."""
        async with Client.connected(self.address, self.token) as client:
            yield client

    def spec(self, **more: object) -> dict[str, object]:
        """A session whose CLI is the agent of the benchmarks."""
        program = self.work / "claude"
        if not program.exists():
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "{AGENT}" "$@"\n')
            program.chmod(0o755)
        return {"directory": str(self.work), "claude": str(program), **more}

    def cpu_seconds(self) -> float:
        """What the hub's process has used of the processors."""
        return cpu_seconds(self.pid)


@asynccontextmanager
async def served(
    folder: Path,
    *,
    runner: bool = True,
    name: str = "deck",
    profile: Path | None = None,
    more: str = "",
    variables: Mapping[str, str] | None = None,
) -> AsyncIterator[Served]:
    """A hub with a data folder of its own (or one that was filled before), while the block runs.

    `more` is added to its configuration, and `variables` to its environment.
    """
    home, work = folder / name, folder / f"{name}-work"
    home.mkdir(mode=0o700, exist_ok=True)
    work.mkdir(exist_ok=True)
    (home / "quarterdeck.toml").write_text(SETTINGS + more)
    options = () if runner else ("--no-runner",)
    process = start(home, *options, profile=profile, variables=variables)
    try:
        await anyio.to_thread.run_sync(_wait_for, home, process)
        deck = Served(home, work, process)
        if runner:
            await _until_runner(deck)
        yield deck
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_end, home, process)


def start(
    home: Path,
    *options: str,
    profile: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start `quarterdeck serve` on a free port; with a `profile` of it, written when it ends."""
    watched = () if profile is None else ("-m", "cProfile", "-o", str(profile))
    environment = {**os.environ, "QUARTERDECK_HOME": str(home), **(variables or {})}
    log = (home / "serve.log").open("wb")
    with log:
        return subprocess.Popen(
            [sys.executable, *watched, "-m", "quarterdeck.cli", "serve", "--port", "0", *options],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _wait_for(home: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while live_hub(home) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the hub did not start: {(home / 'serve.log').read_text()}")
        time.sleep(0.01)


async def _until_runner(deck: Served) -> None:
    """Wait until the runner has greeted the hub: what is started before that waits for it."""
    with anyio.fail_after(START_SECONDS):
        while live_runner(deck.home / RUNNER) is None:  # noqa: ASYNC110 - another process does it
            await anyio.sleep(0.02)


def _end(home: Path, process: subprocess.Popen[bytes]) -> None:
    end_runner(home / RUNNER)
    stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process that was started here."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(15)


def cpu_seconds(pid: int) -> float:
    """What a process has used of the processors, itself and for the system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_bytes(pid: int) -> int:
    """All that a process has in memory, libraries that others use too included."""
    return _memory(pid, "Rss")


def own_bytes(pid: int) -> int:
    """What a process has in memory for itself alone, which others cannot make less or more."""
    return _memory(pid, "Anonymous")


def _memory(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc says nothing of the memory of {pid}")


async def quiet(pid: int, seconds: float = 60.0) -> None:
    """Wait until a process has nothing to do any more."""
    with anyio.fail_after(seconds):
        while True:
            before = cpu_seconds(pid)
            await anyio.sleep(0.5)
            if cpu_seconds(pid) - before < 0.03:
                return


def prompt(todo: dict[str, object]) -> str:
    """What the agent of the benchmarks takes for a prompt."""
    return json.dumps(todo)
