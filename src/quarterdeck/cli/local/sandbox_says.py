"""What the sandbox would do with the needs of a call, for `policy try`.

The sandbox is that of a session in this folder, on this machine, with the rules that are tried. It
is made only as a plan: nothing is started.
"""

from __future__ import annotations

import os
import posixpath
import tempfile
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.hub.permissions.sandbox import sandbox_request
from quarterdeck.policy.decide import Call, Rules
from quarterdeck.policy.needs import Need, NeedKind, needs_of
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.sandbox import NetworkKind, SandboxMode, SandboxSpec, find_repository, plan

FILES = {NeedKind.EDIT: "write", NeedKind.READ: "read"}


class SandboxAnswer(Value, omit_defaults=False):
    """What the sandbox does with one need."""

    access: str
    """`write`, `read` or `connect`."""
    target: str
    """The path, or the host."""
    verdict: str
    """`allowed`, `read_only`, `hidden`, `refused` (a host), or `unknown` (no path is known)."""


def sandbox_for(call: Call, rules: Rules) -> SandboxSpec | None:
    """The plan of the sandbox in the mode `protect`; None where there can be none."""
    context = call.context
    if context.cwd is None or context.home is None:
        return None
    request = sandbox_request(SessionSpec(directory=context.cwd), rules)
    try:
        return plan(
            SandboxMode.PROTECT,
            project=context.cwd,
            home=context.home,
            temporary=f"{tempfile.gettempdir()}/quarterdeck-run",
            repository=find_repository(context.cwd),
            private=request.private,
            open_folders=request.open,
            deny_read=request.deny_read,
            deny_edit=request.deny_edit,
            allow_edit=request.allow_edit,
            user=os.getuid(),
        )
    except UsageError:
        return None


def answers(call: Call, rules: Rules) -> tuple[SandboxAnswer, ...]:
    """What the sandbox does with all that a call needs."""
    spec = sandbox_for(call, rules)
    if spec is None:
        return ()
    needs = needs_of(call.tool, call.input, call.context).needs
    home = call.context.home or str(Path.home())
    return tuple(dict.fromkeys(sandbox_says(spec, needs, home)))


def sandbox_says(spec: SandboxSpec, needs: Iterable[Need], home: str) -> Iterator[SandboxAnswer]:
    """What a sandbox does with needs. A need of another kind than files and hosts is passed over:
    what a program does shows only when it runs.
    """
    for need in needs:
        if need.kind in FILES:
            yield from _file(spec, need, FILES[need.kind], home)
        elif need.kind is NeedKind.FETCH and need.host:
            limited = spec.network.kind is not NetworkKind.ALL
            known = any(fnmatchcase(need.host, host) for host in spec.network.hosts)
            verdict = "refused" if limited and not known else "allowed"
            yield SandboxAnswer(access="connect", target=need.host, verdict=verdict)


def _file(spec: SandboxSpec, need: Need, access: str, home: str) -> Iterator[SandboxAnswer]:
    paths = need.target.paths if need.target is not None else ()
    if not paths:
        yield SandboxAnswer(access=access, target=need.what, verdict="unknown")
    for path in paths:
        full = home + path[1:] if path == "~" or path.startswith("~/") else path
        status = _status(spec, posixpath.normpath(full)) if full.startswith("/") else "unknown"
        fine = status == "writable" or (status == "read_only" and access == "read")
        yield SandboxAnswer(access=access, target=path, verdict="allowed" if fine else status)


def _status(spec: SandboxSpec, path: str) -> str:
    """`hidden`, `read_only` or `writable`: the deepest listed folder decides."""
    best, status = -1, "read_only"
    for name in ("hidden", "read_only", "writable"):
        for listed in getattr(spec, name):
            depth = _depth(path, listed)
            if depth > best:
                best, status = depth, name
    return status


def _depth(path: str, listed: str) -> int:
    """How deep the listed folder is that a path is in, by its name or a pattern; -1 if in none."""
    parts = path.split("/")
    for end in range(len(parts), 0, -1):
        folder = "/".join(parts[:end]) or "/"
        if folder == listed or ("*" in listed and fnmatchcase(folder, listed)):
            return end
    return -1
