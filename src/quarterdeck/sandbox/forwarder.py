"""The forwarder: inside a sandbox without network, it leads ports of loopback to the proxy.

    python -I -S forwarder.py ORDER PROGRAM [ARGUMENT ...]

It listens, starts a process that forwards, and becomes the program. It is a script with nothing but
the standard library, like the launcher. `ORDER` is JSON: the proxy's `socket`, the `port` of the
proxy in the sandbox, the `local` ports of the machine that are forwarded as they are, and the
signals to be reset.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import sys
from contextlib import suppress

TYPE_CHECKING = False  # the import would take longer than all others
if TYPE_CHECKING:
    from typing import Any, NoReturn

BUFFER = 256 * 1024
CHUNK = 64 * 1024
FAILED = 78
"""The exit code if nothing could be started, as of the launcher."""
PARENT_DEATH_SIGNAL = 1


class Pipe:
    """One direction of a connection: what was read and not yet written."""

    def __init__(self, source: socket.socket, sink: socket.socket) -> None:
        self.source = source
        self.sink = sink
        self.waiting = bytearray()
        self.ended = False
        self.finished = False

    def read(self) -> None:
        """Read what is there."""
        try:
            data = self.source.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.waiting += data
        else:
            self.ended = True
        self.write()

    def write(self) -> None:
        """Write as much as the other side takes."""
        try:
            while self.waiting:
                del self.waiting[: self.sink.send(self.waiting)]
        except BlockingIOError:
            return
        except OSError:
            self.waiting.clear()
            self.ended = True
        if self.ended and not self.finished:
            self.finished = True
            with suppress(OSError):
                self.sink.shutdown(socket.SHUT_WR)


class Forwarder:
    """All connections, in one loop."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._wait = selectors.DefaultSelector()
        self._pipes: dict[socket.socket, tuple[Pipe, Pipe]] = {}

    def listen(self, server: socket.socket, first: bytes) -> None:
        """Accept there; `first` is what is said to the proxy before a client's own words."""
        server.setblocking(False)
        self._wait.register(server, selectors.EVENT_READ, first)

    def run(self) -> NoReturn:
        """Forward for ever."""
        while True:
            for key, events in self._wait.select():
                one = key.fileobj
                assert isinstance(one, socket.socket)
                if isinstance(key.data, bytes):
                    self._accept(one, key.data)
                elif one in self._pipes:
                    self._move(one, events)

    def _accept(self, server: socket.socket, first: bytes) -> None:
        try:
            client, _ = server.accept()
        except OSError:
            return
        proxy = socket.socket(socket.AF_UNIX)
        try:
            proxy.connect(self._path)
            if first:
                proxy.sendall(first)
                _skip_head(proxy)
        except OSError:
            proxy.close()
            client.close()
            return
        there, back = Pipe(client, proxy), Pipe(proxy, client)
        self._pipes[client], self._pipes[proxy] = (there, back), (back, there)
        for one in (client, proxy):
            one.setblocking(False)
            self._wait.register(one, selectors.EVENT_READ)

    def _move(self, one: socket.socket, events: int) -> None:
        out, into = self._pipes[one]
        if events & selectors.EVENT_READ:
            out.read()
        if events & selectors.EVENT_WRITE:
            into.write()
        other = out.sink
        if out.finished and into.finished:
            for each in (one, other):
                self._pipes.pop(each, None)
                self._unregister(each)
                each.close()
            return
        for each, reading, writing in ((one, out, into), (other, into, out)):
            wanted = 0
            if not reading.ended and len(reading.waiting) < BUFFER:
                wanted |= selectors.EVENT_READ
            if writing.waiting:
                wanted |= selectors.EVENT_WRITE
            self._unregister(each)
            if wanted:
                self._wait.register(each, wanted)

    def _unregister(self, one: socket.socket) -> None:
        with suppress(KeyError, ValueError):
            self._wait.unregister(one)


def _skip_head(proxy: socket.socket) -> None:
    """Read the proxy's answer to CONNECT, and not one byte more."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = proxy.recv(1)
        if not byte or len(head) > CHUNK:
            raise OSError("the proxy has refused the connection")
        head += byte
    if b" 200 " not in head.partition(b"\r\n")[0]:
        raise OSError("the proxy has refused the connection")


def _end_with_parent() -> None:
    """Be killed when the program ends: else it would hold the sandbox and its output open."""
    import ctypes  # here, because the program does not wait for this process

    parent = os.getppid()
    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def main(arguments: list[str]) -> NoReturn:
    """Listen, start the process that forwards, and become the program."""
    order: dict[str, Any] = json.loads(arguments[0])
    servers = []
    for port, first in [
        (order["port"], b""),
        *((port, f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode()) for port in order["local"]),
    ]:
        try:
            server = socket.create_server(("127.0.0.1", port), backlog=128)
        except OSError as error:
            sys.stderr.write(f"quarterdeck: the sandbox has no port {port}: {error}\n")
            sys.exit(FAILED)
        servers.append((server, first))
    if os.fork() == 0:
        # It belongs to no terminal and to no group that gets the signals of the program.
        os.setsid()
        _end_with_parent()
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        forwarder = Forwarder(order["socket"])
        for server, first in servers:
            forwarder.listen(server, first)
        forwarder.run()
    for server, _ in servers:
        server.close()
    for name in (signal.SIGPIPE, signal.SIGXFSZ, *order["default"]):
        signal.signal(name, signal.SIG_DFL)
    os.execvp(arguments[1], arguments[1:])  # noqa: S606 - this is what it is for


if __name__ == "__main__":
    main(sys.argv[1:])
