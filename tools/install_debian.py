"""Install what the tests need of the system's packages: `python tools/install_debian.py NAME`.

    browser     Debian's Chromium, for the browser tests: they drive it with Playwright's library,
                and nothing is downloaded by that. The one without windows takes less processor
                time: the tests prefer it where it is.
    bubblewrap  for the tests of the sandbox. Where it cannot be installed they are skipped, unless
                the variable QUARTERDECK_REQUIRE_SANDBOX is set.

Where something cannot be installed, this says what to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

SECONDS = 900


class Wanted:
    """What is installed under one name."""

    def __init__(
        self, programs: tuple[str, ...], choices: tuple[tuple[str, ...], ...], needed: bool
    ) -> None:
        self.programs = programs
        """If one of these is there, nothing is installed."""
        self.choices = choices
        """Packages; the next ones are tried if a system does not have the first."""
        self.needed = needed
        """Whether the tests cannot do without."""


WANTED = {
    "browser": Wanted(
        ("chromium", "chromium-browser", "google-chrome"),
        (("chromium", "chromium-headless-shell"), ("chromium",)),
        needed=True,
    ),
    "bubblewrap": Wanted(
        ("bwrap",),
        (("bubblewrap",),),
        needed=bool(os.environ.get("QUARTERDECK_REQUIRE_SANDBOX")),
    ),
}


def main(arguments: list[str]) -> int:
    """Find one of the programs, or install the packages."""
    if len(arguments) != 1 or arguments[0] not in WANTED:
        print(f"usage: install_debian.py {'|'.join(WANTED)}", file=sys.stderr)
        return 2
    name, wanted = arguments[0], WANTED[arguments[0]]
    if any(shutil.which(program) for program in wanted.programs):
        return 0
    if _installed(wanted):
        return 0
    print(f"install_debian: install {name} for the tests, please", file=sys.stderr)
    return 1 if wanted.needed else 0


def _installed(wanted: Wanted) -> bool:
    apt = shutil.which("apt-get")
    become = [] if os.geteuid() == 0 else [shutil.which("sudo") or ""]
    if apt is None or "" in become:
        return False
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
            print(f"install_debian: apt-get {' '.join(step)} failed", file=sys.stderr)
        return done.returncode == 0

    install = ("install", "--yes", "--quiet", "--no-install-recommends")
    return runs("update", "--quiet") and any(runs(*install, *each) for each in wanted.choices)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
