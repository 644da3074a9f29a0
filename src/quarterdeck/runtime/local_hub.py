"""The hub of this machine's user, as others find it: its lock, its address, its token.

Owns the names and the contents of these files, and reading them. `service.local_hub` writes them;
the command line and `client` read them. It makes no token: that is the server's.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import msgspec

from quarterdeck.domain.structs import Value

HUB_LOCK, HUB_FILE = "hub.lock", "hub.json"
CLI_TOKEN = "cli.token"  # noqa: S105 - the name of a file


class HubState(Value):
    """The state of the hub, for the commands on this machine."""

    pid: int
    address: str
    version: str
    ca_file: str | None = None
    """The authority that signed its certificate, where that is one of this machine."""
    far: tuple[str, ...] = ()
    """Its addresses for other devices, the best first."""


def live_hub(home: Path) -> HubState | None:
    """The hub that serves from this folder now, if there is one."""
    try:
        file = os.open(home / HUB_LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return read_state(home)
    finally:
        os.close(file)
    return None  # a killed hub left its state behind


def read_state(home: Path) -> HubState | None:
    """What a hub has written about itself, also if it has ended since."""
    try:
        return msgspec.json.decode((home / HUB_FILE).read_bytes(), type=HubState)
    except (OSError, msgspec.DecodeError):
        return None
