"""By which names this server is known, from which pages it is used, and through which proxies.

Pure: headers in, a verdict out. Below `access` and `gate`. It refuses DNS rebinding (a strange
name that leads to our address), cross-site pages, and forwarding headers of strangers.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from msgspec import field

from quarterdeck.domain.addresses import is_loopback
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http.asgi import Scope, header_of, headers_of
from quarterdeck.fronts.http.problems import Refused

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_DEFAULT_PORTS = {"http": 80, "https": 443}
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class Visit(Value):
    """From where a request came and by which name, after a trusted proxy was asked."""

    address: str
    scheme: str
    host: str
    """As the Host header has it, the port too."""
    strict: bool = True
    """Whether browsers may be told to use this name with TLS only."""

    @property
    def secure(self) -> bool:
        """Whether it came over TLS."""
        return self.scheme == "https"

    @property
    def pins_tls(self) -> bool:
        """Whether browsers are told so. It would hold for every port of the name."""
        return self.secure and self.strict and _split_host(self.host)[0] not in LOOPBACK_NAMES


class Places(Value):
    """Where this server may be met. Loopback names are always allowed."""

    hosts: tuple[str, ...] = ()
    """Further names or addresses, without a port."""
    origins: tuple[str, ...] = ()
    """Further pages that may use the API, as `https://name:port`."""
    proxies: tuple[str, ...] = ()
    """Addresses or networks of proxies whose X-Forwarded headers are believed."""
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = field(
        default_factory=tuple
    )
    """Made from `proxies` by `of`."""
    strict: bool = True
    """Whether browsers may be told to use our names with TLS only. Not where the certificate is our
    own: the names are the machine's, and other programs serve on its other ports."""

    @classmethod
    def of(
        cls,
        *,
        hosts: tuple[str, ...] = (),
        origins: tuple[str, ...] = (),
        proxies: tuple[str, ...] = (),
        strict: bool = True,
    ) -> Places:
        """Check what a person configured. Raises `UsageError` for what cannot be right."""
        try:
            networks = tuple(ipaddress.ip_network(proxy, strict=False) for proxy in proxies)
        except ValueError as error:
            raise UsageError(f"proxies: {error}") from error
        for host in hosts:
            if not host or _split_host(host)[1] is not None or host.strip("[]") == "*":
                raise UsageError(f"hosts: {host!r} is not a name without a port")
        for origin in origins:
            if _split_origin(origin) is None:
                raise UsageError(f"origins: {origin!r} is not like https://name:port")
        return cls(
            hosts=tuple(host.strip("[]").lower() for host in hosts),
            origins=origins,
            proxies=proxies,
            networks=networks,
            strict=strict,
        )

    def visit(self, scope: Scope) -> Visit:
        """Who asks, by which name. Raises `Refused` for a name that is not ours."""
        client = scope.get("client")
        address: str = client[0] if client else ""
        scheme = "https" if scope.get("scheme") in {"https", "wss"} else "http"
        host = header_of(scope, b"host") or ""
        direct, _ = _split_host(host)
        if self._is_proxy(address):
            # On this machine a browser is at the proxy's address, too: a page whose own name leads
            # to us must not hide that behind a forwarding header.
            strange = direct not in LOOPBACK_NAMES and direct not in self.hosts
            if strange and is_loopback(address):
                raise Refused(
                    "host_not_allowed", f"Host {host[:100]!r} is not one of this server's"
                )
            address = self._forwarded_for(scope) or address
            scheme = _last(scope, b"x-forwarded-proto") or scheme
            host = _last(scope, b"x-forwarded-host") or host
        name, _ = _split_host(host)
        if name not in LOOPBACK_NAMES and name not in self.hosts:
            raise Refused("host_not_allowed", f"Host {host[:100]!r} is not one of this server's")
        return Visit(address=address, scheme=scheme, host=host, strict=self.strict)

    def check_origin(self, scope: Scope, visit: Visit, *, cookie: bool) -> None:
        """Raise `Refused` for a page that is not ours.

        A browser sends its Origin with everything that changes something and with every
        WebSocket. What comes with a cookie and says nothing of where it is from is refused.
        """
        given = headers_of(scope, b"origin")
        if given:
            if len(given) > 1 or not self._is_ours(given[0], visit):
                raise Refused(
                    "origin_not_allowed",
                    f"Origin {given[0][:100]!r} is not {visit.scheme}://{visit.host}"
                    " (is there a proxy in front that is not in the configuration?)",
                )
            return
        changes = scope["type"] == "websocket" or scope["method"] not in _SAFE_METHODS
        if cookie and changes and header_of(scope, b"sec-fetch-site") != "same-origin":
            raise Refused("origin_not_allowed", "a cookie is taken from this server's pages only")

    def _is_ours(self, origin: str, visit: Visit) -> bool:
        parts = _split_origin(origin)
        if parts is None:
            return False
        name, port = _split_host(visit.host)
        if parts == (visit.scheme, name, port or _DEFAULT_PORTS.get(visit.scheme)):
            return True
        return any(parts == _split_origin(allowed) for allowed in self.origins)

    def _is_proxy(self, address: str) -> bool:
        if not self.networks:
            return False
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self.networks)

    def _forwarded_for(self, scope: Scope) -> str | None:
        """The last address that no proxy of ours has: those before it could be made up."""
        listed = ",".join(headers_of(scope, b"x-forwarded-for")).split(",")
        for entry in reversed([entry.strip() for entry in listed if entry.strip()]):
            if not self._is_proxy(entry):
                return entry[:64]
        return None


def _last(scope: Scope, name: bytes) -> str | None:
    found = headers_of(scope, name)
    return found[-1].rpartition(",")[2].strip().lower() if found else None


def _split_host(host: str) -> tuple[str, int | None]:
    """A Host header as name and port; an invalid name for an invalid header."""
    if any(sign in host for sign in "/?#@\\ "):
        return "", None
    if ":" in host and not host.startswith("[") and host.count(":") > 1:
        return host.lower(), None  # a bare IPv6 address, from a configuration
    try:
        parts = urlsplit(f"//{host}")
        return (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return "", None


def _split_origin(origin: str) -> tuple[str, str, int | None] | None:
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or parts.path not in {"", "/"}:
        return None
    if parts.query or parts.fragment or parts.username is not None:
        return None
    return parts.scheme, parts.hostname, port or _DEFAULT_PORTS[parts.scheme]
