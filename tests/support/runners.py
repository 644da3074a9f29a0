"""A runner in the test's own loop, and the fake CLI as a program that a session can name."""

from __future__ import annotations

import json
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from quarterdeck.links.subprocess import StopSteps
from quarterdeck.links.websocket.dial import Redial
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.runner import Bounds, Limits, Runner, Times
from quarterdeck.testing.fake import NEWEST, Step, fake_cli_command
from support.bounds import SECONDS
from support.scripted_hub import TOKEN

QUICK = Redial(base=0.02, cap=0.1, attempt=5.0, ping=5.0)
STOP = StopSteps(input=1.0, term=1.0, kill=5.0, orphans=0.5, silent=1.0, drain=0.2)
TIMES = Times(idle=60.0, vitals=0.5, greeting=5.0, retry=0.05, farewell=2.0, stop=STOP)


def program(folder: Path, script: Sequence[Step], record: Path | None = None) -> str:
    """The path of a program that plays this script."""
    folder.mkdir(parents=True, exist_ok=True)
    command = fake_cli_command(script, folder=folder, record=record)
    path = Path(command[-1]).with_suffix(".sh")
    path.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    path.chmod(0o755)
    # As an installed CLI has one: the version is read there, and no process is started to ask.
    manifest = {"name": "@anthropic-ai/claude-code", "version": NEWEST}
    (folder / "package.json").write_text(json.dumps(manifest))
    return str(path)


def spec_of(folder: Path, script: Sequence[Step], record: Path | None = None) -> SessionSpec:
    """A session in this folder whose CLI plays this script. Its home folder is not a person's."""
    env = {"HOME": str(folder / ".home")}
    return SessionSpec(directory=str(folder), claude=program(folder, script, record), env=env)


@asynccontextmanager
async def running(
    home: Path,
    url: str,
    *,
    limits: Limits | None = None,
    times: Times = TIMES,
    redial: Redial = QUICK,
    memory: int = 1 << 40,
) -> AsyncIterator[Runner]:
    """A runner while the block runs, stopped in good order at its end."""
    runner = Runner(
        home,
        url,
        TOKEN,
        "a-machine",
        limits=limits or Limits(),
        times=times,
        redial=redial,
        memory=lambda: memory,
    )
    async with anyio.create_task_group() as group:
        group.start_soon(runner.run)
        try:
            yield runner
        finally:
            runner.stop()
            with anyio.CancelScope(shield=True), anyio.move_on_after(SECONDS):
                await runner.ended.wait()
            group.cancel_scope.cancel()


def small(memory: int = 64 * 1024, disk: int = 1024 * 1024, segment: int = 64 * 1024) -> Limits:
    """Limits that a test can reach."""
    return Limits(bounds=Bounds(memory=memory, disk=disk, segment=segment, batch=32 * 1024))
