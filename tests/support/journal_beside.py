"""A journal in PostgreSQL in another process, as that of another hub, perhaps of another version.

`python -m support.journal_beside URL FOLD`: FOLD is the version of its views, or empty. It reads a
command a line, and answers each with a line of JSON: `append SESSION TEXT`, `view SESSION`. After
`stop` its next append stops the process in the middle of its transaction, where it holds the
ticket.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from support.bounds import SECONDS
from support.processes import Processes
from support.waiting import until


class Beside:
    """The process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def append(self, session: str, text: str) -> int:
        """Append a note; gives its position."""
        return int(await self._ask(f"append {session} {text}"))

    async def view(self, session: str) -> dict[str, Any]:
        """The view of a session, as this process has it."""
        found: dict[str, Any] = await self._ask(f"view {session}")
        return found

    async def append_and_stop(self, session: str, text: str) -> None:
        """Begin an append, which stops the process when it holds the ticket."""
        await self._ask("stop")
        self._send(f"append {session} {text}")
        with anyio.fail_after(SECONDS):
            await until(self._is_stopped)

    async def go_on(self) -> int:
        """Let a stopped process go on; gives the position of its append."""
        self._process.send_signal(signal.SIGCONT)
        return int(await self.answer())

    def _is_stopped(self) -> bool:
        stat = Path(f"/proc/{self._process.pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"

    async def _ask(self, command: str) -> Any:
        self._send(command)
        return await self.answer()

    def _send(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(command.encode() + b"\n")

    async def answer(self) -> Any:
        """The next answer."""
        assert self._process.stdout is not None
        with anyio.fail_after(SECONDS):
            return json.loads(await self._process.stdout.readline())


@asynccontextmanager
async def journal_beside(
    url: str, processes: Processes, *, fold: int | None = None
) -> AsyncIterator[Beside]:
    """The process, with the journal open."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "support.journal_beside", url, "" if fold is None else str(fold)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
    )
    processes.started(process.pid)
    beside = Beside(process)
    try:
        assert await beside.answer() == "open"
        yield beside
        assert process.stdin is not None
        process.stdin.close()
        with anyio.fail_after(SECONDS):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _use_version(fold: int) -> None:
    from quarterdeck.journal.postgres import reader, refold, rows, staging

    for module in (reader, refold, rows, staging):
        assert "VIEW_VERSION" in vars(module)
        vars(module)["VIEW_VERSION"] = fold


def _stop_in_transaction() -> None:
    from quarterdeck.journal.postgres import staging

    names = vars(staging)
    real = names["write_group"]

    def write(*values: Any) -> None:
        names["write_group"] = real
        os.kill(os.getpid(), signal.SIGSTOP)
        real(*values)

    names["write_group"] = write


async def _main(url: str) -> None:
    from quarterdeck.journal.postgres import PostgresJournal
    from quarterdeck.protocol.events import Noted

    async with await PostgresJournal.open(url) as journal:
        _say("open")
        while line := await asyncio.to_thread(sys.stdin.readline):
            command, *words = line.rstrip("\n").split(" ", 2)
            if command == "append":
                (stored,) = await journal.append(words[0], [Noted(level="info", text=words[1])])
                _say(stored.position)
            elif command == "view":
                view = await journal.summary(words[0])
                _say(None if view is None else {"name": view.name, "turns": view.turns})
            else:
                _stop_in_transaction()
                _say("ok")


def _say(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[2]:
        _use_version(int(sys.argv[2]))
    asyncio.run(_main(sys.argv[1]))
