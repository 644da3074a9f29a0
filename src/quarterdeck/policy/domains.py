"""Hosts in rules: `domain:example.com`, and which host a URL really goes to."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from quarterdeck.policy.wildcards import Glob

_PLAIN = re.compile(r"[!-~]+")
_HOST = re.compile(r"[a-z0-9._-]+|\[[0-9a-f:.]+\]")


def host_of(url: str) -> str | None:
    """The host that a URL goes to, in small letters; None if that is not beyond doubt."""
    # A backslash is a slash to browsers and a letter to others: two hosts in one URL.
    if not _PLAIN.fullmatch(url) or "\\" in url:
        return None
    try:
        split = urlsplit(url)
        host = split.hostname
    except ValueError:
        return None
    if split.scheme.lower() not in {"http", "https"} or host is None:
        return None
    host = host.rstrip(".")
    if ":" in host:
        host = f"[{host}]"
    return host if _HOST.fullmatch(host) else None


def fits(pattern: str, host: str) -> bool:
    """Does a host fit a pattern? `*.example.com` means what is below it, not itself."""
    pattern = pattern.lower().rstrip(".")
    if pattern == "*":
        return True
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and len(host) > len(pattern) - 1
    if "*" in pattern:
        # A `*` stays within its label.
        wanted, labels = pattern.split("."), host.split(".")
        return len(wanted) == len(labels) and all(
            Glob.of(each).matches(label) for each, label in zip(wanted, labels, strict=True)
        )
    return host == pattern
