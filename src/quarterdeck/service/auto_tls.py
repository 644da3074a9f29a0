"""`serve --tls auto`: certificates without a person, for this machine's own names.

Owns which names the hub's certificate has, when it is renewed, and what a device needs to trust it.
Where Tailscale gives certificates, one is used for the name that the machine has there. Above is
`service`; below are `local_ca` and `tailscale`. It does not serve.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.to_thread

from quarterdeck.domain.addresses import is_loopback
from quarterdeck.domain.errors import LaunchError, QuarterdeckError, UsageError
from quarterdeck.fronts.http.trust import Trust, terminal_code
from quarterdeck.runtime.data_dir import make_private
from quarterdeck.runtime.local_ca import (
    RENEW_BEFORE,
    Described,
    LocalCa,
    Names,
    check_private,
    read_certificate,
)
from quarterdeck.runtime.machine_names import LOOPBACK, host_name, names_of_machine
from quarterdeck.runtime.tailscale import fetch_certificate, tailscale_name
from quarterdeck.runtime.tls import CertificateFile
from quarterdeck.service.local_hub import TLS_FOLDER

log = logging.getLogger(__name__)

LOOK_SECONDS = 60.0
"""Between looks at names and dates: a laptop changes its network."""
TAILSCALE_SECONDS = 6 * 3600.0
"""Between looks at Tailscale's certificate, which is valid for three months."""
START_SECONDS = 20.0
"""How long the start of the hub waits for a first certificate of Tailscale."""
TAILSCALE_RENEW = RENEW_BEFORE * 3
TAILSCALE_CERTIFICATE, TAILSCALE_KEY = "tailscale.crt", "tailscale.key"
IPV4_ANYWHERE = "0.0.0.0"  # noqa: S104 - compared, not listened on
ANYWHERE = frozenset({IPV4_ANYWHERE, "::"})


def now() -> datetime:
    """The time."""
    return datetime.now(UTC)


