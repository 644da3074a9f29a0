"""The authorities of the system: a folder of them is enough, if it has all."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quarterdeck.runtime.client_tls import system_context
from quarterdeck.runtime.local_ca import LocalCa, Names

NAMES = Names.of(["localhost"])


def authority(folder: Path, owner: str) -> LocalCa:
    now = datetime.now(UTC)
    made = LocalCa.open(folder / owner, NAMES, now, owner=owner)
    made.renew(NAMES, now)
    return made


def store(folder: Path, authorities: list[LocalCa]) -> None:
    """Store certificates as OpenSSL finds them in a folder."""
    folder.mkdir()
    for made in authorities:
        done = subprocess.run(
            ["openssl", "x509", "-noout", "-subject_hash", "-in", str(made.ca_file)],
            capture_output=True,
            text=True,
            check=True,
        )
        shutil.copy(made.ca_file, folder / f"{done.stdout.strip()}.0")


def is_trusted(context: ssl.SSLContext, server: LocalCa) -> bool:
    """Whether a client with this context accepts a server, without a network."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(server.hub_file)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = context.wrap_bio(to_client, to_server, server_hostname="localhost")
    theirs = serving.wrap_bio(to_server, to_client, server_side=True)
    steps: list[Callable[[], None]] = [ours.do_handshake, theirs.do_handshake] * 3
    for step in steps:
        try:
            step()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLCertVerificationError:
            return False
    return ours.version() is not None


@pytest.mark.process
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl names the certificates")
@pytest.mark.parametrize(("missing", "loaded"), [(0, 0), (1, 2)])
def test_a_folder_that_has_all_authorities_is_read_when_one_is_needed(
    missing: int, loaded: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [authority(tmp_path, "one"), authority(tmp_path, "two")]
    file = tmp_path / "all.pem"
    file.write_bytes(b"".join(made.pem for made in known))
    store(tmp_path / "folder", known[missing:])
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "folder"))
    context = system_context()
    assert len(context.get_ca_certs()) == loaded
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    for made in known:
        assert is_trusted(context, made)
    assert not is_trusted(context, authority(tmp_path, "stranger"))


def test_without_a_folder_all_authorities_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "all.pem"
    file.write_bytes(authority(tmp_path, "one").pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "nowhere"))
    assert len(system_context().get_ca_certs()) == 1
