"""The forwarder: inside a sandbox without network, it leads ports of loopback to the proxy.

    python -I -S forwarder.py SOCKET DESCRIPTOR [DESCRIPTOR ...]

The launcher listens on the ports and starts it. What arrives at the first descriptor goes to the
proxy's socket as it is; what arrives at another goes to the same port of the machine, through the
proxy. It is a script with nothing but the standard library, because it runs in the sandbox.
"""

from __future__ import annotations

import selectors
import socket
import sys
from contextlib import suppress
from typing import NoReturn

BUFFER = 256 * 1024
CHUNK = 64 * 1024


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


def main(arguments: list[str]) -> NoReturn:
    """Forward what arrives at the descriptors."""
    path, *descriptors = arguments
    forwarder = Forwarder(path)
    for number, descriptor in enumerate(descriptors):
        server = socket.socket(fileno=int(descriptor))
        port = server.getsockname()[1]
        wanted = f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode()
        forwarder.listen(server, wanted if number else b"")
    forwarder.run()


if __name__ == "__main__":
    main(sys.argv[1:])
