"""Landlock: a sandbox that a process puts on by itself. This makes the launcher's order for it.

`open` is above; `launcher` does the work, in the process that becomes the CLI.

Landlock gives rights on folders and knows no exceptions in them. So in a folder that has a
protected path in it, nothing new can be made: that holds for the top folder of the project, and for
`.git`. `docs/explanation/sandbox.md` says what follows from it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from msgspec.structs import replace

from quarterdeck.sandbox import launcher, seccomp
from quarterdeck.sandbox.resolve import Access, Resolved
from quarterdeck.sandbox.spec import NetworkKind, SandboxMode, SandboxSpec

LIMITS = (
    "nothing new can be made in the top folder of the project nor in .git, so git commits only in"
    " a work tree; the names of hidden files can be seen; no Unix sockets"
)
"""What a person should know about this kind, in one sentence."""

PORTS_SINCE, SCOPES_SINCE = 4, 6


def version() -> int:
    """The version of Landlock in this kernel; 0 if there is none."""
    return launcher.abi() if sys.platform == "linux" else 0


def why_not(spec: SandboxSpec) -> str:
    """Why a spec cannot be enforced by the Landlock of this kernel; empty if it can."""
    found = version()
    if found < 1:
        return "the kernel has no Landlock"
    if spec.network.kind is not NetworkKind.ALL:
        if found < PORTS_SINCE:
            return "Landlock of this kernel cannot limit the network (it needs Linux 6.7)"
        if os.uname().machine not in seccomp.ARCHITECTURES:
            return "the network cannot be limited on this kind of processor"
    return ""


def order(box: Resolved, spec: SandboxSpec, ports: Sequence[int] | None) -> dict[str, object]:
    """The launcher's order. `ports` are those that can be connected to; None: all."""
    entries = {"/": str(Access.READ_ONLY), **{path: str(a) for path, a in box.entries.items()}}
    for path in box.missing:
        entries[path] = str(Access.READ_ONLY)
    landlock: dict[str, object] = {
        "entries": entries,
        "names": spec.mode is not SandboxMode.STRICT,
    }
    if ports is not None:
        landlock["ports"] = list(ports)
    return {
        "landlock": landlock,
        "filter": seccomp.filter_program(
            os.uname().machine, sockets=True, network=ports is not None
        ),
        "drop": True,
    }


def gaps(spec: SandboxSpec) -> list[str]:
    """What this kind cannot enforce here, for a person."""
    found: list[str] = []
    if os.uname().machine not in seccomp.ARCHITECTURES:
        found.append("Unix sockets: not known for this kind of processor")
    if version() < SCOPES_SINCE:
        found.append("signals to other programs, and abstract sockets: needs Linux 6.12")
    if spec.network.kind is not NetworkKind.ALL:
        found.append("the proxy's port can be connected to on every host, not only on this one")
    found += [f"{path}: the CLI writes it" for path in spec.copied if os.access(path, os.W_OK)]
    found += [
        f"{path}: git needs the folder that it is in" for path in spec.yielding if _exists(path)
    ]
    return found


def without_yielding(spec: SandboxSpec) -> SandboxSpec:
    """The spec with only those read-only paths that this kind enforces."""
    return replace(
        spec,
        read_only=tuple(path for path in spec.read_only if path not in spec.yielding),
        reserved=tuple(path for path in spec.reserved if path not in spec.yielding),
    )


def _exists(path: str) -> bool:
    return os.access(path, os.F_OK)
