"""Which addresses are this machine, and which connections would show a token to others."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from quarterdeck.domain.errors import UsageError

_PLAIN = frozenset({"http", "ws"})
_LOCAL_NAMES = frozenset({"localhost", "local", "localdomain", "internal", "lan", "home", "arpa"})


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine, to which no proxy leads."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_loopback_url(url: str) -> bool:
    """Whether the host of a URL is this machine."""
    return is_loopback(urlsplit(url).hostname or "")


def check_encrypted(url: str, *, insecure: bool) -> None:
    """Raise `UsageError` for plain HTTP to another machine, unless `insecure` says that it may be.

    The token would be readable on the way, and a person who has it can use the hub.
    """
    if insecure or urlsplit(url).scheme not in _PLAIN or is_loopback_url(url):
        return
    raise UsageError(
        f"{url} is not encrypted: everybody on the way could read the token. Use https, or"
        " --insecure if the network itself is encrypted, such as a VPN"
    )


def is_public_name(host: str) -> bool:
    """Whether a name may belong to a service on the Internet: no address, no name of a local net.

    Push services have names. Without this a client of the hub could have it contact anything that
    the hub's machine reaches.
    """
    name = host.lower().rstrip(".")
    last = name.rpartition(".")[2]
    if not name.isascii() or "." not in name or last in _LOCAL_NAMES:
        return False
    # `127.1`, `0x7f.1` and the like are addresses to many resolvers.
    return not last[:1].isdigit() and ":" not in name


def is_public_address(address: str) -> bool:
    """Whether an address is one on the Internet."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_global
    except ValueError:
        return False
