"""A limited network: only listed hosts are reached, by the proxy, and each attempt is reported."""

from __future__ import annotations

import asyncio
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from quarterdeck.sandbox import Connection, Kind, Network, NetworkKind, SandboxSpec
from quarterdeck.sandbox.proxy import Proxy
from support.boxes import KINDS, World, python

pytestmark = [pytest.mark.process, pytest.mark.skipif(sys.platform != "linux", reason="Linux")]

ANSWER = "an answer from outside"


class Server:
    """An HTTP server on loopback, outside of every sandbox, that keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head)
        body = ANSWER.encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    async with await asyncio.start_server(made.serve, "127.0.0.1", 0) as listening:
        made.port = listening.sockets[0].getsockname()[1]
        yield made


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def udp() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(("127.0.0.1", 0))
        made.settimeout(0)
        yield made


def limited(world: World, *hosts: str, model: str = "https://model.example") -> SandboxSpec:
    kind = NetworkKind.HOSTS if hosts else NetworkKind.MODEL
    return world.spec(network=Network(kind=kind, hosts=hosts), model_url=model)


FETCH = python("import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())")
DIRECT = python(
    "import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10);"
    ' s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n"); print(s.recv(1000).decode())'
)
TUNNEL = python(
    "import os, socket, sys; from urllib.parse import urlsplit as f;"
    ' p = f(os.environ["HTTPS_PROXY"]); s = socket.create_connection((p.hostname, p.port));'
    ' s.sendall(f"CONNECT {sys.argv[1]} HTTP/1.1\\r\\n\\r\\n".encode());'
    " print(s.recv(1000).decode());"
    ' s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n"); print(s.recv(1000).decode())'
)
DATAGRAM = python(
    "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
    ' s.sendto(b"out", ("127.0.0.1", int(sys.argv[1]))); print("sent")'
)
FAST_OPEN = python(
    "import socket, sys; s = socket.socket();"
    ' s.sendto(b"GET / HTTP/1.0\\r\\n\\r\\n", 0x20000000, ("127.0.0.1", int(sys.argv[1])));'
    " print(s.recv(1000).decode())"
)
MULTIPATH = python(
    "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262);"
    ' s.connect(("127.0.0.1", int(sys.argv[1])));'
    ' s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n"); print(s.recv(1000).decode())'
)


@pytest.mark.parametrize("kind", [None, *KINDS])
@pytest.mark.parametrize(
    "way",
    [f"{DIRECT} 127.0.0.1", FAST_OPEN, MULTIPATH],
    ids=["a connection", "fast open", "multipath"],
)
async def test_nothing_else_is_dialled(
    way: str, kind: Kind | None, world: World, server: Server
) -> None:
    done = await world.run(kind, f"{way} {server.port}", limited(world, "example.org"))
    if kind is None and "not supported" in done.err + done.out:
        pytest.skip("the kernel has no such sockets")
    assert (ANSWER in done.out) is (kind is None), done
    assert bool(server.asked) is (kind is None)
    assert kind is None or "Error" in done.err  # it was Python that failed, and not the sandbox
    assert "quarterdeck" not in done.err


@pytest.mark.parametrize("kind", [None, *KINDS])
async def test_no_datagram_gets_out(kind: Kind | None, world: World, udp: socket.socket) -> None:
    port = udp.getsockname()[1]
    await world.run(kind, f"{DATAGRAM} {port}", limited(world, "example.org"))
    if kind is None:
        assert udp.recv(100) == b"out"
    else:
        with pytest.raises(BlockingIOError):
            udp.recv(100)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_listed_host_is_reached_by_the_proxy(
    kind: Kind, world: World, server: Server
) -> None:
    spec = limited(world, f"localhost:{server.port}")
    done = await world.run(kind, f"{TUNNEL} localhost:{server.port}", spec)
    assert "200 Connection established" in done.out, done
    assert ANSWER in done.out
    assert world.connections == [Connection(host="localhost", port=server.port, allowed=True)]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_host_that_is_not_listed_is_refused_and_reported(
    kind: Kind, world: World, server: Server
) -> None:
    spec = limited(world, "example.org")
    done = await world.run(kind, f"{TUNNEL} localhost:{server.port}", spec)
    assert "403 Forbidden" in done.out
    assert f"localhost:{server.port} is not a host that is allowed" in done.out
    assert server.asked == []
    assert world.connections == [Connection(host="localhost", port=server.port, allowed=False)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
async def test_the_model_on_loopback_is_reached_as_before(
    name: str, kind: Kind, world: World, server: Server
) -> None:
    url = f"http://{name}:{server.port}"
    done = await world.run(kind, f"{FETCH} {url}/v1", limited(world, model=url))
    assert ANSWER in done.out, done
    assert server.asked[0].startswith("GET /v1 ")


async def test_a_server_of_the_agent_is_reached_in_bubblewrap(world: World) -> None:
    script = python(
        'import socket; s = socket.create_server(("127.0.0.1", 0));'
        ' c = socket.create_connection(s.getsockname()); print("met")'
    )
    done = await world.run(Kind.BUBBLEWRAP, script, limited(world, "example.org"))
    assert "met" in done.out, done


async def test_a_model_may_have_the_port_of_the_proxy(world: World) -> None:
    """The port of the model is the model's; the proxy takes another."""
    spec = limited(world, model="http://127.0.0.1:3128")
    done = await world.run(Kind.BUBBLEWRAP, f"echo $HTTPS_PROXY; {TUNNEL} example.org:443", spec)
    assert done.out.startswith("http://127.0.0.1:3129\n"), done
    assert "403 Forbidden" in done.out


