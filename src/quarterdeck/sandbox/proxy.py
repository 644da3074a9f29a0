"""The proxy for a sandbox whose network is limited: it connects to listed hosts, and reports.

It speaks HTTP: `CONNECT host:port`, and requests for absolute addresses. `open` starts one for each
sandbox; clients reach it over a port of loopback: of the sandbox's own network, whose sockets the
launcher hands over (bubblewrap), or of this machine (Landlock). It cannot see into encrypted
connections: only the name of the host is known.
"""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import stat
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from urllib.parse import unquote, urlsplit

from quarterdeck.domain.structs import Value
from quarterdeck.sandbox.hosts import (
    is_allowed,
    is_local_address,
    is_local_name,
    local_ports,
    normal_name,
    split_host,
)

HEAD_LIMIT = 64 * 1024
HEAD_SECONDS = 30.0
CONNECT_SECONDS = 30.0
CHUNK = 64 * 1024
HAND_OVER_SECONDS = 10.0
MOST_STARTS = 32
"""How often the command of one sandbox can be started: a CLI is also asked for its version."""
_END = b"\r\n\r\n"
_Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]]


class Connection(Value):
    """A connection that was asked of the proxy."""

    host: str
    port: int
    allowed: bool


class Refused(Exception):
    """A request that is not fulfilled: a status and a sentence for the client."""

    def __init__(self, status: str, why: str) -> None:
        self.status = status
        self.why = why
        super().__init__(why)


class Proxy:
    """One proxy. `close` ends it and its connections."""

    def __init__(
        self,
        hosts: Sequence[str],
        on_connection: Callable[[Connection], None] | None = None,
        upstream: str | None = None,
    ) -> None:
        """`upstream` is the address of another proxy, which all but local hosts are reached by."""
        for host in hosts:
            split_host(host)  # raises for an invalid one now, and not with the first connection
        self._hosts = tuple(hosts)
        self._report = on_connection
        self._upstream = urlsplit(upstream) if upstream else None
        self._servers: list[asyncio.Server] = []
        self._open = True
        self._tasks: set[asyncio.Task[None]] = set()

    def take_ports(self, folder: str, name: str) -> None:
        """Serve on sockets that the launcher sends over a Unix socket in a folder.

        The first is for the proxy. The others are for the ports of this machine that are listed,
        in the order of `local_ports`. Blocks for a moment.
        """
        here = _unix_socket(folder, name)
        self._start(self._take_ports(here))

    async def listen_on_loopback(self) -> int:
        """Listen on a port of loopback; returns it."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=HEAD_LIMIT)
        self._servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    def close(self) -> None:
        """Stop listening, and end all connections. Safe to call twice."""
        self._open = False
        for server in self._servers:
            server.close()
        self._servers.clear()
        for task in list(self._tasks):
            task.cancel()

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take_ports(self, here: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with here:
            for _ in range(MOST_STARTS):
                peer, _ = await loop.sock_accept(here)
                with peer, suppress(OSError, ValueError, TimeoutError):
                    # If it breaks off, the launcher ends, and says why.
                    async with asyncio.timeout(HAND_OVER_SECONDS):
                        await self._take_from(peer)

    async def _take_from(self, peer: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        local = local_ports(self._hosts)
        serve: list[_Serve] = [self._serve]
        serve += [partial(self._serve_port, name, port) for port, name in local.items()]
        await _readable(peer)
        _, files, _, _ = socket.recv_fds(peer, 1, len(serve))
        left = list(zip(_sockets(files, len(serve)), serve, strict=True))
        try:
            while left:
                one, each = left[0]
                one.setblocking(False)
                server = await asyncio.start_server(each, sock=one, limit=HEAD_LIMIT)
                self._servers.append(server)
                left.pop(0)
        finally:
            for one, _ in left:
                one.close()
        await loop.sock_sendall(peer, b"x")

    async def _serve_port(
        self, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """A port of the sandbox that leads to the same port of this machine."""
        await self._serve_connection(self._pass_on(host, port, reader, writer), writer, says=False)

    async def _pass_on(
        self, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        out_reader, out_writer, _ = await self._connect(host, port)
        try:
            await _both_ways(reader, writer, out_reader, out_writer)
        finally:
            out_writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._serve_connection(self._answer(reader, writer), writer)

    async def _serve_connection(
        self, work: Coroutine[None, None, None], writer: asyncio.StreamWriter, *, says: bool = True
    ) -> None:
        """Serve one connection to its end. `says`: the client is told why it is refused."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await work
        except Refused as refused:
            if says:
                await _refuse(writer, refused)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass
        except asyncio.CancelledError:
            if self._open:
                raise
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_SECONDS):
            head = await reader.readuntil(_END)
        method, target, rest = _request(head)
        if method == "CONNECT":
            host, port = _target(target)
            path = None
        else:
            host, port, path = _absolute(target)
        out_reader, out_writer, by_proxy = await self._connect(host, port)
        try:
            if path is None:
                if by_proxy:
                    await self._tunnel(out_reader, out_writer, host, port)
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                first = target if by_proxy else path
                out_writer.write(_forward_head(method, first, rest, self._credentials(by_proxy)))
            await _both_ways(reader, writer, out_reader, out_writer)
        finally:
            out_writer.close()

    async def _connect(
        self, host: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bool]:
        allowed = is_allowed(host, port, self._hosts)
        try:
            if not allowed:
                raise Refused("403 Forbidden", f"{host}:{port} is not a host that is allowed.")
            upstream = self._upstream
            if upstream is not None and not is_local_name(host):
                return (*await _open(upstream.hostname or "", upstream.port or 80), True)
            address = host if is_local_name(host) else await self._look_up(host, port)
            return (*await _open(address, port), False)
        except Refused:
            allowed = False
            raise
        except (OSError, TimeoutError) as error:
            raise Refused("502 Bad Gateway", f"{host}:{port}: {error}") from error
        finally:
            if self._report is not None:
                self._report(Connection(host=normal_name(host), port=port, allowed=allowed))

    async def _look_up(self, host: str, port: int) -> str:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_SECONDS):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [str(each[4][0]) for each in found]
        if any(map(is_local_address, addresses)):
            raise Refused("403 Forbidden", f"{host} leads to this machine itself.")
        return addresses[0]

    async def _tunnel(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int
    ) -> None:
        to = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        head = f"CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n".encode()
        writer.write(head + self._credentials(True) + b"\r\n")
        async with asyncio.timeout(CONNECT_SECONDS):
            answer = await reader.readuntil(_END)
        if answer.split(b" ", 2)[1:2] != [b"200"]:
            raise Refused("502 Bad Gateway", f"{host}:{port}: the proxy of the network refused it.")

    def _credentials(self, by_proxy: bool) -> bytes:
        upstream = self._upstream
        if not by_proxy or upstream is None or upstream.username is None:
            return b""
        pair = f"{unquote(upstream.username)}:{unquote(upstream.password or '')}"
        return b"Proxy-Authorization: Basic " + base64.b64encode(pair.encode()) + b"\r\n"


