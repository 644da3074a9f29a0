"""The state of the machine: available memory and load.

The `Runner` is above; the kernel is below. It measures, and decides nothing.
"""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")


def memory_available(meminfo: Path = _MEMINFO) -> int | None:
    """Bytes available without swapping, or None where the kernel does not say."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found.group(1)) * 1024 if found else None


def load() -> float:
    """Processes that want a core, averaged over the last minute; 0 where it is unknown."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return 0.0


def machine_name() -> str:
    """The host name of this machine."""
    return socket.gethostname() or "localhost"
