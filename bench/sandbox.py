"""How much later a CLI starts in a sandbox: the same program with and without, side by side.

There is no peer: what is wanted is a time (at most 30 ms at the median). The program is `echo`, so
that nothing else varies, and the newest real CLI with `--version`, if one is installed. Each start
is one of the runner (`start_process`), with a sandbox or with none, from the hub's request to the
first byte that the program writes. Processor time is that of this process and of all that it
started, to the end of the program.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from unittest.mock import patch

from msgspec.structs import replace

from bench.rounds import interleaved
from quarterdeck.domain.errors import LinkClosed
from quarterdeck.domain.structs import Value
from quarterdeck.hub.permissions.sandbox import sandbox_request
from quarterdeck.links.pipes import ProcessPipes
from quarterdeck.policy.decide import Rules
from quarterdeck.policy.presets import preset
from quarterdeck.protocol.runner_frames import Start
from quarterdeck.protocol.sandbox import SandboxMode, SandboxOptions, SandboxRequest
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.runner import Limits, Times, patterns
from quarterdeck.runner.home import Home
from quarterdeck.runner.sandbox import OwnPaths
from quarterdeck.runner.start import start_process
from quarterdeck.sandbox import Kind, probe
from quarterdeck.testing.clis import installed_clis
from quarterdeck.testing.fake import NEWEST
from quarterdeck.worktrees.worktrees import Worktrees

GOAL_MS = 30.0
PLACE = "/var/tmp"
MEMORY = "/dev/shm"
"""A file system in memory, if the machine has it. The runner's own files are there: the time of the
disk is not what is measured."""
STARTS = 20
"""Starts in each round."""
MANY_FILES, FILES_IN_A_FOLDER = 20_000, 10
SET_CHILD_SUBREAPER = 36
RULES = "trusted-repo"
"""The preset whose rules hold; it has some 300 patterns for every depth of the project."""


class _Case(Value):
    """One way to start a program."""

    name: str
    mode: SandboxMode = "protect"
    hosts: tuple[str, ...] = ()
    large: bool = False
    """In the project with many files."""
    forgets: bool = False
    """Nothing is known of the project: the first start since the runner was started."""


CASES = (
    _Case(name="protect"),
    _Case(name="strict", mode="strict"),
    _Case(name="strict, with hosts", mode="strict", hosts=("example.org", "*.example.net")),
    _Case(name=f"protect, {MANY_FILES:,} files", large=True),
)
FIRST = _Case(name=f"protect, {MANY_FILES:,} files, the first start", large=True, forgets=True)


class _Measured(Value):
    """The seconds of one start."""

    wall: float
    processor: float


def run_sandbox(_folder: Path, rounds: int) -> None:
    """Measure and print."""
    _adopt_orphans()
    works = [each.kind for each in probe() if each.works]
    for each in probe():
        if not each.works:
            print(f"\n{each.kind} does not work here: {each.why}")
    programs: dict[str, tuple[list[str], Sequence[_Case]]]
    programs = {"echo": (["echo", "started"], (*CASES, FIRST))}
    if found := list(installed_clis().values()):
        name = f"Claude Code {found[-1].version}, --version"
        programs[name] = ([*found[-1].command, "--version"], CASES[:2])
    memory = MEMORY if Path(MEMORY).is_dir() else PLACE
    # Not in the folder for temporary files: what others have there would be part of the sandbox.
    with (
        tempfile.TemporaryDirectory(prefix="quarterdeck-bench-", dir=PLACE) as name,
        tempfile.TemporaryDirectory(prefix="quarterdeck-bench-", dir=memory) as home,
        asyncio.Runner() as runner,
    ):
        place = _Place(Path(name), Path(home), runner)
        for program, (command, cases) in programs.items():
            _compare(place, program, command, cases, works, rounds * STARTS)
    print(f"  wanted: at most {GOAL_MS:g} ms at the median; load {os.getloadavg()[0]:.1f}")


def _compare(
    place: _Place,
    name: str,
    command: Sequence[str],
    cases: Sequence[_Case],
    works: Sequence[Kind],
    starts: int,
) -> None:
    print(f"\n{name}: {starts} starts of each kind, in turn")
    seen: dict[str, list[_Measured]] = {}

    def measure(label: str, start: Callable[[], _Measured]) -> float:
        found = start()
        seen.setdefault(label, []).append(found)
        return found.wall

    cli = place.program(command)
    measures = {"without": partial(measure, "without", partial(place.start, None, None, cli))}
    for case in cases:
        for kind in works:
            label = f"{kind}, {case.name}"
            measures[label] = partial(measure, label, partial(place.start, kind, case, cli))
    interleaved(measures, starts)
    print(f"  {'wall':>10}  {'processor':>10}")
    base = _median(seen["without"])
    print(f"  {base.wall * 1e3:7.1f} ms  {base.processor * 1e3:7.1f} ms  without")
    for label in list(measures)[1:]:
        found = _median(seen[label])
        wall, processor = found.wall - base.wall, found.processor - base.processor
        print(f"  {wall * 1e3:+7.1f} ms  {processor * 1e3:+7.1f} ms  {label}")


def _median(found: Sequence[_Measured]) -> _Measured:
    return _Measured(
        wall=statistics.median(each.wall for each in found),
        processor=statistics.median(each.processor for each in found),
    )


class _Place:
    """A home, a repository and a large one, as sessions have them."""

    def __init__(self, folder: Path, runners: Path, runner: asyncio.Runner) -> None:
        self._runner = runner
        self._folder = folder
        self._home = Home(runners)
        self._worktrees = Worktrees(self._home.worktrees, Times().git)
        self._home.spool.mkdir()
        self._count = 0
        self.home = folder / "home"
        self.project, self.large = self.home / "project", self.home / "large"
        for name in ("project/src", ".ssh", ".aws", ".cache", ".npm", "data", ".claude/projects"):
            (self.home / name).mkdir(parents=True)
        for number in range(MANY_FILES // FILES_IN_A_FOLDER):
            inner = self.large / f"package{number % 40}" / f"module{number}"
            inner.mkdir(parents=True)
            for file in range(FILES_IN_A_FOLDER):
                (inner / f"file{file}.py").touch()
        for each in (self.project, self.large):
            subprocess.run(["git", "init", "-q", str(each)], check=True)
            (each / ".env").write_text("KEY=x\n")
        time.sleep(patterns.SETTLED)  # a folder that was changed a moment ago is read again

    def program(self, command: Sequence[str]) -> str:
        """The path of a CLI that only runs this command."""
        folder = Path(tempfile.mkdtemp(prefix="cli-", dir=self._folder))
        path = folder / "claude"
        path.write_text(f"#!/bin/sh\nexec {shlex.join(command)}\n")
        path.chmod(0o755)
        # As an installed CLI has one: the version is read there, and no process is started to ask.
        manifest = {"name": "@anthropic-ai/claude-code", "version": NEWEST}
        (folder / "package.json").write_text(json.dumps(manifest))
        return str(path)

    def start(self, kind: Kind | None, case: _Case | None, cli: str) -> _Measured:
        """Start the program once."""
        if case is not None and case.forgets:
            patterns.forget()
        large = case is not None and case.large
        spec = SessionSpec(
            directory=str(self.large if large else self.project),
            claude=cli,
            env={"HOME": str(self.home)},
            sandbox="off" if case is None else case.mode,
            sandbox_options=SandboxOptions(network=case.hosts) if case and case.hosts else None,
        )
        policy = preset(RULES)
        assert policy is not None
        self._count += 1
        # Both are here before the clock starts: the hub does this for every session.
        request = _at_home(sandbox_request(spec, Rules(policies=(policy,))))
        start = Start(run=f"run-{self._count}", session="one", spec=spec, sandbox=request)
        came: list[float] = []
        with (
            patch("quarterdeck.sandbox.choose", lambda _: kind),
            patch.object(ProcessPipes, "pipe_data_received", _noting(came)),
        ):
            begin, used = time.perf_counter(), _processor()
            self._runner.run(self._start(start))
        _reap_orphans()
        return _Measured(wall=came[0] - begin, processor=_processor() - used)

    async def _start(self, start: Start) -> None:
        """Run it to its end."""
        own = OwnPaths(hidden=(str(self.home / "data"),))
        process = await start_process(
            start, self._home, self._worktrees, Limits(), Times(), own, lambda: True
        )
        assert process.link is not None
        said = b""
        try:
            with suppress(LinkClosed):
                while True:
                    said += await process.link.receive()
        finally:
            await process.link.close()
            process.release()
            process.spool.remove()
        if not said:
            raise RuntimeError("; ".join(process.link.stderr))


def _noting(came: list[float]) -> Callable[[ProcessPipes, int, bytes], None]:
    """What takes bytes of a program, and notes when they came: the runner may look later."""
    take = ProcessPipes.pipe_data_received

    def taking(pipes: ProcessPipes, number: int, data: bytes) -> None:
        came.append(time.perf_counter())
        take(pipes, number, data)

    return taking


def _at_home(request: SandboxRequest) -> SandboxRequest:
    """Without the rules about root's home folder: other users cannot read it, and for root itself,
    at home there, the runner leaves them out. Here root has another home.
    """

    def others(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(path for path in paths if not path.startswith("/root/"))

    return replace(
        request, deny_read=others(request.deny_read), deny_edit=others(request.deny_edit)
    )


def _adopt_orphans() -> None:
    """Have the kernel give us the processes whose parent has ended: bubblewrap does not wait for
    the first process of its sandbox, and its processor time would be missing.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _reap_orphans() -> None:
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def _processor() -> float:
    """The seconds of processor time that this process and its ended children have used."""
    used = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
