"""Hubs and runners for the tests of faults, each a fork of a process that has imported everything.

A kill is followed by a start, and a start from nothing takes most of a second of work. The nursery
is one process, `python -m support.fault_nursery FD`, without threads and without a loop: it forks
when it is told to, and each child is then the real hub or the real runner in a session of its own.
One nursery serves all tests of a pytest worker: it keeps nothing of a child.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import os
import random
import socket
import subprocess
import sys
import threading
from asyncio import StreamReader, StreamReaderProtocol
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import anyio
import msgspec
from msgspec import Raw

from quarterdeck.policy.needs import Context, needs_of
from quarterdeck.runtime.client_tls import client_context
from support import fault_duties, fault_fleet, fault_hub, fault_runner
from support.bounds import SECONDS
from support.processes import Processes

TESTS = Path(__file__).parents[1]
LINE_LIMIT = fault_hub.LINE_LIMIT
MESSAGE_LIMIT = 64 * 1024
LOADED_LATE = (
    "httpx2",
    "httpx2._transports.default",
    "idna.idnadata",
    "quarterdeck.journal.postgres",
    "anyio._backends._asyncio",
    "anyio._core._fileio",
    "encodings.idna",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.h11_impl",
)
"""What a hub or a runner would load after the fork, each time. One that is gone fails loudly."""


Pipe = tuple[StreamReader, asyncio.ReadTransport]


class Child:
    """A process that was forked: what it reads, what it says, and whether it is there."""

    def __init__(self, pid: int, stdin: asyncio.WriteTransport, stdout: Pipe, alive: Pipe) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout, self._from_stdout = stdout
        self._alive, self._from_alive = alive

    @property
    def gone(self) -> bool:
        """Whether it has ended."""
        return self._alive.at_eof()

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it is there."""
        if not self.gone:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def wait(self) -> None:
        """Wait until it has ended: its end of this pipe is closed by nothing else."""
        await self._alive.read()

    def close(self) -> None:
        """Let go of it: nothing is read any more."""
        for transport in (self.stdin, self._from_stdout, self._from_alive):
            transport.close()


class Nursery:
    """Where children are had."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._one_at_a_time = threading.Lock()

    async def start(self, processes: Processes, what: str, log: Path, *arguments: object) -> Child:
        """A child that runs `fault_hub` or `fault_runner` with these arguments."""
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        ours_life, theirs_life = os.pipe()
        said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        theirs = (theirs_in, theirs_out, said, theirs_life)
        try:
            message = json.dumps([what, *map(str, arguments)]).encode()
            pid = await anyio.to_thread.run_sync(self._fork, message, theirs)
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        processes.started(pid)
        loop = asyncio.get_running_loop()
        stdin, _ = await loop.connect_write_pipe(
            asyncio.BaseProtocol, os.fdopen(ours_in, "wb", buffering=0)
        )
        return Child(pid, stdin, await _reader(ours_out), await _reader(ours_life))

    def _fork(self, message: bytes, descriptors: tuple[int, ...]) -> int:
        with self._one_at_a_time:
            socket.send_fds(self._line, [message], descriptors)
            return int(self._line.recv(64))


async def _reader(descriptor: int) -> Pipe:
    reader = StreamReader(limit=LINE_LIMIT)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    return reader, transport


@contextmanager
def nursery() -> Iterator[Nursery]:
    """A nursery, gone with the block; its children are not."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    ours.settimeout(SECONDS)
    with ours:
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "support.fault_nursery", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": _path()},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        try:
            yield Nursery(ours)
        finally:
            ours.shutdown(socket.SHUT_RDWR)
            try:
                process.wait(SECONDS)
            finally:
                process.kill()


def _path() -> str:
    given = os.environ.get("PYTHONPATH")
    return os.pathsep.join([str(TESTS), *([given] if given else [])])


# --- in the nursery ------------------------------------------------------------------------------


def main(descriptor: int) -> None:
    """Fork whenever told to, until nobody can tell."""
    warm_up()
    gc.freeze()  # else a child that collects its garbage copies every page that it shares
    with socket.socket(fileno=descriptor) as line:
        while True:
            message, descriptors, _, _ = socket.recv_fds(line, MESSAGE_LIMIT, 4)
            if not message:
                return
            bury()
            pid = os.fork()
            if pid == 0:
                line.close()
                be(json.loads(message), descriptors)
            for each in descriptors:
                os.close(each)
            line.send(f"{pid}".encode())


def warm_up() -> None:
    """Do once what each child would do again."""
    for name in LOADED_LATE:
        import_module(name)
    client_context(None)
    needs_of("Bash", Raw(b'{"command":"touch 1"}'), Context(cwd="/"))


def bury() -> None:
    """Wait for the children that have ended.

    The kernel would do that by itself. But then nobody could tell what they took of the processor.
    """
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def be(arguments: list[str], descriptors: list[int]) -> None:
    """Live the life of a hub or of a runner, and end with it."""
    code = 1
    try:
        os.setsid()
        random.seed()
        for number, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.set_inheritable(descriptors[3], False)  # open for as long as this process lives
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        match arguments:
            case ["hub", journal, token_file]:
                token = Path(token_file).read_text()
                asyncio.run(fault_hub.main(Path(journal), 0, token))
            case ["fleet", place, token_file, reached_at]:
                asyncio.run(fault_fleet.main(place, Path(token_file).read_text(), reached_at))
            case ["fleet", place, token_file, reached_at, duties]:
                options = msgspec.json.decode(duties, type=fault_duties.DutyOptions)
                token = Path(token_file).read_text()
                asyncio.run(fault_fleet.main(place, token, reached_at, options))
            case ["runner", home, url, token_file]:
                asyncio.run(fault_runner.main(Path(home), url, Path(token_file)))
            case ["runner", home, url, token_file, name]:
                asyncio.run(fault_runner.main(Path(home), url, Path(token_file), name))
            case _:
                raise ValueError(f"nobody knows how to be {arguments}")
        code = 0
    except BaseException:
        logging.exception("it failed")
    finally:
        os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]))
