"""Install the real CLI versions that the tests drive: `python tools/install_clis.py DEST`.

The versions are in tools/claude-cli/package.json and their hashes in the lock beside it. Native
builds are named there one by one and a platform, because not every version was published for
every platform; npm takes those that fit this machine. No package's own scripts are run.

To change the versions, edit package.json and make the lock anew, without registry addresses:

    npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved=true
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from quarterdeck.testing.clis import RealCli, installed_clis, isolated_env

MANIFEST = Path(__file__).parent / "claude-cli"
DOWNLOAD_SECONDS = 1800  # 150 MB packed; a slow line must not fail, a dead one must end
ANSWER_SECONDS = 60


def main(arguments: list[str]) -> int:
    """Install into the folder given, prove that each version starts, and say which are there."""
    if len(arguments) != 1:
        print("usage: install_clis.py DEST", file=sys.stderr)
        return 2
    destination = Path(arguments[0]).resolve()
    destination.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(MANIFEST / name, destination / name)
    _npm_ci(destination)
    clis = installed_clis(destination)
    complaints = [trouble for cli in clis.values() if (trouble := _trouble(cli))]
    every, fitting = _published()
    complaints += [f"{version} was not installed" for version in sorted(fitting - clis.keys())]
    for complaint in complaints:
        print(f"install_clis: {complaint}", file=sys.stderr)
    for version in sorted(every - fitting):
        print(f"install_clis: {version} is not published for this platform; going on without it")
    if not complaints:
        print(f"Claude Code {', '.join(clis)} in {destination}")
    return 1 if complaints else 0


def _npm_ci(destination: Path) -> None:
    npm = shutil.which("npm", path=str(Path(sys.executable).parent)) or shutil.which("npm")
    if npm is None:
        raise SystemExit("install_clis: there is no npm beside this Python; run `make setup` first")
    # npm ci removes node_modules first: what a broken run left behind does no harm.
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        subprocess.run([npm, "ci", *options], cwd=destination, check=True, timeout=DOWNLOAD_SECONDS)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise SystemExit(f"install_clis: {error}") from None


def _trouble(cli: RealCli) -> str | None:
    """Why this version cannot be used; None when it answers with its own number."""
    with tempfile.TemporaryDirectory() as home:
        try:
            answer = subprocess.run(
                [*cli.command, "--version"],
                env=isolated_env(Path(home), "http://127.0.0.1:9"),
                cwd=home,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=ANSWER_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{cli.version} does not start: {error}"
    if answer.returncode or not answer.stdout.startswith(cli.version):
        said = (answer.stdout + answer.stderr).strip()
        return f"{cli.version} answered --version with code {answer.returncode}: {said}"
    return None


def _published() -> tuple[set[str], set[str]]:
    """All versions of the manifest, and those of them that exist for this platform."""
    manifest = json.loads((MANIFEST / "package.json").read_text())
    scripts, native = manifest["dependencies"], manifest["optionalDependencies"]
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    here = f"-{sys.platform}-{machine}"
    fitting = [name for name in native if name.removesuffix("-musl").endswith(here)]
    return _versions([*scripts, *native]), _versions([*scripts, *fitting])


def _versions(names: list[str]) -> set[str]:
    return {name.removeprefix("claude-code-").partition("-")[0] for name in names}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
