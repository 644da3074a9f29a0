"""Find the `claude` command on this machine, and its version.

Owns the search and its order. It reads the file system and, at most, runs `claude --version` once.
It installs nothing and starts no session.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from quarterdeck.claude.environment import child_environment
from quarterdeck.domain.errors import LaunchError

VARIABLE = "QUARTERDECK_CLAUDE"
MACHINE_WIDE = tuple(
    Path(folder) / "claude" for folder in ("/opt/homebrew/bin", "/usr/local/bin", "/usr/bin")
)
VERSION_SECONDS = 15.0  # a cold start of the Node builds takes 2 s on a small machine

_SCRIPTS = {".js", ".mjs", ".cjs"}
_PACKAGE = "@anthropic-ai/claude-code"
_INSTALL = (
    "Install it with `curl -fsSL https://claude.ai/install.sh | bash`"
    f" or `npm install -g {_PACKAGE}`, or set {VARIABLE} to its path."
)


class _Manifest(msgspec.Struct, frozen=True):
    """The two fields of a package.json that matter here."""

    name: str = ""
    version: str = ""


def find_claude(
    explicit: str | os.PathLike[str] | None = None, *, environ: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """The command that starts the CLI, to be followed by its flags.

    Looks at `explicit`, else at the variable QUARTERDECK_CLAUDE, else on the PATH and in the
    folders of its installers. A `cli.js` is run by Node. A given path that does not exist is a
    `LaunchError`; no other CLI is taken instead.
    """
    environ = os.environ if environ is None else environ
    search = environ.get("PATH", os.defpath)
    if explicit is not None:
        return _resolve_command(os.fspath(explicit), search, "the path that was given")
    if chosen := environ.get(VARIABLE):
        return _resolve_command(chosen, search, f"the variable {VARIABLE}")
    if (on_path := shutil.which("claude", path=search)) is not None:
        return _command(Path(on_path), search)
    looked = [f"the PATH ({search})"]
    for place in _default_paths(environ):
        if place.is_file() and (os.access(place, os.X_OK) or place.suffix in _SCRIPTS):
            return _command(place, search)
        looked.append(str(place))
    raise LaunchError(
        "Claude Code was not found. Searched:\n"
        + "".join(f"  {place}\n" for place in looked)
        + _INSTALL
    )


def cli_version(command: Sequence[str]) -> str | None:
    """The version that `command` starts, or None if unknown.

    Reads the package.json beside the program if there is one, without running anything. Otherwise
    runs `--version` once, and caches the result until the file changes. May block for some seconds:
    call it from a thread.
    """
    program = _program(command)
    if program is None:
        return None
    try:
        status = program.stat()
    except OSError:
        return None
    return _version(tuple(command), str(program), status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=64)
def _version(command: tuple[str, ...], program: str, _mtime_ns: int, _size: int) -> str | None:
    return _manifest_version(Path(program)) or _ask_version(command)


def _manifest_version(program: Path) -> str | None:
    try:
        manifest = msgspec.json.decode(
            (program.parent / "package.json").read_bytes(), type=_Manifest
        )
    except (OSError, msgspec.DecodeError):
        return None
    # A program that was moved may lie beside another package's manifest.
    return manifest.version or None if manifest.name.startswith(_PACKAGE) else None


def _ask_version(command: tuple[str, ...]) -> str | None:
    try:
        done = subprocess.run(
            [*command, "--version"],
            env=child_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(rb"\d+\.\d+\.\d+", done.stdout)
    return found.group().decode() if found and done.returncode == 0 else None


def _program(command: Sequence[str]) -> Path | None:
    """The file that determines the version: the script where Node runs one, else the program."""
    for part in command[1:2]:
        if Path(part).suffix in _SCRIPTS:
            return Path(part).resolve()
    found = shutil.which(command[0]) if command else None
    return Path(found).resolve() if found else None


def _resolve_command(name: str, search: str, by: str) -> tuple[str, ...]:
    """The command for a given path, or for a name on the PATH."""
    path = Path(name).expanduser()
    if path.parent == Path() and not path.is_file():
        found = shutil.which(name, path=search)
        if found is None:
            raise LaunchError(f"{by} is {name!r}, and there is no such command on {search}")
        path = Path(found)
    if path.is_dir():
        raise LaunchError(f"{by} is {name!r}, which is a folder, not a program")
    if not path.exists():
        raise LaunchError(f"{by} is {name!r}, and there is no such file. {_INSTALL}")
    return _command(path, search)


def _command(path: Path, search: str) -> tuple[str, ...]:
    real = path.resolve()
    if real.suffix not in _SCRIPTS:
        if not os.access(path, os.X_OK):
            raise LaunchError(f"{path} is not executable; try `chmod +x {path}`")
        return (str(path),)
    # Node is named outright: the script's own first line would look for it on the child's PATH.
    node = shutil.which("node", path=search)
    if node is None:
        raise LaunchError(f"{real} needs Node, and there is no `node` on {search}")
    return (node, str(real))


def _default_paths(environ: Mapping[str, str]) -> Iterator[Path]:
    """Where the installers put it, the newest installer first."""
    home = Path(environ.get("HOME") or Path.home())
    yield home / ".local/bin/claude"
    yield home / ".claude/local/claude"
    yield home / ".claude/local/node_modules/.bin/claude"
    if prefix := environ.get("NPM_CONFIG_PREFIX"):
        yield Path(prefix) / "bin/claude"
    yield home / ".npm-global/bin/claude"
    yield home / ".bun/bin/claude"
    yield home / ".volta/bin/claude"
    yield home / ".yarn/bin/claude"
    yield from MACHINE_WIDE
