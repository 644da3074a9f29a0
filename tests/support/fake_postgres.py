"""A server that speaks the beginning of PostgreSQL's protocol, and then does what a real one does
not: it is too old, says nothing, or says nonsense.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from support.bounds import SECONDS

SECURE = (80877103, 80877104)
"""The codes of a request for TLS and for GSSAPI."""


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack(">i", len(body) + 4) + body


def _setting(name: str, value: str) -> bytes:
    return _message(b"S", f"{name}\0{value}\0".encode())


def greeting(version: str) -> bytes:
    """What a server of this version says to anybody."""
    return b"".join(
        (
            _message(b"R", struct.pack(">i", 0)),
            _setting("server_version", version),
            _setting("client_encoding", "UTF8"),
            _setting("standard_conforming_strings", "on"),
            _message(b"K", struct.pack(">ii", 1, 1)),
            _message(b"Z", b"I"),
        )
    )


@contextmanager
def fake_postgres(answer: bytes | None) -> Iterator[int]:
    """Serve on a port. `answer`: what follows a start-up message; None: nothing ever."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        open_: list[socket.socket] = []
        thread = threading.Thread(target=_serve, args=(listening, answer, open_), daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(SECONDS)
            for each in open_:
                each.close()


def _serve(listening: socket.socket, answer: bytes | None, open_: list[socket.socket]) -> None:
    with suppress(OSError):  # it was closed
        while True:
            connection, _ = listening.accept()
            connection.settimeout(SECONDS)
            open_.append(connection)
            if answer is not None:
                with suppress(OSError):
                    _greet(connection, answer)


def _greet(connection: socket.socket, answer: bytes) -> None:
    while head := connection.recv(8, socket.MSG_WAITALL):
        length, code = struct.unpack(">ii", head)
        if code in SECURE:
            connection.sendall(b"N")
            continue
        connection.recv(length - 8, socket.MSG_WAITALL)
        connection.sendall(answer)
        return
