"""The names and addresses by which others on the network reach this machine.

Looks only at this machine: it sends nothing. What it finds may change while a hub runs, as when a
laptop joins another network.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from contextlib import suppress

LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Addresses of documentation: a datagram socket that is connected there sends nothing, but has the
# address from which this machine would.
_AWAY = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))


def host_name() -> str:
    """The name of this machine, without its domain."""
    return socket.gethostname().partition(".")[0].lower() or "localhost"


def names_of_machine() -> tuple[str, ...]:
    """Host names and addresses, the most useful first; those of loopback are not among them."""
    full = socket.gethostname().rstrip(".").lower()
    named = [f"{host_name()}.local", full, host_name()]
    found = dict.fromkeys((*_addresses(), *named))
    return tuple(name for name in found if name and name not in LOOPBACK)


def _addresses() -> Iterator[str]:
    for family, away in _AWAY:
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((away, 9))
            yield from _usable(probe.getsockname()[0])
    with suppress(OSError):
        for *_, address in socket.getaddrinfo(socket.gethostname(), None):
            yield from _usable(str(address[0]))


def _usable(address: str) -> Iterator[str]:
    """The address, unless only this machine knows what it means."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if not (found.is_loopback or found.is_unspecified or found.is_link_local):
        yield str(found)
