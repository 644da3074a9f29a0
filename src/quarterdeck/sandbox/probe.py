"""Which kinds of sandbox work on this machine: each is really tried.

`doctor` and the runner are above; `open` is below. Each trial runs one shell in a sandbox, which
must be able to write one file, and be unable to write a second and to read a third.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from quarterdeck.domain.errors import LaunchError
from quarterdeck.domain.structs import Value
from quarterdeck.sandbox import bubblewrap, landlock, seatbelt
from quarterdeck.sandbox.open import open_now
from quarterdeck.sandbox.spec import Kind, SandboxMode, SandboxSpec

SECONDS = 20.0
"""For one trial, on a busy machine."""

PLATFORMS = {"linux": (Kind.BUBBLEWRAP, Kind.LANDLOCK), "darwin": (Kind.SEATBELT,)}
"""The kinds of each platform, the best first."""

_SCRIPT = """
echo new > "$1/project/new" || exit 1
(echo no > "$1/project/kept/file") 2>/dev/null && exit 2
(echo no > "$1/outside") 2>/dev/null && exit 3
test "$(cat "$1/secret/file" 2>/dev/null)" = "" || exit 4
exit 0
"""
_FAULTS = {
    1: "a file that should be writable is not",
    2: "a protected file could be written",
    3: "a file outside could be written",
    4: "a hidden file could be read",
}


class Probe(Value):
    """Whether a kind works here. `why` is for a person: what is missing, or what it cannot do."""

    kind: Kind
    works: bool
    why: str = ""


_lock = threading.Lock()
_found: list[tuple[Probe, ...]] = []


def probe(*, again: bool = False) -> tuple[Probe, ...]:
    """Try each kind of this platform, the best first. Blocks for some milliseconds.

    The result is kept for the life of the process, unless `again`.
    """
    with _lock:
        if again or not _found:
            kinds = PLATFORMS.get(sys.platform, ())
            _found[:] = [tuple(_try(kind) for kind in kinds)]
        return _found[0]


def last_probe() -> tuple[Probe, ...] | None:
    """What `probe` has found; None if it was not called yet. Blocks for nothing."""
    return _found[0] if _found else None


def choose(spec: SandboxSpec | None = None) -> Kind | None:
    """The best kind that works here, and that can enforce `spec`; None if there is none. Blocks."""
    for each in probe():
        if each.works and not (
            spec is not None and each.kind is Kind.LANDLOCK and landlock.why_not(spec)
        ):
            return each.kind
    return None


def _try(kind: Kind) -> Probe:
    if missing := _find_missing(kind):
        return Probe(kind=kind, works=False, why=missing)
    try:
        with tempfile.TemporaryDirectory(prefix="quarterdeck-probe-") as name:
            fault = _trial(kind, _stage(Path(name).resolve()))
    except (LaunchError, OSError, subprocess.TimeoutExpired) as error:
        return Probe(kind=kind, works=False, why=str(error))
    limits = landlock.LIMITS if kind is Kind.LANDLOCK else ""
    return Probe(kind=kind, works=not fault, why=fault or limits)


def _find_missing(kind: Kind) -> str:
    match kind:
        case Kind.BUBBLEWRAP:
            there = shutil.which(bubblewrap.PROGRAM) is not None
            return "" if there else "bubblewrap is not installed (Debian: apt install bubblewrap)"
        case Kind.LANDLOCK:
            return landlock.why_not(SandboxSpec())
        case Kind.SEATBELT:
            return "" if Path(seatbelt.PROGRAM).exists() else f"{seatbelt.PROGRAM} is missing"


def _stage(folder: Path) -> Path:
    """The files of a trial."""
    for part in ("project/kept", "secret", "tmp"):
        (folder / part).mkdir(parents=True)
    for file in ("project/kept/file", "project/new", "secret/file"):
        (folder / file).write_text("old\n")
    return folder


def _trial(kind: Kind, folder: Path) -> str:
    """What went wrong; empty if nothing did."""
    spec = SandboxSpec(
        mode=SandboxMode.PROTECT,
        writable=(str(folder / "project"),),
        read_only=(str(folder / "project" / "kept"),),
        hidden=(str(folder / "secret"),),
        temporary=str(folder / "tmp"),
    )
    sandbox = open_now(
        spec,
        ["sh", "-c", _SCRIPT, "probe", str(folder)],
        {"PATH": "/usr/bin:/bin"},
        cwd=str(folder / "project"),
        kind=kind,
    )
    try:
        done = subprocess.run(
            sandbox.command,
            env=sandbox.env,
            cwd=folder / "project",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    finally:
        sandbox.close()
    if done.returncode == 0:
        return ""
    words = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
    return _FAULTS.get(done.returncode) or "".join(words) or f"it exited with {done.returncode}"