class AutoTls:
    """The certificates of one hub. `open` makes them; `keep` renews them while the hub runs."""

    def __init__(
        self, ca: LocalCa, host: str, configured: tuple[str, ...], clock: Callable[[], datetime]
    ) -> None:
        self.ca = ca
        self._host = host
        self._configured = configured
        self._clock = clock
        self._tailscale: str | None = None
        self._names = Names()

    @classmethod
    async def open(
        cls, home: Path, host: str, configured: tuple[str, ...], clock: Callable[[], datetime] = now
    ) -> AutoTls:
        """Make what is missing. Raises `UsageError` for files that cannot be used."""
        made = await anyio.to_thread.run_sync(cls._open, home, host, configured, clock)
        await made.find_tailscale()
        return made

    @classmethod
    def _open(
        cls, home: Path, host: str, configured: tuple[str, ...], clock: Callable[[], datetime]
    ) -> AutoTls:
        names = _names(host, configured)
        make_private(home / TLS_FOLDER)
        ca = LocalCa.open(home / TLS_FOLDER, names, clock(), owner=host_name())
        made = cls(ca, host, configured, clock)
        unknown = set(Names.of(configured)) - set(ca.allowed_names(names))
        if unknown:
            raise UsageError(
                f"hosts: the authority in {ca.folder} was made before it was to sign"
                f" {', '.join(sorted(unknown))}. Delete the folder, and trust the new authority on"
                " each device; or leave out the name"
            )
        made.renew()
        return made

    @property
    def file(self) -> CertificateFile:
        """The certificate of the hub."""
        return CertificateFile(certificate=self.ca.hub_file)

    @property
    def named(self) -> dict[str, CertificateFile]:
        """The certificate of Tailscale, for the name there."""
        if self._tailscale is None:
            return {}
        certificate, key = self._tailscale_files
        return {self._tailscale: CertificateFile(certificate=certificate, key=key)}

    @property
    def reachable(self) -> bool:
        """Whether other machines reach the address that the hub listens on."""
        return not is_loopback(self._host)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names by which the hub may be reached now."""
        more = (self._tailscale,) if self._tailscale is not None else ()
        return (*more, *self._names)

    @property
    def far_names(self) -> tuple[str, ...]:
        """Names for other devices, the best first."""
        if not self.reachable:
            return ()
        more = (self._tailscale,) if self._tailscale is not None else ()
        found = names_of_machine() if self._host in ANYWHERE else (self._host,)
        # On the IPv4 address for everything nobody is reached by IPv6.
        other = ":" if self._host == IPV4_ANYWHERE else " "
        return (*more, *(name for name in found if name in set(self._names) and other not in name))

    @property
    def plain_name(self) -> str | None:
        """A name for a device that trusts nothing yet, and may know no local names: an address."""
        local = [name for name in self.far_names if name != self._tailscale]
        return next(
            iter([*(name for name in local if name in self._names.addresses), *local]), None
        )

    @property
    def authority(self) -> Described:
        """The authority, for people."""
        return self.ca.described

    def use(self, configured: tuple[str, ...]) -> None:
        """Take over names of a changed configuration; the next look signs them."""
        unknown = set(Names.of(configured)) - set(self.ca.allowed_names(Names.of(configured)))
        if unknown:
            log.error("the authority cannot sign %s: see `serve --tls`", ", ".join(sorted(unknown)))
        self._configured = configured

    async def keep(self, changed: Callable[[], None], *, seconds: float = LOOK_SECONDS) -> None:
        """Renew certificates, for ever; `changed` is called when the names are others."""
        asked = anyio.current_time()
        while True:
            await anyio.sleep(seconds)
            before = self.hosts
            try:
                await anyio.to_thread.run_sync(self.renew)
                if anyio.current_time() - asked >= TAILSCALE_SECONDS:
                    asked = anyio.current_time()
                    await anyio.to_thread.run_sync(self._look_at_tailscale, abandon_on_cancel=True)
            except (QuarterdeckError, OSError) as error:
                log.error("the certificate was not renewed: %s", error)
            if self.hosts != before:
                changed()

    async def find_tailscale(self) -> None:
        """Find out whether Tailscale gives certificates, and wait a while for a first one."""
        if self.reachable:
            self._tailscale = await anyio.to_thread.run_sync(tailscale_name)
            with anyio.move_on_after(START_SECONDS):
                await anyio.to_thread.run_sync(self._look_at_tailscale, abandon_on_cancel=True)

    def renew(self) -> None:
        """Renew the hub's certificate where that is due. Blocks; raises `UsageError`, `OSError`."""
        names = self.ca.allowed_names(_names(self._host, self._configured))
        if self.ca.renew(names, self._clock()):
            log.info("a new certificate for %s", ", ".join(names))
        self._names = names

    @property
    def _tailscale_files(self) -> tuple[Path, Path]:
        return self.ca.folder / TAILSCALE_CERTIFICATE, self.ca.folder / TAILSCALE_KEY

    def _look_at_tailscale(self) -> None:
        """Fetch or renew Tailscale's certificate where that is due. Blocks."""
        if self._tailscale is None:
            return
        certificate, key = self._tailscale_files
        try:
            found = read_certificate(certificate)
            if self._tailscale in found.names and found.ends > self._clock() + TAILSCALE_RENEW:
                return
        except UsageError:
            pass  # there is none yet
        try:
            fetch_certificate(self._tailscale, certificate, key)
            key.chmod(0o600)
            check_private(key)
        except (LaunchError, UsageError, OSError) as error:
            log.warning("no certificate of Tailscale for %s: %s", self._tailscale, error)


def _names(host: str, configured: tuple[str, ...]) -> Names:
    """The names of the certificate: loopback, what is configured, and what others reach."""
    given = [*LOOPBACK, *configured]
    if host in ANYWHERE:
        given += names_of_machine()
    else:
        given.append(host)
    return Names.of(given)


def host_in_url(name: str) -> str:
    """A name or an address, as a URL has it."""
    return f"[{name}]" if ":" in name else name


def trust_lines(tls: AutoTls, trust: Trust, port: int, *, with_code: bool) -> list[str]:
    """What the terminal says of the certificates: addresses, the fingerprint, and a QR code."""
    far = [f"https://{host_in_url(name)}:{port}" for name in tls.far_names]
    lines = [f"From other devices: {', '.join(far)}"] if far else []
    lines += [f"Certificate authority: {trust.title}, in {tls.ca.ca_file}"]
    lines += [f"  SHA-256 fingerprint: {trust.fingerprint}"]
    if trust.address is not None:
        lines.append(f"To trust it on a phone, open {trust.address} and compare the fingerprint.")
        if with_code:
            lines.append(terminal_code(trust.address).rstrip("\n"))
    return lines
