"""The sandbox of one CLI, as data: which paths, hosts and resources it may use.

Owns the words. `plan` makes a spec from a session's rules, and each kind of sandbox (`bubblewrap`,
`landlock`, `seatbelt`) enforces it. It knows nothing of any kind, and reads no file.

The paths of a spec decide like this: the deepest path that a file is in wins. If the same path is
in two lists, `hidden` wins over `read_only`, and `read_only` over `writable`. What is in no list is
read-only. So a folder can be hidden with the exception of one folder in it.
"""

from __future__ import annotations

from enum import StrEnum

from quarterdeck.domain.structs import Value


class SandboxMode(StrEnum):
    """How much of the machine a CLI can use."""

    OFF = "off"
    PROTECT = "protect"
    """Writes only where the work is; secrets are hidden; protected files cannot be changed."""
    STRICT = "strict"
    """In addition: the home folder is hidden, caches are not written, and the network is limited
    to the model's host unless hosts are listed."""


class Kind(StrEnum):
    """What enforces the sandbox."""

    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    SEATBELT = "seatbelt"


class NetworkKind(StrEnum):
    """Which hosts can be reached."""

    ALL = "all"
    MODEL = "model"
    HOSTS = "hosts"


class Network(Value):
    """The hosts that can be reached.

    `hosts` is empty for `all`. Otherwise it has every host that is allowed, the model's included:
    `name`, `*.name` for all names below it, or either with `:port`.
    """

    kind: NetworkKind = NetworkKind.ALL
    hosts: tuple[str, ...] = ()


class Limits(Value):
    """Resource limits. None: no limit."""

    memory: int | None = None
    """Bytes of address space of each process. A CLI on Node reserves far more than it uses."""
    processes: int | None = None
    """Processes and threads. The kernel counts all that belong to the user."""
    file_size: int | None = None
    """Bytes of one file."""


class SandboxSpec(Value):
    """What one CLI may use. All paths are absolute; `read_only` and `hidden` may have wildcards."""

    mode: SandboxMode = SandboxMode.OFF
    writable: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    """Folders of `writable` that are made if they do not exist, as the CLI itself would do."""
    reserved: tuple[str, ...] = ()
    """Paths of `read_only` that must not come into being either."""
    yielding: tuple[str, ...] = ()
    """Paths of `read_only` that a kind gives up which knows no exceptions inside a writable folder,
    because the folder around them could not be used otherwise."""
    private: tuple[str, ...] = ()
    """Folders of which the CLI gets an empty one of its own, where the kind can do that."""
    copied: tuple[str, ...] = ()
    """Files of which the CLI gets a copy of its own, where the kind can do that; else they can be
    written."""
    temporary: str = ""
    """The folder for temporary files. It is also `/tmp`, where the kind can do that."""
    network: Network = Network()
    limits: Limits = Limits()
