"""How other devices reach the hub of this service, and what `quarterdeck doctor` finds.

Owns the checks of the three ways to https: certificate files, Tailscale (with `--tls auto`), and a
proxy. The doctor is a program of its own: its findings need what only the command line knows.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import msgspec

from quarterdeck.config.settings import ServerSettings
from quarterdeck.domain.addresses import is_loopback
from quarterdeck.domain.errors import Conflict, UsageError
from quarterdeck.fronts.http.reach import (
    CertificateShape,
    FindingShape,
    HttpsShape,
    Reach,
    Way,
)
from quarterdeck.runtime.tailscale import tailscale_name

if TYPE_CHECKING:  # certificates take a tenth of a second to load, and few hubs need them
    from quarterdeck.service.auto_tls import AutoTls

DOCTOR_SECONDS = 60.0
LOOK_SECONDS = 60.0
"""How long what Tailscale said is used again."""
ANYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared, not listened on
LARGEST_REPORT = 1024 * 1024


class _Report(msgspec.Struct):
    findings: tuple[FindingShape, ...]


class HubReach:
    """Knows the settings of the server, and looks at the rest."""

    def __init__(
        self,
        server: ServerSettings,
        tls: AutoTls | None,
        address: Callable[[], str],
        *,
        doctor: tuple[str, ...] = (sys.executable, "-m", "quarterdeck.cli", "doctor", "--json"),
        tailscale: Callable[[], str | None] = tailscale_name,
    ) -> None:
        """`address` gives the hub's address on this machine, with its port."""
        self.server = server
        """May be replaced while it runs."""
        self._tls = tls
        self._address = address
        self._doctor = doctor
        self._look_at_tailscale = tailscale
        self._tailscale: tuple[float, str | None] | None = None
        self._lock = anyio.Lock()

    async def reach(self) -> Reach:
        """How other devices reach the hub now."""
        return await anyio.to_thread.run_sync(self._reach)

    def _reach(self) -> Reach:
        server, tls = self.server, self._tls
        way: Way = "none"
        if tls is not None:
            way = "auto"
        elif server.certificate is not None:
            way = "files"
        elif server.proxies:
            way = "proxy"
        certificate, problem = self._certificate()
        https = HttpsShape(
            way=way,
            certificate=certificate,
            problem=problem,
            tailscale=self._tailscale_name(),
            trust=tls is not None,
        )
        return Reach(addresses=self.addresses(), https=https)

    def addresses(self) -> tuple[str, ...]:
        """The addresses for other devices, the best first."""
        server, tls = self.server, self._tls
        found = [origin.rstrip("/") for origin in server.origins]
        scheme, _, rest = self._address().partition("://")
        port = rest.rpartition(":")[2]
        if tls is not None:
            names = tls.far_names
        elif is_loopback(server.host):
            names = ()
        elif server.certificate is not None:
            names = server.hosts
        else:
            # Another name is refused, whether or not it leads here.
            names = server.hosts if server.host in ANYWHERE else (server.host, *server.hosts)
        found += [f"{scheme}://{_in_url(name)}:{port}" for name in names]
        return tuple(dict.fromkeys(found))

    def _certificate(self) -> tuple[CertificateShape | None, str]:
        file = self._tls.file.certificate if self._tls is not None else None
        if file is None and self.server.certificate is not None:
            file = Path(self.server.certificate)
        if file is None:
            return None, ""
        from quarterdeck.runtime.local_ca import read_certificate

        try:
            found = read_certificate(file)
        except (UsageError, OSError) as error:
            return None, str(error)
        now = datetime.now(UTC)
        wrong = "expired" if found.ends <= now else "not_yet_valid" if found.begins > now else ""
        shape = CertificateShape(
            names=tuple(found.names),
            begins=int(found.begins.timestamp() * 1000),
            ends=int(found.ends.timestamp() * 1000),
            problem=wrong,
        )
        return shape, ""

    def _tailscale_name(self) -> str | None:
        now = time.monotonic()
        if self._tailscale is None or self._tailscale[0] + LOOK_SECONDS < now:
            self._tailscale = now, self._look_at_tailscale()
        return self._tailscale[1]

    async def findings(self) -> tuple[FindingShape, ...]:
        """The findings of the doctor, one run at a time. Raises `Conflict`."""
        async with self._lock:
            return await anyio.to_thread.run_sync(self._findings)

    def _findings(self) -> tuple[FindingShape, ...]:
        try:
            done = subprocess.run(
                self._doctor,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=DOCTOR_SECONDS,
                check=False,
            )
            report = msgspec.json.decode(done.stdout[:LARGEST_REPORT], type=_Report)
        except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError) as error:
            raise Conflict("no_findings", f"the doctor gave no report: {error}") from error
        return report.findings


def _in_url(name: str) -> str:
    return f"[{name}]" if ":" in name else name
