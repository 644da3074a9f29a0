"""Install PgBouncer for a test: `python tools/install_pgbouncer.py`. Prints its program.

No package of PyPI has it, so it comes from the distribution: the one that is installed, or the
package that `apt-get download` loads and checks, unpacked in `.cache/pgbouncer` with the two
libraries that it needs. Nothing is installed in the system. The exit status is 3 when there is
neither: another system, or no package archive that can be reached.
"""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / ".cache" / "pgbouncer"
PROGRAM = PLACE / "usr" / "sbin" / "pgbouncer"
LIBRARIES = re.compile(r"\b(libevent-[\w.-]+|libc-?ares\w+)")
"""The packages among its dependencies that a system may lack."""
SECONDS = 120
NO_PACKAGE = 3


def main() -> int:
    """Find it, or unpack it."""
    if installed := shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin"):
        print(installed)
        return 0
    PLACE.parent.mkdir(exist_ok=True)
    with (PLACE.parent / "pgbouncer.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)  # several test processes may want it at once
        if not PROGRAM.is_file():
            try:
                _unpack()
            except (OSError, subprocess.SubprocessError) as error:
                text = getattr(error, "stderr", None) or error
                print(f"PgBouncer cannot be installed: {text}", file=sys.stderr)
                return NO_PACKAGE
    print(PROGRAM)
    return 0


def _unpack() -> None:
    about = _run("apt-cache", "show", "--no-all-versions", "pgbouncer")
    depends = next(line for line in about.splitlines() if line.startswith("Depends:"))
    with TemporaryDirectory(dir=PLACE.parent) as name:
        folder = Path(name)
        _run("apt-get", "download", "pgbouncer", *LIBRARIES.findall(depends), folder=folder)
        made = folder / "made"
        for package in folder.glob("*.deb"):
            _run("dpkg-deb", "--extract", str(package), str(made))
        shutil.rmtree(PLACE, ignore_errors=True)
        made.rename(PLACE)


def _run(*command: str, folder: Path | None = None) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, check=True, cwd=folder
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
