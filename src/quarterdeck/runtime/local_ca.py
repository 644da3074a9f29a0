"""A certificate authority of this machine, and the certificate of the hub that it signs.

Owns a folder with three files: `authority.pem` (key and certificate of the authority), `ca.crt`
(that certificate alone, for devices that shall trust it) and `hub.pem` (key and certificate of the
hub). A person trusts the authority once on each device. So it is valid for ten years, and it is
limited to names and addresses of local networks and of this machine: who steals its key cannot
pretend to be another site. The hub's certificate is valid for a month and is replaced before it
ends.

Above are `serve` and `doctor`. It knows nothing of servers, and reads no clock: the caller gives
the time.
"""

from __future__ import annotations

import ipaddress
import os
import re
import stat
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.runtime.data_dir import make_private
from quarterdeck.runtime.files import replace_file

AUTHORITY, CA_CERTIFICATE, HUB_CERTIFICATE = "authority.pem", "ca.crt", "hub.pem"
AUTHORITY_LIFE = timedelta(days=3650)
LEAF_LIFE = timedelta(days=30)
RENEW_BEFORE = timedelta(days=10)
"""A hub that was off for a while still has time to renew the certificate before it ends."""
EARLIER = timedelta(days=1)
"""Certificates are valid from a day ago: the clocks of phones differ."""
LARGEST_FILE = 64 * 1024

LOCAL_NETWORKS = (
    *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"),
    "100.64.0.0/10",  # of VPNs and of providers: never of a host on the Internet
    *("::1/128", "fc00::/7", "fe80::/10"),
)
LOCAL_DOMAINS = ("localhost", "local", "lan", "home.arpa", "internal")
_NAME = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Extension = TypeVar("_Extension", bound=x509.ExtensionType)


class Names(Value):
    """The names and addresses that a certificate is for, sorted."""

    dns: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Iterable[str]) -> Names:
        """Sort out names and addresses; what is neither is left out."""
        dns: set[str] = set()
        addresses: set[str] = set()
        for each in given:
            name = each.strip().strip("[]").rstrip(".").lower()
            try:
                address = ipaddress.ip_address(name.partition("%")[0])
            except ValueError:
                if len(name) <= 253 and _NAME.fullmatch(name):
                    dns.add(name)
            else:
                if not address.is_unspecified and not address.is_multicast:
                    addresses.add(str(address))
        return cls(dns=tuple(sorted(dns)), addresses=tuple(sorted(addresses)))

    def __iter__(self) -> Iterator[str]:
        """All of them."""
        return iter((*self.dns, *self.addresses))


class Described(Value):
    """A certificate in words."""

    subject: str
    names: Names
    begins: datetime
    ends: datetime
    fingerprint: str


class LocalCa:
    """The authority of one folder. Make it with `open`."""

    def __init__(
        self, folder: Path, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate
    ) -> None:
        self.folder = folder
        self._key = key
        self._certificate = certificate

    @classmethod
    def open(cls, folder: Path, names: Names, now: datetime, *, owner: str) -> LocalCa:
        """The authority of a folder; made anew where there is none, or where it ends soon.

        `owner` is in its name, for the people who see it in the settings of a phone. Raises
        `UsageError` for files that are broken or that others can read.
        """
        make_private(folder)
        file = folder / AUTHORITY
        key, certificate = (None, None) if not file.exists() else _load_pair(file)
        if key is None or certificate is None or certificate.not_valid_after_utc < now + LEAF_LIFE:
            key = ec.generate_private_key(ec.SECP256R1())
            certificate = _make_authority(key, names, now, owner)
            replace_file(file, _private_pem(key) + _pem(certificate))
        made = cls(folder, key, certificate)
        if _content(made.ca_file) != made.pem:
            replace_file(made.ca_file, made.pem)
        return made

    @property
    def ca_file(self) -> Path:
        """The certificate of the authority: public."""
        return self.folder / CA_CERTIFICATE

    @property
    def hub_file(self) -> Path:
        """Key and certificate of the hub."""
        return self.folder / HUB_CERTIFICATE

    @property
    def pem(self) -> bytes:
        """The certificate of the authority."""
        return _pem(self._certificate)

    @property
    def described(self) -> Described:
        """The authority in words."""
        return describe(self._certificate)

    def allowed_names(self, names: Names) -> Names:
        """Those of the names that this authority may sign."""
        limits = _extension(self._certificate, x509.NameConstraints)
        trees = [] if limits is None else list(limits.permitted_subtrees or ())
        domains = [tree.value for tree in trees if isinstance(tree, x509.DNSName)]
        networks = [tree.value for tree in trees if isinstance(tree, x509.IPAddress)]
        return Names(
            dns=tuple(name for name in names.dns if any(_within(name, each) for each in domains)),
            addresses=tuple(
                address
                for address in names.addresses
                if any(_in_network(address, network) for network in networks)
            ),
        )

    def renew(self, names: Names, now: datetime) -> bool:
        """Sign a new certificate for the hub where that is due; gives whether it was.

        It is due when there is none, when it ends soon, and when it lacks one of the names. A
        broken one is replaced. Raises `UsageError` where others can read its key.
        """
        wanted = self.allowed_names(names)
        if self.hub_file.exists():
            check_private(self.hub_file)
            try:
                _, found = _load_pair(self.hub_file)
            except UsageError:
                found = None
            if found is not None and self._is_good(found, wanted, now):
                return False
        key = ec.generate_private_key(ec.SECP256R1())
        leaf = _make_leaf(key, wanted, now, self._key, self._certificate)
        replace_file(self.hub_file, _private_pem(key) + _pem(leaf))
        return True

    def _is_good(self, leaf: x509.Certificate, wanted: Names, now: datetime) -> bool:
        try:
            leaf.verify_directly_issued_by(self._certificate)
        except Exception:  # noqa: BLE001 - ValueError, TypeError and InvalidSignature mean one thing
            return False
        in_time = leaf.not_valid_before_utc <= now <= leaf.not_valid_after_utc - RENEW_BEFORE
        return in_time and set(wanted) <= set(describe(leaf).names)


