"""Which host a list allows. Pure.

An entry is a name, `*.name` for all names below it, or an address; each may have `:port`. IPv6
addresses are in brackets. Names are compared without case, and without the dot at the end.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

LOOPBACK_NAMES = frozenset({"localhost"})


def split_host(entry: str) -> tuple[str, int | None]:
    """The host and the port of an entry; without a port None. Raises `ValueError`."""
    if entry.startswith("["):
        host, _, rest = entry[1:].partition("]")
        port = rest.removeprefix(":")
    elif entry.count(":") > 1:
        host, port = entry, ""
    else:
        host, _, port = entry.partition(":")
    if not host or (port and not (port.isdecimal() and 0 < int(port) < 65536)):
        raise ValueError(f"{entry!r} is not a host")
    return normal_name(host), int(port) if port else None


def normal_name(host: str) -> str:
    """A host in the form in which it is compared."""
    name = host.lower().rstrip(".")
    try:
        return ipaddress.ip_address(name).compressed
    except ValueError:
        return name


def is_allowed(host: str, port: int, listed: Iterable[str]) -> bool:
    """Whether a list allows a connection."""
    name = normal_name(host)
    for entry in listed:
        wanted, wanted_port = split_host(entry)
        if wanted_port is not None and wanted_port != port:
            continue
        if wanted == name or (wanted.startswith("*.") and name.endswith(wanted[1:])):
            return True
    return False


def is_local_name(host: str) -> bool:
    """Whether a name or address is this machine by its own words."""
    name = normal_name(host)
    return name in LOOPBACK_NAMES or is_local_address(name)


def is_local_address(address: str) -> bool:
    """Whether an address is this machine, or a network that is only its own.

    A name that is allowed may lead to such an address: the owner of the name decides that.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return found.is_loopback or found.is_link_local or found.is_unspecified or found.is_multicast


def local_ports(listed: Iterable[str]) -> dict[int, str]:
    """The ports of this machine that a list names, each with the name that the list has for it."""
    parts = [split_host(entry) for entry in listed]
    return {port: host for host, port in parts if port is not None and is_local_name(host)}
