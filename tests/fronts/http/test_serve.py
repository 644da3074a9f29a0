from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import ssl
import subprocess
from pathlib import Path

import anyio
import httpx
import pytest

from quarterdeck.domain.errors import LinkRefused, UsageError
from quarterdeck.fronts.http import Access, Listen, Places, Role, make_app, serve
from quarterdeck.protocol.commands import CreateSession
from quarterdeck.protocol.sessions import SessionSpec
from support.bounds import SECONDS
from support.small_deck import SmallDeck
from support.web_sockets import connect


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost, signed by itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    openssl = shutil.which("openssl")
    assert openssl is not None
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")),
        ],
        check=True,
        capture_output=True,
        timeout=SECONDS,
    )
    return folder / "cert.pem", folder / "key.pem"


@pytest.mark.process
async def test_with_a_certificate_everything_goes_over_tls(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
    access = Access(tmp_path, places=Places.of(hosts=("hub.example",)))
    trust = ssl.create_default_context(cafile=str(cert))
    bearer = {"authorization": f"Bearer {access.make_token('me', Role.OWNER)}"}
    listen = Listen(port=0, certificate=cert, key=key)
    async with serve(make_app(SmallDeck(), access), listen) as url:
        assert url.startswith("https://127.0.0.1:")
        async with httpx.AsyncClient(
            base_url=url, verify=trust, headers=bearer, timeout=SECONDS
        ) as client:
            answer = await client.get("/api/whoami", headers={"origin": url})
            assert answer.status_code == 200
            # It would hold for every port of this name: of loopback, other programs need some.
            assert "strict-transport-security" not in answer.headers
            named = await client.get("/api/whoami", headers={"host": "hub.example"})
            assert "strict-transport-security" in named.headers
            login = await client.post("/login", json={"code": access.make_code()})
            assert "; Secure" in login.headers["set-cookie"]
        stream = url.replace("https", "wss") + "/api/stream"
        async with connect(stream, additional_headers=bearer, ssl=trust, proxy=None) as talk:
            assert '"hello"' in str(await talk.recv())


async def test_a_certificate_that_cannot_be_read_is_told_before_anything_is_served(
    tmp_path: Path,
) -> None:
    (tmp_path / "cert.pem").write_text("not one")
    app = make_app(SmallDeck(), Access(tmp_path))
    for file in ("cert.pem", "missing.pem"):
        with pytest.raises(UsageError, match=file):
            async with serve(app, Listen(port=0, certificate=tmp_path / file)):
                pass
    with pytest.raises(UsageError, match="key"):
        Listen(key=tmp_path / "key.pem")


async def test_an_address_that_is_taken_is_told(tmp_path: Path) -> None:
    app = make_app(SmallDeck(), Access(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LinkRefused, match=str(port)):
            async with serve(app, Listen(port=port)):
                pass


async def test_the_end_is_bounded_whatever_clients_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    deck = SmallDeck()
    await deck.submit(CreateSession(spec=SessionSpec(directory="/x"), session="s1", by="me"))
    access = Access(tmp_path / "other")
    bearer = {"authorization": f"Bearer {access.make_token('me', Role.OWNER)}"}
    with anyio.fail_after(SECONDS):
        async with (
            anyio.create_task_group() as group,
            serve(make_app(deck, access), Listen(port=0)) as url,
        ):

            async def stuck() -> None:
                body = {"spec": {"directory": "/x"}}
                async with httpx.AsyncClient(
                    base_url=url, headers=bearer, timeout=SECONDS
                ) as client:
                    answer = await client.post("/api/sessions", json=body)
                    assert (answer.status_code, answer.json()["code"]) == (503, "stopping")

            async def following() -> None:
                stream = url.replace("http", "ws") + "/api/stream"
                async with connect(stream, additional_headers=bearer, proxy=None) as talk:
                    await talk.wait_closed()
                    assert talk.close_code == 1012

            async def reading() -> None:
                path = "/api/sessions/s1/events"
                accept = bearer | {"accept": "text/event-stream"}
                async with (
                    httpx.AsyncClient(base_url=url, headers=accept, timeout=SECONDS) as client,
                    client.stream("GET", path) as answer,
                ):
                    reached.set()
                    with contextlib.suppress(httpx.RemoteProtocolError):
                        await answer.aread()

            reached = anyio.Event()
            group.start_soon(reading)
            await reached.wait()
            deck.hold = anyio.Event()
            group.start_soon(stuck)
            group.start_soon(following)
            while len(deck.submitted) < 2:  # noqa: ASYNC110  (a list has no event to offer)
                await anyio.sleep(0.01)
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_signals_of_the_program_are_left_alone(
    number: signal.Signals, tmp_path: Path
) -> None:
    def own(*_: object) -> None:
        """What a program does about the signal."""

    before = signal.signal(number, own)  # whatever the tests were started with: SIG_IGN in a shell
    try:
        async with serve(make_app(SmallDeck(), Access(tmp_path)), Listen(port=0)):
            assert signal.getsignal(number) is own
        assert signal.getsignal(number) is own
    finally:
        signal.signal(number, before)


async def test_an_error_of_the_block_comes_out_as_it_is(tmp_path: Path) -> None:
    app = make_app(SmallDeck(), Access(tmp_path))
    with pytest.raises(KeyError, match="mine"):
        async with serve(app, Listen(port=0)):
            raise KeyError("mine")
