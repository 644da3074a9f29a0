from __future__ import annotations

import os
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from quarterdeck.domain.errors import UsageError
from quarterdeck.runtime.client_tls import client_context
from quarterdeck.runtime.local_ca import (
    AUTHORITY,
    AUTHORITY_LIFE,
    HUB_CERTIFICATE,
    LEAF_LIFE,
    RENEW_BEFORE,
    LocalCa,
    Names,
    _make_leaf,
    _pem,
    _private_pem,
    read_certificate,
)
from quarterdeck.runtime.tls import CertificateFile
from support.bounds import SECONDS

NOW = datetime.now(UTC).replace(microsecond=0)
NAMES = Names.of(["localhost", "127.0.0.1", "::1", "box", "box.local"])


def make(folder: Path, names: Names = NAMES, now: datetime = NOW) -> LocalCa:
    made = LocalCa.open(folder, names, now, owner="box")
    made.renew(names, now)
    return made


def handshake(server: Path, trusted: Path, name: str) -> str:
    """Connect to a server with a certificate; gives the error of the client, or nothing."""
    here, there = socket.socketpair()
    here.settimeout(SECONDS)
    there.settimeout(SECONDS)

    def serve() -> None:
        try:
            context = CertificateFile(certificate=server).context()
            with context.wrap_socket(there, server_side=True) as secure:
                secure.recv(1)
        except OSError:
            there.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client_context(trusted).wrap_socket(here, server_hostname=name) as secure:
            secure.send(b"x")
            return ""
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    finally:
        here.close()
        thread.join(SECONDS)


def test_names_and_addresses_are_told_apart_and_what_is_neither_is_left_out() -> None:
    given = ["Box.Local.", "[::1]", "192.168.1.2", "0.0.0.0", "a b", "-x", "", "fe80::1%eth0", "*"]
    assert Names.of(given) == Names(dns=("box.local",), addresses=("192.168.1.2", "::1", "fe80::1"))


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1", "box", "box.local"])
def test_who_trusts_the_authority_trusts_the_hub_by_each_name(tmp_path: Path, name: str) -> None:
    ca = make(tmp_path / "tls")
    assert handshake(ca.hub_file, ca.ca_file, name) == ""


def test_another_name_and_another_authority_are_refused(tmp_path: Path) -> None:
    ca, other = make(tmp_path / "tls"), make(tmp_path / "other")
    assert "not valid for" in handshake(ca.hub_file, ca.ca_file, "elsewhere.local")
    assert "unable to get local issuer" in handshake(ca.hub_file, other.ca_file, "localhost")


@pytest.mark.parametrize("name", ["bank.example", "8.8.8.8", "boxx", "2001:4860:4860::8888"])
def test_with_a_stolen_key_nobody_can_pretend_to_be_another_site(tmp_path: Path, name: str) -> None:
    ca = make(tmp_path / "tls")
    assert ca.allowed_names(Names.of([name])) == Names()
    pem = (ca.folder / AUTHORITY).read_bytes()
    key = load_pem_private_key(pem, None)
    certificate = x509.load_pem_x509_certificate(pem)
    assert isinstance(key, type(ca._key))
    forged = tmp_path / "forged.pem"
    forged.write_bytes(
        _private_pem(key) + _pem(_make_leaf(key, Names.of([name]), NOW, key, certificate))
    )
    assert "permitted subtree violation" in handshake(forged, ca.ca_file, name)


def test_an_address_on_the_internet_that_the_machine_has_is_signed(tmp_path: Path) -> None:
    ca = make(tmp_path / "tls", Names.of(["8.8.4.4", "hub.example"]))
    assert read_certificate(ca.hub_file).names == Names.of(["8.8.4.4", "hub.example"])
    assert handshake(ca.hub_file, ca.ca_file, "hub.example") == ""


@pytest.mark.parametrize(
    ("later", "renewed"),
    [
        (timedelta(0), False),
        (LEAF_LIFE - RENEW_BEFORE - timedelta(hours=1), False),
        (LEAF_LIFE - RENEW_BEFORE + timedelta(hours=1), True),
        (LEAF_LIFE + timedelta(days=100), True),
        (timedelta(days=-2), True),
    ],
)
def test_a_certificate_is_renewed_before_it_ends(
    tmp_path: Path, later: timedelta, *, renewed: bool
) -> None:
    ca = make(tmp_path / "tls")
    first = read_certificate(ca.hub_file)
    authority = ca.described
    again = LocalCa.open(tmp_path / "tls", NAMES, NOW + later, owner="box")
    assert again.renew(NAMES, NOW + later) is renewed
    found = read_certificate(again.hub_file)
    assert (found.fingerprint != first.fingerprint) is renewed
    assert found.begins <= NOW + later < found.ends - RENEW_BEFORE
    assert again.described == authority, "devices go on trusting it"


def test_a_new_name_is_signed_at_once_and_a_lost_one_needs_nothing(tmp_path: Path) -> None:
    ca = make(tmp_path / "tls")
    more = Names.of([*NAMES, "192.168.7.7"])
    assert ca.renew(more, NOW)
    assert read_certificate(ca.hub_file).names == more
    assert not ca.renew(NAMES, NOW)


def test_an_authority_that_ends_is_replaced(tmp_path: Path) -> None:
    first = make(tmp_path / "tls").described
    second = make(tmp_path / "tls", now=NOW + AUTHORITY_LIFE - timedelta(days=1))
    assert second.described.fingerprint != first.fingerprint
    assert second.ca_file.read_bytes() == second.pem


def test_all_files_are_for_their_user_only(tmp_path: Path) -> None:
    folder = make(tmp_path / "tls").folder
    assert folder.stat().st_mode & 0o077 == 0
    for file in folder.iterdir():
        assert file.stat().st_mode & 0o077 == 0, file


@pytest.mark.parametrize("name", [AUTHORITY, HUB_CERTIFICATE])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, name: str) -> None:
    ca = make(tmp_path / "tls")
    (ca.folder / name).chmod(0o640)
    with pytest.raises(UsageError, match="other users may read this key"):
        make(tmp_path / "tls")


def test_a_key_behind_a_link_is_refused(tmp_path: Path) -> None:
    ca = make(tmp_path / "tls")
    file = ca.folder / AUTHORITY
    file.rename(tmp_path / "moved.pem")
    file.symlink_to(tmp_path / "moved.pem")
    with pytest.raises(UsageError, match="an ordinary file"):
        make(tmp_path / "tls")


@pytest.mark.parametrize("damage", [b"", b"not one", b"half"])
def test_a_broken_authority_is_told_and_not_replaced(tmp_path: Path, damage: bytes) -> None:
    ca = make(tmp_path / "tls")
    file = ca.folder / AUTHORITY
    whole = file.read_bytes()
    left = whole[: len(whole) // 2] if damage == b"half" else damage
    file.write_bytes(left)
    with pytest.raises(UsageError, match="no certificate with its key"):
        make(tmp_path / "tls")
    assert file.read_bytes() == left


def test_a_broken_certificate_of_the_hub_is_replaced(tmp_path: Path) -> None:
    ca = make(tmp_path / "tls")
    ca.hub_file.write_bytes(b"not one")
    assert ca.renew(NAMES, NOW)
    assert handshake(ca.hub_file, ca.ca_file, "box") == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_key_of_another_user_is_refused(tmp_path: Path) -> None:
    ca = make(tmp_path / "tls")
    os.chown(ca.folder / AUTHORITY, 12345, 12345)
    with pytest.raises(UsageError, match="belongs to another user"):
        make(tmp_path / "tls")
