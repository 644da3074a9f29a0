"""Install aiogram for a test: `python tools/install_aiogram.py`. Prints the Python that has it.

aiogram needs packages in versions that are not ours, so it gets an environment of its own in
`.cache/aiogram`, with the versions of `requirements/aiogram.lock`. Later calls find it there. The
exit status is 3 when the package registry cannot be reached.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements" / "aiogram.lock"
PLACE = ROOT / ".cache" / "aiogram"
SECONDS = 300
NO_REGISTRY = 3


def main() -> int:
    """Install what is missing."""
    PLACE.parent.mkdir(exist_ok=True)
    with (PLACE.parent / "aiogram.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)  # several test processes may want it at once
        mark = PLACE / "installed.lock"
        if not mark.is_file() or mark.read_bytes() != LOCK.read_bytes():
            failed = _install()
            if failed:
                print(failed, file=sys.stderr)
                return NO_REGISTRY if _unreachable(failed) else 1
            mark.write_bytes(LOCK.read_bytes())
    print(PLACE / "bin" / "python")
    return 0


def _install() -> str:
    """Make the environment; what went wrong."""
    uv = str(Path(sys.executable).with_name("uv"))
    python = str(PLACE / "bin" / "python")
    for command in (
        [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(PLACE)],
        [uv, "pip", "sync", "--quiet", "--python", python, "--require-hashes", str(LOCK)],
    ):
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return "the package registry cannot be reached: no answer"
        if done.returncode:
            return done.stderr
    return ""


def _unreachable(text: str) -> bool:
    words = (
        "connect",
        "dns",
        "timed out",
        "timeout",
        "cannot be reached",
        "network",
        "error sending",
    )
    return any(word in text.lower() for word in words)


if __name__ == "__main__":
    sys.exit(main())
