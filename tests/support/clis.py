"""The real CLIs for tests: which are there, and one that is started and talked to over stdio.

This talks the plain protocol with nothing of Quarterdeck's own in between, so that a test of the
model or of the fake CLI does not stand on what it is a foundation for.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import anyio

from quarterdeck.testing.clis import RealCli, installed_clis, isolated_env
from support.bounds import SECONDS
from support.processes import Processes

PROJECT = Path(__file__).parents[2]
VERSIONS = ("2.1.37", "2.1.62", "2.1.120", "2.1.325")
"""Those that every test of the matrix runs on."""
EXTRA_VERSIONS = ("2.1.52", "2.1.92", "2.1.200")
"""Installed as well, for the tests that name them: where the matrix has too wide a gap."""
DIALLING = ("2.1.37", "2.1.62", "2.1.120")
"""Those that accept `--sdk-url` to a host of one's own."""

STDIO = (
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--permission-prompt-tool",
    "stdio",
    "--include-partial-messages",
)

_LINE_LIMIT = 64 * 1024 * 1024

Line = dict[str, object]


def real_cli(version: str) -> RealCli:
    """An installed version; the error says how to install it."""
    found = installed_clis(PROJECT / ".cache" / "claude-cli")
    if version not in found:
        raise RuntimeError(f"Claude Code {version} is not installed here: run `make clis`")
    return found[version]


class Conversation:
    """A process that speaks the protocol on its stdin and stdout."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[Line] = []

    def send(self, line: Line) -> None:
        """Write one line."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(line).encode() + b"\n")

    def prompt(self, text: str) -> None:
        """Write a prompt."""
        self.send({"type": "user", "message": {"role": "user", "content": text}})

    def allow(self, request: Line) -> None:
        """Answer a permission request: yes, with the input as it is."""
        asked = request["request"]
        assert isinstance(asked, dict)
        answer = {"behavior": "allow", "updatedInput": asked["input"]}
        outer = {"subtype": "success", "request_id": request["request_id"], "response": answer}
        self.send({"type": "control_response", "response": outer})

    async def until(self, kind: str, timeout: float = SECONDS) -> Line:
        """Read on to the next line of this type, keep all in `lines`, allow what is asked."""
        assert self.process.stdout is not None
        with anyio.fail_after(timeout):
            while True:
                raw = await self.process.stdout.readline()
                if not raw:
                    raise AssertionError(f"the output ended before a {kind}: {self.lines[-3:]}")
                line: Line = json.loads(raw)
                self.lines.append(line)
                if line["type"] == kind:
                    return line
                if line["type"] == "control_request":
                    self.allow(line)

    async def ask(self, text: str, timeout: float = SECONDS) -> Line:
        """Prompt, and read to the result of the turn."""
        self.prompt(text)
        return await self.until("result", timeout)


@contextlib.asynccontextmanager
async def conversation(
    command: tuple[str, ...], home: Path, base_url: str, processes: Processes, **extra: str
) -> AsyncIterator[Conversation]:
    """Start `command` with the flags of a stdio session, in a folder and environment of its own."""
    folder = home / "work"
    folder.mkdir(parents=True, exist_ok=True)
    process = await asyncio.create_subprocess_exec(
        *command,
        *STDIO,
        cwd=folder,
        env=isolated_env(home, base_url, **extra),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=_LINE_LIMIT,
    )
    processes.started(process.pid)
    try:
        yield Conversation(process)
    finally:
        with anyio.CancelScope(shield=True):
            assert process.stdin is not None
            process.stdin.close()
            with anyio.move_on_after(5):
                await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()
