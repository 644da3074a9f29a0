"""Commands and programs that run as forks of a process which has imported what they need.

To load a hub takes a second of processor time, and so does the official SDK. Most tests of the
command line start one or two hubs. Here that is paid once for each pytest worker: `python -m
support.forks FD` loads the modules, and forks whenever it is told to. The fork has its own session,
environment, folder and pipes, runs `quarterdeck.cli.main` and ends as Python ends. With names of
modules behind FD it loads these instead, and a fork runs a file, as `python FILE …` would. Tests
about the start of a process do not use this.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import os
import random
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from asyncio import StreamReader, StreamReaderProtocol
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import anyio
import anyio.abc
import anyio.to_thread

from support.bounds import SECONDS

TESTS = Path(__file__).parents[1]
MESSAGE_LIMIT = 256 * 1024
LOADED = (
    "anyio._backends._asyncio",
    "encodings.idna",
    "quarterdeck.cli.app",
    "quarterdeck.cli.exits",
    "quarterdeck.cli.terminal.text",
    "quarterdeck.service.service",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.h11_impl",
)
"""What every hub loads. One that is gone fails loudly."""
FOLDERS = ("quarterdeck.cli.hub", "quarterdeck.cli.commands")
"""Whose modules commands load when they run."""
WORKER = ["(command worker)"]
"""Instead of a command line: be a process that runs many (`support.command_worker`)."""
ROOM = "-" * 1000
"""A last word of the command line, where forks write their own."""
SDK = (
    "anyio._backends._asyncio",
    "claude_agent_sdk._internal.client",
    "claude_agent_sdk._internal.query",
    "claude_agent_sdk._internal.transport.subprocess_cli",
    "quarterdeck.testing",
)
"""What programs of the official SDK load, with those of the tests."""


class Output(anyio.abc.ByteReceiveStream):
    """What a fork writes."""

    def __init__(self, reader: StreamReader, transport: asyncio.ReadTransport) -> None:
        self._reader = reader
        self._transport = transport

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """The next bytes."""
        if data := await self._reader.read(max_bytes):
            return data
        raise anyio.EndOfStream

    async def aclose(self) -> None:
        """Read no more."""
        self._transport.close()


class Input(anyio.abc.ByteSendStream):
    """What a fork reads."""

    def __init__(self, transport: asyncio.WriteTransport) -> None:
        self._transport = transport

    async def send(self, item: bytes) -> None:
        """Hand it over; a test sends little."""
        self._transport.write(item)

    async def aclose(self) -> None:
        """It gets no more."""
        self._transport.close()


class Fork(anyio.abc.Process):
    """A command that was forked."""

    def __init__(self, pid: int, stdin: Input, stdout: Output, stderr: Output, end: Output) -> None:
        self._pid = pid
        self._streams = (stdin, stdout, stderr)
        self._end = end
        self._code: int | None = None
        self._ended = asyncio.ensure_future(self._wait())

    async def _wait(self) -> int:
        said = b""
        while not said.endswith(b"\n"):
            said += await self._end.receive()
        await self._end.aclose()
        self._code = int(said)
        return self._code

    async def wait(self) -> int:
        """Wait for its end; gives its exit code, or the negative number of a signal."""
        return await asyncio.shield(self._ended)

    def send_signal(self, signal: int) -> None:
        """Send it a signal."""
        if self._code is not None:
            raise ProcessLookupError
        os.kill(self._pid, signal)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    async def aclose(self) -> None:
        """Close its pipes, and wait for its end."""
        for stream in self._streams:
            await stream.aclose()
        await self.wait()

    @property
    def pid(self) -> int:
        """Its id."""
        return self._pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, if it has ended."""
        return self._code

    @property
    def stdin(self) -> Input:
        """Where it reads from."""
        return self._streams[0]

    @property
    def stdout(self) -> Output:
        """What it prints."""
        return self._streams[1]

    @property
    def stderr(self) -> Output:
        """What it complains about."""
        return self._streams[2]


