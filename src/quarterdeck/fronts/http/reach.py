"""How other devices reach this hub, and whether the way there is encrypted: for the settings page.

Owns the shapes, and what the routes need of the service (`Reaching`). It looks at no file and at
no network itself.
"""

from __future__ import annotations

from typing import Literal, Protocol

from quarterdeck.domain.structs import Value

Way = Literal["none", "auto", "files", "proxy"]


class CertificateShape(Value, omit_defaults=False):
    """The certificate that the hub serves with. Times are in ms since 1970."""

    names: tuple[str, ...]
    begins: int
    ends: int
    problem: str
    """Why browsers refuse it now: `expired`, `not_yet_valid`; empty if its dates are right."""


class HttpsShape(Value, omit_defaults=False):
    """How the hub is encrypted."""

    way: Way
    """`auto`: `--tls auto`; `files`: certificate files; `proxy`: a proxy in front of it."""
    certificate: CertificateShape | None
    problem: str
    """Why the certificate cannot be read; empty if it can, or if there is none."""
    tailscale: str | None
    """The name of the hub's machine that Tailscale gives certificates for."""
    trust: bool
    """Devices must trust the hub's own authority: the page `/trust` helps."""


class Reach(Value, omit_defaults=False):
    """Where other devices find the hub."""

    addresses: tuple[str, ...]
    """The best first; empty: only this machine reaches it."""
    https: HttpsShape


class FindingShape(Value, omit_defaults=False):
    """A result of `quarterdeck doctor`."""

    topic: str
    level: Literal["ok", "note", "warning", "problem"]
    text: str
    advice: str


class Reaching(Protocol):
    """Who knows."""

    async def reach(self) -> Reach:
        """How other devices reach this hub, now."""

    async def findings(self) -> tuple[FindingShape, ...]:
        """The findings of `quarterdeck doctor`. Raises `Conflict` when there are none."""