def check_private(file: Path) -> None:
    """Raise `UsageError` for a key file that is a link, another user's, or open to others."""
    try:
        found = file.lstat()
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error
    if not stat.S_ISREG(found.st_mode):
        raise UsageError(f"{file}: it must be an ordinary file")
    if found.st_uid != os.geteuid():
        raise UsageError(f"{file}: it belongs to another user")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise UsageError(
            f"{file}: other users may read this key. If nobody has, run: chmod 600 {file}."
            f" Otherwise delete the folder {file.parent} and trust the new authority"
        )


def read_certificate(file: Path) -> Described:
    """The first certificate of a PEM file. Raises `UsageError`."""
    return describe(_certificate_in(file, _read(file)))


def describe(certificate: x509.Certificate) -> Described:
    """A certificate in words."""
    alternative = _extension(certificate, x509.SubjectAlternativeName)
    given: list[str] = []
    if alternative is not None:
        given += alternative.get_values_for_type(x509.DNSName)
        given += map(str, alternative.get_values_for_type(x509.IPAddress))
    digest = certificate.fingerprint(hashes.SHA256()).hex().upper()
    common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return Described(
        subject=str(common[0].value) if common else "",
        names=Names.of(given),
        begins=certificate.not_valid_before_utc,
        ends=certificate.not_valid_after_utc,
        fingerprint=":".join(digest[at : at + 2] for at in range(0, len(digest), 2)),
    )


# --- making ---------------------------------------------------------------------------------------


def _make_authority(
    key: ec.EllipticCurvePrivateKey, names: Names, now: datetime, owner: str
) -> x509.Certificate:
    # The name has at most 64 letters. The date tells two authorities of a machine apart.
    title = f"Quarterdeck {now:%Y-%m-%d} {owner}"[:64].strip()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, title)])
    trees: list[x509.GeneralName] = [
        x509.DNSName(name) for name in dict.fromkeys((*LOCAL_DOMAINS, *names.dns))
    ]
    networks = [ipaddress.ip_network(network) for network in LOCAL_NETWORKS]
    networks += [
        ipaddress.ip_network(address)
        for address in names.addresses
        if not any(_in_network(address, network) for network in networks)
    ]
    trees += [x509.IPAddress(network) for network in networks]
    return (
        _builder(subject, subject, key, now, now + AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.NameConstraints(trees, None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _make_leaf(
    key: ec.EllipticCurvePrivateKey,
    names: Names,
    now: datetime,
    ca_key: ec.EllipticCurvePrivateKey,
    ca: x509.Certificate,
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Quarterdeck hub")])
    known: list[x509.GeneralName] = [x509.DNSName(name) for name in names.dns]
    known += [x509.IPAddress(ipaddress.ip_address(address)) for address in names.addresses]
    ends = min(now + LEAF_LIFE, ca.not_valid_after_utc)
    return (
        _builder(subject, ca.subject, key, now, ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(known), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    ends: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(ends)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


# --- reading --------------------------------------------------------------------------------------


def _load_pair(file: Path) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    """A key and its certificate from one file. Raises `UsageError`."""
    check_private(file)
    data = _read(file)
    certificate = _certificate_in(file, data)
    try:
        key = serialization.load_pem_private_key(data, password=None)
    except (ValueError, TypeError) as error:
        raise _broken_error(file) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise _broken_error(file)
    if key.public_key() != certificate.public_key():
        raise _broken_error(file)
    return key, certificate


def _certificate_in(file: Path, data: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(data)
    except ValueError as error:
        raise _broken_error(file) from error


def _broken_error(file: Path) -> UsageError:
    return UsageError(
        f"{file}: no certificate with its key can be read in it. Restore the file, or delete the"
        f" folder {file.parent}: then a new authority is made, and devices must trust that one"
    )


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as source:
            return source.read(LARGEST_FILE)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


def _extension(certificate: x509.Certificate, kind: type[_Extension]) -> _Extension | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except (x509.ExtensionNotFound, ValueError):
        return None


def _within(name: str, domain: str) -> bool:
    return name == domain or name.endswith(f".{domain}")


def _in_network(
    address: str, network: ipaddress.IPv4Network | ipaddress.IPv6Network | Address
) -> bool:
    if isinstance(network, Address):
        return ipaddress.ip_address(address) == network
    return ipaddress.ip_address(address) in network


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
