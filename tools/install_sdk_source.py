"""Load the source of the installed `claude-agent-sdk`, for our tests. Prints its folder.

It has the SDK's examples and tests. The archive is the one that `requirements/dev.lock` names, by
its hash. What some examples need (trio, a Redis in memory, a driver for PostgreSQL) is in
`requirements/sdk-examples.lock`, and goes into a folder beside it, not into the virtual
environment. All is in `.cache/sdk-tests`, where later calls find it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "claude-agent-sdk"
LOCK = ROOT / "requirements" / "dev.lock"
EXTRAS = ROOT / "requirements" / "sdk-examples.lock"
CACHE = ROOT / ".cache" / "sdk-tests"
PACKAGES = CACHE / "packages"
_MARK = CACHE / "packages.lock"


def source_folder() -> Path:
    """Where the source is, once it is loaded."""
    return CACHE / f"claude_agent_sdk-{version(PACKAGE)}"


def pinned(lock: str, package: str) -> str:
    """The lines of a lock file that are about one package, with its hashes."""
    lines = lock.splitlines()
    begin = next((n for n, line in enumerate(lines) if line.startswith(f"{package}==")), None)
    if begin is None:
        raise SystemExit(f"{package} is not in the lock file")
    end = begin
    while lines[end].endswith("\\"):
        end += 1
    return "\n".join(lines[begin : end + 1]) + "\n"


def install() -> Path:
    """Load what is missing; gives the folder of the source."""
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = source_folder()
    if not folder.is_dir():
        wanted = CACHE / "wanted.txt"
        wanted.write_text(pinned(LOCK.read_text(), PACKAGE))
        load = ["download", "--quiet", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
        hashes = ["--require-hashes", "--dest", str(CACHE), "-r", str(wanted)]
        _run(sys.executable, "-m", "pip", *load, *hashes)
        with tarfile.open(f"{folder}.tar.gz") as archive:
            archive.extractall(CACHE, filter="data")
    if not _MARK.is_file() or _MARK.read_bytes() != EXTRAS.read_bytes():
        shutil.rmtree(PACKAGES, ignore_errors=True)
        uv = str(Path(sys.executable).with_name("uv"))
        into = ["--target", str(PACKAGES), "--require-hashes", "-r", str(EXTRAS)]
        _run(uv, "pip", "install", "--quiet", "--python", sys.executable, *into)
        _MARK.write_bytes(EXTRAS.read_bytes())
    return folder


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    print(install())