async def _refuse(writer: asyncio.StreamWriter, refused: Refused) -> None:
    text = f"Quarterdeck's sandbox: {refused.why}\n"
    head = f"HTTP/1.1 {refused.status}\r\nConnection: close\r\nContent-Type: text/plain\r\n"
    with suppress(OSError):
        writer.write(f"{head}Content-Length: {len(text)}\r\n\r\n{text}".encode())
        await writer.drain()


def _unix_socket(folder: str, name: str) -> socket.socket:
    """A Unix socket that listens in a folder."""
    made = socket.socket(socket.AF_UNIX)
    at = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        made.bind(f"/proc/self/fd/{at}/{name}")  # the path of a socket must be short
        made.listen(1)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    finally:
        os.close(at)
    return made


def _sockets(files: Sequence[int], count: int) -> list[socket.socket]:
    """The sockets that were received. Raises `ValueError` if they are not that many sockets."""
    if len(files) == count and all(stat.S_ISSOCK(os.fstat(file).st_mode) for file in files):
        return [socket.socket(fileno=file) for file in files]
    for file in files:
        os.close(file)
    raise ValueError("these are not the sockets that were expected")


async def _readable(one: socket.socket) -> None:
    """Wait until there is something to read."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(one, ready.set_result, None)
    try:
        await ready
    finally:
        loop.remove_reader(one)


async def _open(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    async with asyncio.timeout(CONNECT_SECONDS):
        return await asyncio.open_connection(host, port)


def _request(head: bytes) -> tuple[str, str, bytes]:
    line, _, rest = head.partition(b"\r\n")
    parts = line.decode("latin-1").split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise Refused("400 Bad Request", "This is no request for a proxy.")
    return parts[0], parts[1], rest


def _target(target: str) -> tuple[str, int]:
    try:
        host, port = split_host(target)
    except ValueError as error:
        raise Refused("400 Bad Request", str(error)) from error
    if port is None:
        raise Refused("400 Bad Request", "A port is missing.")
    return host, port


def _absolute(target: str) -> tuple[str, int, str]:
    try:
        parts = urlsplit(target)
        port = parts.port or 80
    except ValueError as error:
        raise Refused("400 Bad Request", str(error)) from error
    if parts.scheme != "http" or not parts.hostname:
        raise Refused("400 Bad Request", "An absolute address of http is wanted.")
    path = target.partition("://")[2].partition("/")[2]
    return parts.hostname, port, f"/{path}"


def _forward_head(method: str, target: str, headers: bytes, credentials: bytes) -> bytes:
    """The request as the server gets it: one for each connection, and nothing for proxies."""
    lines = [
        line
        for line in headers.removesuffix(_END).split(b"\r\n")
        if line and not line.lower().startswith((b"proxy-", b"connection:", b"keep-alive:"))
    ]
    start = f"{method} {target} HTTP/1.1\r\n".encode("latin-1")
    return start + credentials + b"\r\n".join([*lines, b"Connection: close"]) + _END


async def _both_ways(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    out_reader: asyncio.StreamReader,
    out_writer: asyncio.StreamWriter,
) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(_copy(reader, out_writer))
        group.create_task(_copy(out_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
