"""See to it that there is a browser for the browser tests: `python tools/install_browser.py`.

Debian's Chromium, from the system's own packages: the tests drive it with Playwright's library, and
nothing is downloaded by that. Where it cannot be installed, this says what to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 900


def main() -> int:
    """Find a browser, or install one."""
    if any(shutil.which(name) for name in NAMES):
        return 0
    apt = shutil.which("apt-get")
    become = [] if os.geteuid() == 0 else [shutil.which("sudo") or ""]
    if apt is None or "" in become:
        print("install_browser: install Chromium for the browser tests, please", file=sys.stderr)
        return 1
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["install", "--yes", "--quiet", "--no-install-recommends", "chromium"]
    for step in (["update", "--quiet"], install):
        done = subprocess.run(
            [*become, apt, *step],
            check=False,
            env=quiet,
            timeout=SECONDS,
            stdout=subprocess.DEVNULL,
        )
        if done.returncode:
            print(f"install_browser: apt-get {step[0]} failed", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
