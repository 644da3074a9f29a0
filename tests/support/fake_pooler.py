"""A pooler for tests, as PgBouncer is one: a connection has a server process for one transaction
only, or for as long as it is open.

Owns sockets and threads. It speaks no more of PostgreSQL's protocol than that.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from support.bounds import SECONDS

SECURE = (80877103, 80877104)
CANCEL = 80877102
STARTUP = b"user\0quarterdeck\0client_encoding\0UTF8\0database\0"


class _Wire:
    """Messages on a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        connection.settimeout(SECONDS)

    def exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            some = self.socket.recv(count - len(data))
            if not some:
                raise ConnectionError
            data += some
        return data

    def message(self) -> bytes:
        head = self.exactly(5)
        return head + self.exactly(struct.unpack(">xi", head)[0] - 4)


class Pooler:
    """Gives the processes of a server to clients."""

    def __init__(self, folder: Path, database: str, *, by_transaction: bool) -> None:
        self._path = str(folder / ".s.PGSQL.5432")
        self._database = database.encode()
        self._by_transaction = by_transaction
        self._idle: list[_Wire] = []
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._greeting: list[bytes] = []
        """What the server said of itself, but for the process."""

    def serve(self, listening: socket.socket) -> None:
        """Accept clients until the socket is closed."""
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                self._open.append(client)
                threading.Thread(target=self._client, args=(_Wire(client),), daemon=True).start()

    def close(self) -> None:
        """End all connections."""
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _client(self, client: _Wire) -> None:
        server: _Wire | None = None
        with suppress(OSError, ConnectionError, struct.error):
            if not self._greet(client):
                return
            while (message := client.message())[:1] != b"X":
                server = server or self._taken()
                server.socket.sendall(message)
                if message[:1] in b"QS" and self._answer(server, client) and self._by_transaction:
                    self._give(server)
                    server = None
        if server is not None:
            server.socket.close()  # as the server ends what its client has left
        client.socket.close()

    def _greet(self, client: _Wire) -> bool:
        while True:
            length, code = struct.unpack(">ii", client.exactly(8))
            if code in SECURE:
                client.socket.sendall(b"N")
                continue
            client.exactly(length - 8)
            if code == CANCEL:
                return False
            self._give(self._taken())
            key = b"K" + struct.pack(">iii", 12, 1, 1)  # of no process of the server
            ready = b"Z" + struct.pack(">ic", 5, b"I")
            client.socket.sendall(b"".join((*self._greeting, key, ready)))
            return True

    def _answer(self, server: _Wire, client: _Wire) -> bool:
        """Pass on an answer. Whether no transaction is open behind it."""
        while True:
            message = server.message()
            client.socket.sendall(message)
            if message[:1] == b"Z":
                return message[5:6] == b"I"

    def _taken(self) -> _Wire:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._path)
        self._open.append(connection)
        wire = _Wire(connection)
        start = struct.pack(">i", 196608) + STARTUP + self._database + b"\0\0"
        connection.sendall(struct.pack(">i", len(start) + 4) + start)
        greeting: list[bytes] = []
        while (message := wire.message())[:1] != b"Z":
            if message[:1] in b"RS":
                greeting.append(message)
        self._greeting = greeting
        return wire

    def _give(self, server: _Wire) -> None:
        with self._lock:
            self._idle.append(server)


@contextmanager
def fake_pooler(folder: Path, database: str, *, by_transaction: bool) -> Iterator[str]:
    """The address of a database, through a pooler."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        pooler = Pooler(folder, database, by_transaction=by_transaction)
        thread = threading.Thread(target=pooler.serve, args=(listening,), daemon=True)
        thread.start()
        try:
            yield f"postgresql://quarterdeck@127.0.0.1:{listening.getsockname()[1]}/{database}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(SECONDS)
            pooler.close()
