"""See to it that there is a browser for the browser tests: `python tools/install_browser.py`.

Debian's Chromium, from the system's own packages: the tests drive it with Playwright's library, and
nothing is downloaded by that. The one without windows takes less processor time: the tests prefer
it where it is. Where no browser can be installed, this says what to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome")
LIGHT = "chromium-headless-shell"
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

    def runs(*step: str) -> bool:
        done = subprocess.run(
            [*become, apt, *step],
            check=False,
            env=quiet,
            timeout=SECONDS,
            stdout=subprocess.DEVNULL,
        )
        if done.returncode:
            print(f"install_browser: apt-get {' '.join(step)} failed", file=sys.stderr)
        return done.returncode == 0

    install = ("install", "--yes", "--quiet", "--no-install-recommends", "chromium")
    # Not every system has the one without windows, and the tests do without it.
    if runs("update", "--quiet") and (runs(*install, LIGHT) or runs(*install)):
        return 0
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
