"""Commands that check the work: run by the shell, bounded in time and output.

A command of a loop runs as the user of the loop's process, and the agent may have changed the files
that it runs. So it runs in the sandbox of the agent, where there is one, and counts as a process of
an agent. It gets no key and no token of our environment.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
import uuid
from collections import deque
from contextlib import suppress

import anyio
import anyio.to_thread

from quarterdeck.claude.environment import child_environment
from quarterdeck.domain.errors import LaunchError
from quarterdeck.loop.boxes import Box, Boxed, no_box
from quarterdeck.loop.state import SHOWN_OUTPUT, Check
from quarterdeck.runtime import processes
from quarterdeck.runtime.agent_process import MARKS

SHELL = ("/bin/sh", "-c")
AGENT_MARK = MARKS[0]
_CHUNK = 64 * 1024
_KEPT = 4 * SHOWN_OUTPUT
"""Bytes of output that are kept: a character has up to four."""
_COUNTS = (
    re.compile(r"\b(\d+) failed\b"),  # pytest, Jest, Vitest, cargo
    re.compile(r"\bFAILED \([^)]*?failures=(\d+)"),  # unittest
    re.compile(r"\b(\d+) failing\b"),  # Mocha
    re.compile(r"Failures: (\d+)"),  # JUnit, PHPUnit
)


async def run_check(command: str, directory: str, seconds: float, box: Box = no_box) -> Check:
    """Run a command of the shell there. Raises `LaunchError` if it cannot be started."""
    if not await anyio.Path(directory).is_dir():
        raise LaunchError(f"cannot run the check in {directory}: it is not a folder")
    mark = f"{AGENT_MARK}{uuid.uuid4().hex}"
    env = {**child_environment(), mark: "1"}
    async with box((*SHELL, command), env, directory) as boxed:
        return await _run(command, boxed, directory, seconds, mark)


async def _run(command: str, boxed: Boxed, directory: str, seconds: float, mark: str) -> Check:
    began = time.monotonic()
    try:
        process = await asyncio.create_subprocess_exec(
            *boxed.command,
            cwd=directory,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=boxed.env,
            start_new_session=True,
        )
    except OSError as error:
        raise LaunchError(f"cannot run the check in {directory}: {error}") from error
    kept: deque[bytes] = deque()
    code: int | None = None
    try:
        with anyio.move_on_after(seconds):
            await _read(process, kept)
            code = await process.wait()
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process, mark)
    output = b"".join(kept)[-_KEPT:].decode(errors="replace")[-SHOWN_OUTPUT:]
    return Check(
        command=command,
        code=code,
        output=output,
        seconds=round(time.monotonic() - began, 2),
        failing=0 if code == 0 else failing_tests(output),
        sandbox=boxed.sandbox,
    )


def failing_tests(output: str) -> int | None:
    """The number of failing tests that the output of a test runner tells, the last one; or None."""
    found = [
        (match.start(), int(match[1]))
        for pattern in _COUNTS
        for match in pattern.finditer(output)
        if len(match[1]) < 10
    ]
    if found:
        return max(found)[1]
    lines = sum(line.lstrip().startswith("--- FAIL:") for line in output.splitlines())  # Go
    return lines or None


async def _read(process: asyncio.subprocess.Process, kept: deque[bytes]) -> None:
    assert process.stdout is not None
    size = 0
    while chunk := await process.stdout.read(_CHUNK):
        kept.append(chunk)
        size += len(chunk)
        while size - len(kept[0]) > _KEPT:
            size -= len(kept.popleft())


async def _end(process: asyncio.subprocess.Process, mark: str) -> None:
    """End it with all that it started, also where the shell has ended, or in other groups."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.returncode is None:
        with anyio.move_on_after(5):
            await process.wait()
    for left in await anyio.to_thread.run_sync(processes.with_variable, mark):
        processes.send_signal(left, signal.SIGKILL)
