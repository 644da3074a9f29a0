from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.http import Access, Listen, make_app, serve
from quarterdeck.runtime.client_tls import client_context
from quarterdeck.runtime.local_ca import LocalCa, Names
from quarterdeck.runtime.tls import CertificateFile
from support.bounds import SECONDS
from support.small_deck import SmallDeck

NOW = datetime.now(UTC)
NAMES = Names.of(["localhost", "127.0.0.1"])
LOOK_SECONDS = 0.02


def authority(folder: Path, names: Names = NAMES, now: datetime = NOW) -> LocalCa:
    made = LocalCa.open(folder, names, now, owner="box")
    made.renew(names, now)
    return made


@asynccontextmanager
async def served(tmp_path: Path, listen: Listen) -> AsyncIterator[int]:
    app = make_app(SmallDeck(), Access(tmp_path / "data"))
    async with serve(app, listen, look_seconds=LOOK_SECONDS) as url:
        yield int(url.rpartition(":")[2])


async def seen(port: int, ca: Path, name: str = "localhost") -> bytes:
    """The certificate that a client gets who wants this name; it must trust it."""

    def look() -> bytes:
        with (
            socket.create_connection(("127.0.0.1", port), SECONDS) as plain,
            client_context(ca).wrap_socket(plain, server_hostname=name) as secure,
        ):
            return secure.getpeercert(binary_form=True) or b""

    return await anyio.to_thread.run_sync(look)


async def until_changed(port: int, ca: Path, before: bytes) -> bytes:
    with anyio.fail_after(SECONDS):
        while (found := await seen(port, ca)) == before:  # noqa: ASYNC110 - another machine's view
            await anyio.sleep(LOOK_SECONDS)
    return found


async def test_a_renewed_certificate_is_used_without_a_restart(tmp_path: Path) -> None:
    ca = authority(tmp_path / "tls", now=NOW - timedelta(days=25))
    async with served(tmp_path, Listen(port=0, certificate=ca.hub_file)) as port:
        first = await seen(port, ca.ca_file)
        assert ca.renew(NAMES, NOW)
        await until_changed(port, ca.ca_file, first)


async def test_a_broken_file_is_logged_and_the_certificate_before_it_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ca = authority(tmp_path / "tls")
    async with served(tmp_path, Listen(port=0, certificate=ca.hub_file)) as port:
        first = await seen(port, ca.ca_file)
        with caplog.at_level(logging.ERROR):
            ca.hub_file.write_bytes(b"half of a file")
            with anyio.fail_after(SECONDS):
                while "cannot be used" not in caplog.text:  # noqa: ASYNC110 - a log has no event
                    await anyio.sleep(LOOK_SECONDS)
        assert await seen(port, ca.ca_file) == first
        ca.hub_file.unlink()
        assert ca.renew(NAMES, NOW)
        await until_changed(port, ca.ca_file, first)


async def test_the_certificate_is_chosen_by_the_name_that_the_client_wants(tmp_path: Path) -> None:
    ca = authority(tmp_path / "tls")
    other = authority(tmp_path / "other", Names.of(["box.local"]))
    later = tmp_path / "later.pem"
    named = {
        "box.local": CertificateFile(certificate=other.hub_file),
        "later.local": CertificateFile(certificate=later),
    }
    async with served(tmp_path, Listen(port=0, certificate=ca.hub_file, named=named)) as port:
        assert await seen(port, ca.ca_file) != await seen(port, other.ca_file, "BOX.local")
        with pytest.raises(ssl.SSLCertVerificationError):
            await seen(port, other.ca_file, "later.local")
        third = authority(tmp_path / "third", Names.of(["later.local"]))
        third.hub_file.rename(later)
        with anyio.fail_after(SECONDS):
            while True:
                try:
                    assert await seen(port, third.ca_file, "later.local")
                    break
                except ssl.SSLCertVerificationError:
                    await anyio.sleep(LOOK_SECONDS)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_old_versions_of_tls_are_refused(tmp_path: Path) -> None:
    ca = authority(tmp_path / "tls")
    async with served(tmp_path, Listen(port=0, certificate=ca.hub_file)) as port:

        def look(version: ssl.TLSVersion) -> str | None:
            context = client_context(ca.ca_file)
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = version
            with (
                socket.create_connection(("127.0.0.1", port), SECONDS) as plain,
                context.wrap_socket(plain, server_hostname="localhost") as secure,
            ):
                return secure.version()

        assert await anyio.to_thread.run_sync(look, ssl.TLSVersion.TLSv1_2) == "TLSv1.2"
        for old in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
            with pytest.raises(ssl.SSLError):
                await anyio.to_thread.run_sync(look, old)


def test_a_file_that_is_no_authority_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("not one")
    for name in ("ca.crt", "missing.crt"):
        with pytest.raises(UsageError, match=name):
            client_context(tmp_path / name)
