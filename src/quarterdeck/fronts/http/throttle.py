"""A limit for failed logins: a count per address, in bounded memory.

Below `access`; it knows addresses and a clock.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

FAILURES = 10
WINDOW_SECONDS = 300.0
ADDRESSES = 4096  # more are forgotten, the longest unseen first


class Throttle:
    """Counts failures; after `FAILURES` of them an address waits until its window is over."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def wait(self, address: str) -> float:
        """How many seconds this address has to wait; 0 for none."""
        began, count = self._windows.get(_group(address), (0.0, 0))
        left = began + WINDOW_SECONDS - self._clock()
        return left if count >= FAILURES and left > 0 else 0.0

    def note_failure(self, address: str) -> None:
        """Count a failure."""
        group, now = _group(address), self._clock()
        began, count = self._windows.pop(group, (now, 0))
        if began + WINDOW_SECONDS <= now:
            began, count = now, 0
        self._windows[group] = (began, count + 1)
        while len(self._windows) > ADDRESSES:
            self._windows.popitem(last=False)

    def note_success(self, address: str) -> None:
        """Forget the failures of an address."""
        self._windows.pop(_group(address), None)

    def __len__(self) -> int:
        """How many addresses are remembered."""
        return len(self._windows)


def _group(address: str) -> str:
    """An IPv6 host has 2^64 addresses to come from: its network counts as one."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)
