"""The checks of `quarterdeck doctor` for this machine, one function each.

Owns the checks and the advice. Each takes its subject (the environment, a folder, a version) and
returns findings; none prints, starts a session, or reads a file that may contain a secret. Only the
names of variables are ever shown.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from quarterdeck.claude.environment import API_BILLING, child_environment, explain_environment
from quarterdeck.claude.flags import TESTED
from quarterdeck.claude.locate import cli_version, find_claude
from quarterdeck.domain.errors import LaunchError
from quarterdeck.sandbox import Probe, probe
from quarterdeck.wire.versions import (
    Version,
    answers_unknown_subtypes,
    can_dial,
    guards_bypass,
    kills_children_on_term,
)

OLDEST, NEWEST = TESTED[0], TESTED[-1]
OLDEST_NODE = 18
_SECONDS = 10.0
_ADVICE = {
    "bubblewrap": "Install the package bubblewrap. In a container, allow user namespaces.",
    "landlock": "It needs Linux 5.13 or newer, with Landlock enabled.",
}


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


class Finding(Struct, frozen=True):
    """The result of a check. `advice` says what to do, if there is something to do."""

    topic: str
    level: Level
    text: str
    advice: str = ""


class Cli(Struct, frozen=True):
    """The CLI that was found."""

    command: tuple[str, ...]
    version: str | None


def look(
    claude: str | None, *, api_billing: bool, environ: Mapping[str, str] | None = None
) -> tuple[Cli | None, list[Finding]]:
    """Run all checks. The CLI comes first, since much depends on its version."""
    environ = os.environ if environ is None else environ
    cli, findings = _cli(claude, environ)
    version = Version.parse(cli.version) if cli and cli.version else None
    if cli is not None:
        findings += [*_version(cli.version, version), *_node(cli.command), *_transports(version)]
    config = config_folder(environ)
    findings += [
        *_login(environ, config, api_billing),
        *_environment(environ, api_billing),
        *_conflicts(environ, api_billing),
        *_folder(config),
        *_git(environ),
        *sandbox_findings(probe(), platform=sys.platform),
    ]
    return cli, findings


def config_folder(environ: Mapping[str, str]) -> Path:
    """Claude Code's own folder, with its settings, sessions and login."""
    if chosen := environ.get("CLAUDE_CONFIG_DIR"):
        return Path(chosen)
    return Path(environ.get("HOME") or Path.home()) / ".claude"


def _cli(claude: str | None, environ: Mapping[str, str]) -> tuple[Cli | None, list[Finding]]:
    try:
        command = find_claude(claude, environ=environ)
    except LaunchError as error:
        head, *rest = (line.strip() for line in str(error).strip().splitlines())
        places, advice = rest[:-1], rest[-1] if rest else ""
        message = " ".join((head, ", ".join(places))).strip()
        return None, [Finding("claude", Level.PROBLEM, message, advice)]
    found = Finding("claude", Level.OK, " ".join(command))
    return Cli(command, cli_version(command)), [found]


def _version(text: str | None, version: Version | None) -> Iterable[Finding]:
    if version is None:
        yield Finding(
            "version",
            Level.WARNING,
            f"it does not report its version{f' ({text})' if text else ''}",
            "Run it with --version yourself, and reinstall it if that fails.",
        )
        return
    oldest, newest = Version.parse(OLDEST), Version.parse(NEWEST)
    assert oldest is not None
    assert newest is not None
    if version < oldest:
        yield Finding(
            "version",
            Level.PROBLEM,
            f"{version} is older than the oldest tested version ({OLDEST})",
            "Update it: `claude update`.",
        )
    elif version > newest:
        yield Finding(
            "version",
            Level.NOTE,
            f"{version} is newer than the newest tested version ({NEWEST})",
            "`quarterdeck doctor --probe` shows what is new in it.",
        )
    else:
        yield Finding("version", Level.OK, str(version))
    yield from _version_notes(version)


def _version_notes(version: Version) -> Iterable[Finding]:
    if not guards_bypass(version):
        yield Finding(
            "version",
            Level.WARNING,
            f"{version} lets any answer disable permissions, without a launch flag",
            "Update it: `claude update`.",
        )
    if not answers_unknown_subtypes(version):
        yield Finding(
            "version",
            Level.WARNING,
            f"{version} does not answer unknown requests, and exits on some of them",
            "Update it: `claude update`.",
        )
    if not kills_children_on_term(version):
        yield Finding(
            "version",
            Level.NOTE,
            f"{version} leaves running commands behind when it is stopped; Quarterdeck ends them",
        )


