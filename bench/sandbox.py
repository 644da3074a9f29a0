"""How much later a CLI starts in a sandbox: the same program with and without, side by side.

There is no peer: what is wanted is a time (at most 30 ms at the median). The program is `true`, so
that nothing else varies, and the newest real CLI with `--version`, if one is installed. A start
is measured from the spec to the end of the program; making the spec is part of it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from bench.rounds import interleaved
from quarterdeck.sandbox import (
    Kind,
    SandboxMode,
    SandboxSpec,
    find_repository,
    plan,
    probe,
)
from quarterdeck.sandbox.open import open_now
from quarterdeck.testing.clis import installed_clis

GOAL_MS = 30.0
STARTS = 20
"""Starts in each round."""


def run_sandbox(folder: Path, rounds: int) -> None:
    """Measure and print."""
    place = _Place(folder)
    works = [each.kind for each in probe() if each.works]
    for each in probe():
        if not each.works:
            print(f"\n{each.kind} does not work here: {each.why}")
    programs = {"true": ["true"]}
    if found := list(installed_clis().values()):
        programs[f"Claude Code {found[-1].version}, --version"] = [*found[-1].command, "--version"]
    for name, command in programs.items():
        print(f"\n{name}: {rounds * STARTS} starts of each kind, in turn")
        measures: dict[str, Callable[[], float]] = {"without": partial(place.start, None, command)}
        for kind in works:
            measures[kind] = partial(place.start, kind, command)
        seconds = interleaved(measures, rounds * STARTS)
        base = statistics.median(seconds["without"])
        print(f"  {base * 1e3:7.1f} ms  without")
        for kind in works:
            later = (statistics.median(seconds[kind]) - base) * 1e3
            least = (min(seconds[kind]) - min(seconds["without"])) * 1e3
            print(f"  {later:+7.1f} ms  {kind} (fastest of each: {least:+.1f} ms)")
    load = os.getloadavg()[0]
    print(f"  wanted: at most {GOAL_MS:g} ms at the median; load {load:.1f}")


class _Place:
    """A home and a repository, as a session has them."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = self.home / "project"
        for name in ("project/src", ".ssh", ".aws", ".cache", ".npm", "data", ".claude/projects"):
            (self.home / name).mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        self.env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.home)}
        self.temporary = folder / "session"

    def spec(self) -> SandboxSpec:
        """The spec of a session."""
        return plan(
            SandboxMode.PROTECT,
            project=str(self.project),
            home=str(self.home),
            temporary=str(self.temporary),
            repository=find_repository(self.project),
            private=[str(self.home / "data")],
            user=os.geteuid(),
        )

    def start(self, kind: Kind | None, command: Sequence[str]) -> float:
        """Start the program once; gives the seconds to its end."""
        begin = time.perf_counter()
        if kind is None:
            return self._run(command, self.env, begin)
        box = open_now(self.spec(), command, self.env, cwd=str(self.project), kind=kind)
        try:
            return self._run(box.command, box.env, begin)
        finally:
            box.close()

    def _run(self, command: Sequence[str], env: Mapping[str, str], begin: float) -> float:
        subprocess.run(
            command,
            env=env,
            cwd=self.project,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        return time.perf_counter() - begin