@pytest.fixture
def temporary(world: World, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files that is none to bubblewrap, and too deep for a socket."""
    made = world.folder / ("deep" * 20)
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    return made


async def test_nothing_starts_if_the_proxy_is_gone(world: World, temporary: Path) -> None:
    """As when the runner is killed while bubblewrap makes the mounts."""
    script = ["sh", "-c", f"echo {ANSWER} > src/ran"]
    box = await world.open(Kind.BUBBLEWRAP, script, limited(world, "example.org"))
    try:
        (own,) = await asyncio.to_thread(lambda: list(temporary.glob("*/ports")))
        own.unlink()
        process = await asyncio.create_subprocess_exec(
            *box.command, env=box.env, cwd=world.project, stderr=asyncio.subprocess.PIPE
        )
        _, said = await process.communicate()
    finally:
        box.close()
    assert process.returncode != 0
    assert b"the sandbox could not be made: its network: " in said
    assert not (world.project / "src" / "ran").exists()


async def test_the_socket_for_ports_is_hidden(world: World, temporary: Path) -> None:
    script = f"ls {temporary}/quarterdeck-sandbox-*; {TUNNEL} example.org:443"
    done = await world.run(Kind.BUBBLEWRAP, script, limited(world, "other.example"))
    assert "403 Forbidden" in done.out, done
    assert "ports" not in done.out


async def test_the_proxy_takes_nothing_but_the_sockets_that_it_waits_for(tmp_path: Path) -> None:
    """Nothing, a file, or too few sockets: the next launcher is served all the same."""
    proxy = Proxy(["127.0.0.1:9"])
    proxy.take_ports(str(tmp_path), "ports")
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    port = servers[0].getsockname()[1]
    with (tmp_path / "file").open("wb") as file:
        odd: list[list[int]] = [[], [file.fileno(), file.fileno()], [servers[0].fileno()]]
        try:
            for given in odd:
                assert await _hand_over(tmp_path / "ports", given) == b""
            assert await _hand_over(tmp_path / "ports", [s.fileno() for s in servers]) == b"x"
            answer = await ask(port, "CONNECT example.org:443 HTTP/1.1\r\n\r\n")
        finally:
            proxy.close()
            for server in servers:
                server.close()
    assert answer.startswith("HTTP/1.1 403 ")


async def _hand_over(path: Path, files: list[int]) -> bytes:
    """Send descriptors as the launcher does; returns the answer."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX) as peer:
        peer.setblocking(False)
        await loop.sock_connect(peer, str(path))
        socket.send_fds(peer, [b"x"], files)
        return await loop.sock_recv(peer, 1)


async def test_the_sandbox_has_no_process_for_its_network(world: World) -> None:
    script = "cat /proc/[0-9]*/comm"
    done = await world.run(Kind.BUBBLEWRAP, script, limited(world, "example.org"))
    assert {"bwrap", "sh"} <= {*done.out.split()} <= {"bwrap", "sh", "cat"}, done


async def test_much_data_passes_in_both_directions(world: World) -> None:
    """More than every buffer on the way holds, from a side that does not read meanwhile."""
    size = 5 * 1024 * 1024

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    script = python(
        "import socket, sys, threading;"
        ' s = socket.create_connection(("127.0.0.1", int(sys.argv[1]))); n = int(sys.argv[2]);'
        " t = threading.Thread(target=lambda: (s.sendall(bytes(n)), s.shutdown(1))); t.start();"
        ' print(sum(len(x) for x in iter(lambda: s.recv(65536), b"")))'
    )
    async with await asyncio.start_server(echo, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        spec = limited(world, model=f"http://127.0.0.1:{port}")
        done = await world.run(Kind.BUBBLEWRAP, f"{script} {port} {size}", spec)
    assert done.out.strip() == str(size), done


# --- the proxy alone -----------------------------------------------------------------------------


async def ask(port: int, request: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    answer = await reader.read()
    writer.close()
    return answer.decode()


async def test_a_plain_request_is_passed_on_without_headers_for_proxies(server: Server) -> None:
    proxy = Proxy([f"127.0.0.1:{server.port}"])
    port = await proxy.listen_on_loopback()
    try:
        answer = await ask(
            port,
            f"GET http://127.0.0.1:{server.port}/a?b=c HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            "Proxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\n\r\n",
        )
    finally:
        proxy.close()
    assert ANSWER in answer
    assert server.asked == ["GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        ("GET ftp://example.org/ HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT example.org HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT example.org:99999 HTTP/1.1\r\n\r\n", "400"),
        ("hello\r\n\r\n", "400"),
        ("CONNECT other.example:443 HTTP/1.1\r\n\r\n", "403"),
    ],
)
async def test_a_request_that_is_none_gets_an_answer(request_: str, status: str) -> None:
    proxy = Proxy(["example.org"])
    port = await proxy.listen_on_loopback()
    try:
        assert (await ask(port, request_)).startswith(f"HTTP/1.1 {status} ")
    finally:
        proxy.close()


async def test_an_allowed_name_does_not_lead_to_this_machine(
    monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    async def lookup(*_: object, **__: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.port))]

    seen: list[Connection] = []
    proxy = Proxy(["trick.example"], seen.append)
    port = await proxy.listen_on_loopback()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        monkeypatch.setattr(type(asyncio.get_running_loop()), "getaddrinfo", lookup)
        writer.write(f"CONNECT trick.example:{server.port} HTTP/1.1\r\n\r\n".encode())
        answer = (await reader.read()).decode()
        writer.close()
    finally:
        proxy.close()
    assert answer.startswith("HTTP/1.1 403 ")
    assert "leads to this machine itself" in answer
    assert seen == [Connection(host="trick.example", port=server.port, allowed=False)]
    assert server.asked == []


async def test_hosts_are_reached_through_the_proxy_of_the_network() -> None:
    heads: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        writer.write(await reader.readexactly(4))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as upstream:
        there = upstream.sockets[0].getsockname()[1]
        seen: list[Connection] = []
        proxy = Proxy(["example.org"], seen.append, f"http://me:pass@127.0.0.1:{there}")
        port = await proxy.listen_on_loopback()
        try:
            answer = await ask(port, "CONNECT example.org:443 HTTP/1.1\r\n\r\nping")
        finally:
            proxy.close()
    assert answer.endswith("\r\n\r\nping")
    (head,) = heads
    assert head.splitlines()[:2] == ["CONNECT example.org:443 HTTP/1.1", "Host: example.org:443"]
    assert head.endswith("\r\nProxy-Authorization: Basic bWU6cGFzcw==\r\n\r\n")
    assert seen == [Connection(host="example.org", port=443, allowed=True)]