def _node(command: tuple[str, ...]) -> Iterable[Finding]:
    if len(command) < 2:
        return
    try:
        done = subprocess.run(
            [command[0], "--version"],
            env=child_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        yield Finding("node", Level.PROBLEM, f"{command[0]} does not run: {error}")
        return
    version = Version.parse(done.stdout.decode("utf-8", "replace"))
    if version is None or done.returncode:
        yield Finding("node", Level.WARNING, f"{command[0]} does not report its version")
    elif version.major < OLDEST_NODE:
        yield Finding(
            "node",
            Level.PROBLEM,
            f"Node {version} is too old for Claude Code",
            f"Install Node {OLDEST_NODE} or newer.",
        )
    else:
        yield Finding("node", Level.OK, f"{version} ({command[0]})")


def _transports(version: Version | None) -> Iterable[Finding]:
    yield Finding("transport", Level.OK, "stdio")
    if version is not None and can_dial(version):
        yield Finding("transport", Level.OK, "WebSocket (--sdk-url): it can dial the hub")
    elif version is not None:
        yield Finding(
            "transport",
            Level.NOTE,
            f"no WebSocket: {version} accepts only its vendor's --sdk-url (2.1.120 was the last"
            " version that could dial other servers)",
        )


def _login(environ: Mapping[str, str], config: Path, api_billing: bool) -> Iterable[Finding]:
    """Whether there are credentials. Only the API could say whether they work."""
    credentials = config / ".credentials.json"
    if api_billing and any(environ.get(name) for name in API_BILLING[:2]):
        names = " and ".join(name for name in API_BILLING[:2] if environ.get(name))
        yield Finding("login", Level.OK, f"{names} is set, and API billing is on")
        return
    if environ.get("CLAUDE_CODE_OAUTH_TOKEN"):
        yield Finding("login", Level.OK, "CLAUDE_CODE_OAUTH_TOKEN is set")
        return
    try:
        mode = credentials.stat().st_mode
    except OSError:
        where = " or in the keychain, which cannot be checked" if sys.platform == "darwin" else ""
        yield Finding(
            "login",
            Level.NOTE if sys.platform == "darwin" else Level.WARNING,
            f"no login found in {credentials}{where}",
            "Run `claude` and /login; or set CLAUDE_CODE_OAUTH_TOKEN (`claude setup-token`); or"
            " use --api-billing with ANTHROPIC_API_KEY.",
        )
        return
    yield Finding("login", Level.OK, f"{credentials} exists (it was not read)")
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield Finding(
            "login",
            Level.WARNING,
            f"other users of this machine can read {credentials}",
            f"chmod 600 {credentials}",
        )


def _environment(environ: Mapping[str, str], api_billing: bool) -> Iterable[Finding]:
    passed = explain_environment(api_billing=api_billing, parent=environ)
    by_reason: dict[str, list[str]] = {}
    for variable in passed:
        by_reason.setdefault(variable.why, []).append(variable.name)
    for why, names in sorted(by_reason.items()):
        yield Finding("environment", Level.OK, f"{', '.join(names)} ({why})")


def _conflicts(environ: Mapping[str, str], api_billing: bool) -> Iterable[Finding]:
    named = [name for name in API_BILLING if environ.get(name)]
    if named and not api_billing:
        yield Finding(
            "billing",
            Level.NOTE,
            f"{', '.join(named)} is set but not passed on: API billing is off",
            "Add --api-billing to pay with the API key.",
        )
    if api_billing and not any(environ.get(name) for name in API_BILLING[:2]):
        yield Finding(
            "billing",
            Level.PROBLEM,
            "API billing is on, but there is no API key to pass on",
            "Set ANTHROPIC_API_KEY, or omit --api-billing.",
        )
    if api_billing and named and environ.get("CLAUDE_CODE_OAUTH_TOKEN"):
        yield Finding(
            "billing",
            Level.WARNING,
            f"{named[0]} and CLAUDE_CODE_OAUTH_TOKEN are both passed on: the API key wins",
            "Omit --api-billing to use the subscription.",
        )
    if environ.get("CLAUDECODE"):
        yield Finding(
            "environment",
            Level.NOTE,
            "this runs inside Claude Code (CLAUDECODE is set); the variable is not passed on",
        )


def _folder(config: Path) -> Iterable[Finding]:
    place = config
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        yield Finding("folder", Level.PROBLEM, f"cannot create {config}: {place} is not a folder")
    elif not os.access(place, os.W_OK | os.X_OK):
        yield Finding(
            "folder",
            Level.PROBLEM,
            f"{config} is not writable: sessions and settings would be lost",
            f"Check who owns {place}; or set CLAUDE_CONFIG_DIR to a folder of your own.",
        )
    elif place != config:
        yield Finding("folder", Level.OK, f"{config} does not exist yet, and can be created")
    else:
        yield Finding("folder", Level.OK, f"{config} is writable")


def sandbox_findings(probes: Iterable[Probe], *, platform: str) -> Iterable[Finding]:
    """Which kinds of sandbox were tried on this machine, and which one agents get."""
    in_force = False
    for each in probes:
        name = each.kind.value
        note = f": {each.why}" if each.why else ""
        if each.works and not in_force:
            yield Finding("sandbox", Level.OK, f"{name} works, and agents run in it{note}")
        elif each.works:
            yield Finding("sandbox", Level.OK, f"{name} works too{note}")
        else:
            yield Finding(
                "sandbox", Level.NOTE, f"{name} does not work{note}", _ADVICE.get(name, "")
            )
        in_force = in_force or each.works
    if not in_force:
        linux = "Install bubblewrap (Debian, Ubuntu: `apt install bubblewrap`)."
        yield Finding(
            "sandbox",
            Level.WARNING,
            "this machine makes no sandbox: agents run without one, and `strict` is refused",
            linux if platform == "linux" else "",
        )


def _git(environ: Mapping[str, str]) -> Iterable[Finding]:
    found = shutil.which("git", path=environ.get("PATH", os.defpath))
    if found:
        yield Finding("git", Level.OK, found)
    else:
        yield Finding(
            "git",
            Level.WARNING,
            "git was not found: Claude Code works, but without branches and diffs",
            "Install git.",
        )