class Forks:
    """The process that forks, as its user sees it."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._one_at_a_time = threading.Lock()

    async def start(
        self, arguments: Sequence[str], env: Mapping[str, str], cwd: Path, *, merged: bool = False
    ) -> Fork:
        """A fork that runs this command line; merged, its errors go where its output goes."""
        theirs_in, ours_in = os.pipe()
        pairs = [os.pipe() for _ in range(3)]
        if merged:
            os.dup2(pairs[0][1], pairs[1][1])
        theirs = (theirs_in, *(write for _, write in pairs))
        message = json.dumps([list(arguments), dict(env), str(cwd)]).encode()
        assert len(message) < MESSAGE_LIMIT
        try:
            pid = await anyio.to_thread.run_sync(self._fork, message, theirs)
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        transport, _ = await asyncio.get_running_loop().connect_write_pipe(
            asyncio.BaseProtocol, os.fdopen(ours_in, "wb", buffering=0)
        )
        out, err, end = [await _output(read) for read, _ in pairs]
        return Fork(pid, Input(transport), out, err, end)

    def _fork(self, message: bytes, descriptors: tuple[int, ...]) -> int:
        with self._one_at_a_time:
            socket.send_fds(self._line, [message], descriptors)
            return int(self._line.recv(64))


async def _output(descriptor: int) -> Output:
    reader = StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    return Output(reader, transport)


@contextmanager
def forks(*modules: str) -> Iterator[Forks]:
    """A process that forks, gone with the block; its forks are not.

    With modules, its forks run files of Python, and have loaded these.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(SECONDS)
    with ours:
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "support.forks", str(theirs.fileno()), *modules, ROOM],
                stdin=subprocess.DEVNULL,
                env={
                    **os.environ,
                    "PYTHONPATH": str(TESTS),
                    "PYTHONHASHSEED": "0",  # some programs print sets
                    "LANG": "C.UTF-8",
                },
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        try:
            yield Forks(ours)
        finally:
            ours.shutdown(socket.SHUT_RDWR)
            try:
                process.wait(SECONDS)
            finally:
                process.kill()


# --- in the process that forks -------------------------------------------------------------------

Request = tuple[list[str], dict[str, str], str, list[int]]


def main(descriptor: int, modules: Sequence[str]) -> int:
    """Fork whenever told to, until nobody can tell; a fork gives the exit code of its command."""
    for name in modules or LOADED:
        import_module(name)
    if not modules:
        for folder in FOLDERS:
            for found in iter_modules(import_module(folder).__path__):
                import_module(f"{folder}.{found.name}")
        import_module("quarterdeck.fronts.http.app")._api()  # it keeps nothing of a hub
    gc.freeze()  # else a fork that collects its garbage copies every page that it shares
    with socket.socket(fileno=descriptor) as line:
        request = _wait_for_requests(line)
    if request is None:
        return 0
    arguments = _be(request)
    return _run_file(arguments) if modules else _run_command(arguments)


def _wait_for_requests(line: socket.socket) -> Request | None:
    """Gives in each fork what it is to be, and nothing when nobody can tell any more."""
    open_ends: set[int] = set()
    while True:
        message, descriptors, _, _ = socket.recv_fds(line, MESSAGE_LIMIT, 4)
        if not message:
            return None
        if (pid := os.fork()) == 0:
            for each in open_ends:  # of other forks
                os.close(each)
            arguments, env, folder = json.loads(message)
            return arguments, env, folder, descriptors
        for each in descriptors[:3]:
            os.close(each)
        end = descriptors[3]
        open_ends.add(end)
        threading.Thread(target=_tell_end, args=(pid, end, open_ends), daemon=True).start()
        line.send(f"{pid}".encode())


def _tell_end(pid: int, to: int, open_ends: set[int]) -> None:
    _, status = os.waitpid(pid, 0)
    with suppress(BrokenPipeError):
        os.write(to, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    open_ends.discard(to)
    os.close(to)


def _be(request: Request) -> list[str]:
    """Be as a new process is; gives the command line that it is to run."""
    arguments, env, folder, descriptors = request
    os.setsid()
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    for descriptor in descriptors:
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    time.tzset()
    random.seed()
    tempfile.tempdir = None
    sys.path[:] = [each for each in sys.path if each != str(TESTS)]
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(write_through=True)  # type: ignore[union-attr]
    return arguments


def _run_command(arguments: list[str]) -> int:
    from quarterdeck import cli  # here: programs of the SDK do without it
    from support import command_worker

    sys.argv = ["quarterdeck", *arguments]
    if arguments == WORKER:
        command_worker.serve()
        return 0
    return cli.main(arguments)


def _run_file(arguments: list[str]) -> int:
    _show_as([sys.executable, *arguments])
    sys.argv = arguments
    added = os.environ.get("PYTHONPATH", "")
    sys.path[:0] = [str(Path(arguments[0]).parent), *filter(None, added.split(os.pathsep))]
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


def _show_as(words: list[str]) -> None:
    """Be seen by other processes with this command line, as far as there is room for it."""
    begin, end = map(int, Path("/proc/self/stat").read_text().rpartition(")")[2].split()[45:47])
    shown = b"".join(os.fsencode(word) + b"\0" for word in words)[: end - begin - 1]
    ctypes.memmove(begin, shown.ljust(end - begin, b"\0"), end - begin)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:-1]))
