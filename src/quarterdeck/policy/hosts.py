"""Hosts of URLs, as the URL standard (WHATWG) gives them, and patterns for hosts.

A host has many spellings: `2130706433`, `0x7f.1` and `127.0.0.1` are one address, `EVIL.test.` and
`evil%2Etest` one name. Rules know one of them. So every host is brought into one form before it is
compared, and a URL whose host is not beyond doubt has none.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import unquote_to_bytes

from quarterdeck.policy.wildcards import fits

LONGEST_URL = 4_096
"""Characters of a URL that is read."""

_SPECIAL = re.compile(r"(https?):/*([^/?#]*)", re.IGNORECASE)
_DROPPED = str.maketrans("", "", "\t\n\r")
_TRIMMED = "".join(map(chr, range(0x21)))
_PORT = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::[0-9]*)?")
_NAME = re.compile(r"[a-z0-9._-]+")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")


def host_of(url: str) -> str | None:
    """The host that a URL goes to, in one form; None if that is not beyond doubt."""
    if len(url) > LONGEST_URL:
        return None
    text = url.strip(_TRIMMED).translate(_DROPPED)
    found = _SPECIAL.match(text)
    if found is None or "\\" in text.partition("?")[0]:
        # A backslash is a slash to browsers and a letter to others: two hosts in one URL.
        return None
    name = found[2].rpartition("@")[2]
    split = _PORT.fullmatch(name)
    return None if split is None else canonical(split[1])


@lru_cache(maxsize=1_024)
def canonical(host: str) -> str | None:
    """A host in the one form that all its spellings have; None if it is not certain."""
    if not host or len(host) > LONGEST_URL:
        return None
    if host.startswith("["):
        try:
            return f"[{IPv6Address(host[1:-1]).compressed}]" if host.endswith("]") else None
        except AddressValueError:
            return None
    try:
        text = unquote_to_bytes(host).decode()
    except UnicodeDecodeError:
        return None
    # Other letters may be another spelling of these, or of none: that is not worked out here.
    name = text.lower().removesuffix(".")
    if not _NAME.fullmatch(name) or ".." in name or name[0] == "." or name[-1] == ".":
        return None
    last = name.rpartition(".")[2]
    if last.isdigit() or re.fullmatch(r"0x[0-9a-f]*", last):
        return _address(name)
    return name


def _address(name: str) -> str | None:
    """An IPv4 address from one to four numbers, each decimal, octal or hexadecimal."""
    parts = name.split(".")
    if len(parts) > 4:
        return None
    numbers: list[int] = []
    for part in parts:
        if not _NUMBER.fullmatch(part):
            return None
        try:
            numbers.append(_number(part))
        except ValueError:
            return None
    *first, last = numbers
    if any(each > 255 for each in first) or last >= 256 ** (5 - len(numbers)):
        return None
    whole = last + sum(each << (8 * (3 - place)) for place, each in enumerate(first))
    return str(IPv4Address(whole))


def _number(text: str) -> int:
    if text[:2] in {"0x", "0X"}:
        return int(text[2:] or "0", 16)
    return int(text, 8) if len(text) > 1 and text[0] == "0" else int(text)


@lru_cache(maxsize=1_024)
def relatives(host: str) -> tuple[str, ...]:
    """Other hosts that are the same machine: an address within IPv6, every name of this one."""
    found: list[str] = []
    four: IPv4Address | None = None
    try:
        if host.startswith("["):
            six = IPv6Address(host[1:-1])
            four = six.ipv4_mapped or six.sixtofour
            if six.packed[:12] == bytes(12) and int(six) > 1:
                four = IPv4Address(six.packed[12:])
            if six.packed[:12] == IPv6Address("64:ff9b::").packed[:12]:
                four = IPv4Address(six.packed[12:])
            here = six.is_loopback or six.is_unspecified
        else:
            four = IPv4Address(host)
            here = False
    except AddressValueError:
        here = host == "localhost" or host.endswith(".localhost")
    if four is not None:
        found.append(str(four))
        here = here or four.is_loopback or four.is_unspecified
    if here:
        found += ["localhost", "127.0.0.1", "[::1]", "0.0.0.0", "[::]"]  # noqa: S104 - names
    return tuple(each for each in dict.fromkeys(found) if each != host)


def is_meant(pattern: str, host: str) -> bool:
    """Does a pattern of a rule mean a host? The rule may spell it in any way."""
    return fits(pattern, host) or ("*" not in pattern and canonical(pattern) == host)


def may_mean(pattern: str, host: str | None) -> bool | None:
    """Whether a rule that stops means a host. None: it may; the host is not known, is another name
    of the same machine, or is below the one that the rule names, and most often of its owner.
    """
    if host is None:
        return None
    if is_meant(pattern, host):
        return True
    if any(is_meant(pattern, each) for each in relatives(host)):
        return None
    return None if "*" not in pattern and host.endswith(f".{canonical(pattern)}") else False


def host_in(address: str) -> str | None:
    """The host of an address as commands take it: with or without a scheme, a user, a port."""
    if "://" in address:
        scheme, _, rest = address.partition("://")
        return host_of(address if scheme.lower() in {"http", "https"} else f"https://{rest}")
    return host_of(f"https://{address}") if address else None
