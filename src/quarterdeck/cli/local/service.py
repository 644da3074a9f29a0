"""`quarterdeck service`: the hub as a service of this user, by systemd or launchd.

Owns the unit's text, its path, and the commands for the manager. The unit stops only the hub: the
runner and its agents keep running, as with Ctrl-C.
"""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.local.config import check_chosen
from quarterdeck.cli.terminal.output import print_line
from quarterdeck.domain.errors import LaunchError, UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.runtime.data_dir import data_home

SYSTEMD, LAUNCHD = "systemd", "launchd"
UNIT, LABEL = "quarterdeck.service", "dev.quarterdeck.hub"
SECONDS = 60.0

_PASSED = ("PATH", "LANG", "QUARTERDECK_CLAUDE", "CLAUDE_CONFIG_DIR", "SSL_CERT_FILE")
"""Variables that a hub started by hand gets from its shell and a service would lack: above all
PATH, with `claude` and git. No variable that may contain a secret: a unit is readable."""


class Unit(Value):
    """The unit, for either manager."""

    manager: str
    command: tuple[str, ...]
    environment: dict[str, str]
    log: Path

    @property
    def text(self) -> str:
        """The whole file."""
        return self._systemd() if self.manager == SYSTEMD else self._launchd()

    @property
    def path(self) -> Path:
        """Its path."""
        return unit_path(self.manager)

    def _systemd(self) -> str:
        environment = "\n".join(
            f"Environment={_quote(f'{name}={value}')}" for name, value in self.environment.items()
        )
        return f"""[Unit]
Description=Quarterdeck, a controller for Claude Code

[Service]
ExecStart={" ".join(_quote(word).replace("$", "$$") for word in self.command)}
ExecReload=/bin/kill -HUP $MAINPID
{environment}
# The hub only: the runner and its agents keep running, and the next hub reconnects.
KillMode=process
Restart=on-failure
RestartSec=2

[Install]
WantedBy=default.target
"""

    def _launchd(self) -> str:
        made = {
            "Label": LABEL,
            "ProgramArguments": list(self.command),
            "EnvironmentVariables": self.environment,
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            # The hub only: the runner and its agents keep running, and the next hub reconnects.
            "AbandonProcessGroup": True,
            "StandardOutPath": str(self.log),
            "StandardErrorPath": str(self.log),
        }
        return plistlib.dumps(made, sort_keys=False).decode()


def run_install(config: Path | None, manager: str | None, *, only_print: bool, start: bool) -> int:
    """Write the unit and start it; or print it."""
    unit = make_unit(manager or usual_manager(), check_chosen(config))
    if only_print:
        print_line(unit.text.rstrip("\n"))
        return Exit.SUCCESS
    unit.path.parent.mkdir(parents=True, exist_ok=True)
    unit.path.write_text(unit.text, encoding="utf-8")
    print_line(f"Written: {unit.path}")
    if not start:
        return Exit.SUCCESS
    if unit.manager == SYSTEMD:
        _run_checked("systemctl", "--user", "daemon-reload")
        _run_checked("systemctl", "--user", "enable", "--now", UNIT)
        print_line("The hub is running, and starts whenever you log in.")
        print_line("To start it at boot, before you log in: loginctl enable-linger")
    else:
        _run_checked("launchctl", "bootstrap", f"gui/{os.getuid()}", str(unit.path))
        print_line("The hub is running, and starts whenever you log in.")
    return Exit.SUCCESS


def run_uninstall() -> int:
    """Stop the hub and remove the unit."""
    manager = usual_manager()
    path = unit_path(manager)
    if not path.exists():
        print_line(f"There is no unit at {path}.")
        return Exit.FAILED
    if manager == SYSTEMD and shutil.which("systemctl"):
        _run_checked("systemctl", "--user", "disable", "--now", UNIT)
    elif manager == LAUNCHD:
        _run_checked("launchctl", "bootout", f"gui/{os.getuid()}/{LABEL}")
    path.unlink()
    print_line(f"Removed: {path}. The data stays in {data_home(create=False)}.")
    return Exit.SUCCESS


def run_status() -> int:
    """Print whether there is a unit, and its state; the exit code is 1 without a unit."""
    manager = usual_manager()
    path = unit_path(manager)
    print_line(f"unit     {path}{'' if path.exists() else ', which does not exist'}")
    if not path.exists():
        return Exit.FAILED
    asked = ["launchctl", "print", f"gui/{os.getuid()}/{LABEL}"]
    if manager == SYSTEMD:
        asked = ["systemctl", "--user", "is-active", UNIT]
    print_line(f"{manager:<8} {_first_line(asked)}")
    return Exit.SUCCESS


def make_unit(manager: str, config: Path | None) -> Unit:
    """The unit for this user, with the current data folder and program."""
    if manager not in {SYSTEMD, LAUNCHD}:
        raise UsageError(f"--manager: {SYSTEMD} or {LAUNCHD}")
    home = data_home()
    # What a service prints is kept in a log, where a login link has no business.
    command = [sys.executable, "-P", "-m", "quarterdeck.cli", "serve", "--no-login-link"]
    if config is not None:
        command += ["--config", str(config)]
    passed = {name: os.environ[name] for name in _PASSED if os.environ.get(name)}
    return Unit(
        manager=manager,
        command=tuple(command),
        environment={**passed, "QUARTERDECK_HOME": str(home)},
        log=home / "hub.log",
    )


def usual_manager() -> str:
    """The manager of this platform."""
    return LAUNCHD if sys.platform == "darwin" else SYSTEMD


def unit_path(manager: str) -> Path:
    """The path of a unit of this user."""
    if manager == LAUNCHD:
        return Path.home() / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "systemd" / "user" / UNIT


def _quote(text: str) -> str:
    """One word of a unit, with quotes and specifiers escaped."""
    if any(letter in text for letter in "\n\r\0"):
        raise UsageError(f"{text!r} cannot be written into a unit")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _run_checked(*command: str) -> None:
    done = _call(command)
    if isinstance(done, Exception):
        raise LaunchError(f"{command[0]}: {done}") from done
    if done.returncode:
        raise LaunchError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")


def _first_line(command: list[str]) -> str:
    done = _call(command)
    if isinstance(done, Exception):
        return f"cannot be queried: {done}"
    words = (done.stdout or done.stderr).strip().splitlines()
    return words[0] if words else f"code {done.returncode}"


def _call(command: Sequence[str]) -> subprocess.CompletedProcess[str] | Exception:
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return error
