"""The checks of `quarterdeck doctor` for the hub: its folder, port, runner and clock.

Owns the checks and the advice, as `local.findings` does for the CLI. Nothing is started, created or
changed; a running hub is queried by its API. That no hub runs is not a problem.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from quarterdeck import __version__
from quarterdeck.cli.hub.journal_findings import look_at_journal
from quarterdeck.cli.hub.target import Target, connect
from quarterdeck.cli.hub.telegram_findings import look_at_telegram
from quarterdeck.cli.local.config import problems_of
from quarterdeck.cli.local.findings import Finding, Level
from quarterdeck.client import calls
from quarterdeck.config.settings import Settings
from quarterdeck.domain.errors import QuarterdeckError, UsageError
from quarterdeck.fronts.http import built_web
from quarterdeck.hub.permissions.policies import GLOBAL
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.presets import preset
from quarterdeck.protocol.coded_texts import alarm_text
from quarterdeck.protocol.schedules import InboundHook
from quarterdeck.protocol.views import MachineView
from quarterdeck.runner.home import live_runner
from quarterdeck.runtime.data_dir import data_home
from quarterdeck.service.config_file import Configuration
from quarterdeck.service.local_hub import RUNNER, TLS_FOLDER, HubState, live_hub

TOPIC = "inbound"


def look_at_inbound(settings: Settings) -> Iterator[Finding]:
    """One finding or more for each inbound webhook."""
    for hook in settings.inbound:
        found = list(_flaws(hook))
        yield from found or [Finding(TOPIC, Level.OK, f"{hook.name}: its secret file is private")]


def _flaws(hook: InboundHook) -> Iterator[Finding]:
    from quarterdeck.fronts.inbound.checks import read_secrets

    file = Path(hook.secret_file)
    try:
        read_secrets(hook)
    except UsageError as error:
        text = f"{hook.name}: no request is taken: {error}"
        yield Finding(TOPIC, Level.PROBLEM, text, "Make one: `quarterdeck webhook secret`.")
    try:
        found = file.stat()
    except OSError:
        return  # reported above
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid not in {os.geteuid(), 0}:
        text = f"{hook.name}: {file} belongs to another user, who can start sessions"
        yield Finding(TOPIC, Level.PROBLEM, text, "Make a file of your own.")
    elif mode & 0o022:
        text = f"{hook.name}: other users can change {file}, and so start sessions"
        yield Finding(TOPIC, Level.PROBLEM, text, f"chmod 600 {file}")
    elif mode & 0o044:
        text = f"{hook.name}: other users can read {file}, and so start sessions"
        yield Finding(TOPIC, Level.WARNING, text, f"chmod 600 {file}")


MIB = 1024 * 1024
LITTLE_DISK, NO_DISK = 1024 * MIB, 100 * MIB
"""A busy agent writes some MiB an hour; below the second, the journal will soon be unwritable."""

CLOCK_MS = 5000
"""Clocks that differ by more make the times of events misleading."""

ENDS_SOON = 7 * 86400.0
"""A certificate that is renewed in time never has so little left."""

RELEASED = 1767225600.0
"""2026: an earlier clock is wrong, and breaks certificates and tokens."""


def look_at_hub(config: Path | None = None) -> list[Finding]:
    """Run all checks."""
    findings: list[Finding] = []
    try:
        home = data_home(create=False)
    except QuarterdeckError as error:
        return [Finding("data", Level.PROBLEM, str(error))]
    settings = _settings(config)
    findings += [*_data(home), *_disk(home), *_config(config), *_policy(home, settings), *_clock()]
    findings += [*look_at_journal(settings), *_relay(settings), *look_at_inbound(settings)]
    findings += [*_web(), *_tls(home, settings)]
    hub = live_hub(home)
    findings += [*_hub(hub), *_port(settings, hub), *_runner(home, hub)]
    if hub is not None:
        findings += _machines(hub)
    return [*findings, *look_at_telegram(home, settings, running=hub is not None)]


def _data(home: Path) -> Iterable[Finding]:
    try:
        found = home.stat()
    except FileNotFoundError:
        yield Finding("data", Level.OK, f"{home} does not exist yet; the hub creates it")
        return
    except OSError as error:
        yield Finding("data", Level.PROBLEM, f"{home}: {error.strerror}")
        return
    if found.st_uid != os.geteuid():
        yield Finding("data", Level.PROBLEM, f"{home} belongs to another user")
    elif not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("data", Level.PROBLEM, f"{home} is not writable", f"chmod 700 {home}")
    elif stat.S_IMODE(found.st_mode) & 0o077:
        yield Finding("data", Level.WARNING, f"other users can read {home}", f"chmod 700 {home}")
    else:
        yield Finding("data", Level.OK, f"{home} is private and writable")


def _disk(home: Path) -> Iterable[Finding]:
    place = home
    while not place.exists() and place != place.parent:
        place = place.parent
    free = shutil.disk_usage(place).free
    text = f"{free // MIB:,} MiB free on the disk of the data folder"
    if free < NO_DISK:
        yield Finding("disk", Level.PROBLEM, text, "The journal needs space: see `retention`.")
    elif free < LITTLE_DISK:
        yield Finding("disk", Level.WARNING, text, "Free some space soon, or see `retention`.")
    else:
        yield Finding("disk", Level.OK, text)


def _config(config: Path | None) -> Iterable[Finding]:
    problems = problems_of(config)
    for problem in problems:
        yield Finding("config", Level.PROBLEM, problem, "Fix it: `quarterdeck config check`.")
    if not problems:
        path = Configuration(config).path
        text = f"{path} is valid" if path.exists() else f"{path} does not exist; defaults apply"
        yield Finding("config", Level.OK, text)


def _settings(config: Path | None) -> Settings:
    try:
        return Configuration(config).loaded.settings
    except QuarterdeckError:
        return Settings()  # reported above


def _policy(home: Path, settings: Settings) -> Iterable[Finding]:
    chosen = settings.policy.file
    file = Path(chosen) if chosen else home / GLOBAL
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        if chosen:
            yield Finding("policy", Level.PROBLEM, f"{file} does not exist: every call is asked")
        else:
            yield Finding("policy", Level.OK, f"{file} does not exist; the CLI's own rules apply")
        return
    except (OSError, UnicodeDecodeError) as error:
        yield Finding("policy", Level.PROBLEM, f"cannot read {file}: {error}")
        return
    loaded = read_policy(text, str(file), preset=preset)
    for flaw in loaded.flaws:
        yield Finding(
            "policy", Level.PROBLEM, f"{file}: {flaw}", "Fix it: `quarterdeck policy check`."
        )
    for warning in loaded.warnings:
        yield Finding(
            "policy", Level.WARNING, f"{file}: {warning}", "The rule never does what it says."
        )
    if not loaded.flaws and not loaded.warnings:
        yield Finding("policy", Level.OK, f"{file} is valid")


def _relay(settings: Settings) -> Iterable[Finding]:
    relay = settings.relay
    if not relay.enabled:
        return
    if not relay.allow_origins:
        yield Finding("relay", Level.OK, "on; every frontend needs a token")
        return
    may = "read every session" if relay.role == "viewer" else "prompt agents and answer for you"
    yield Finding(
        "relay",
        Level.WARNING,
        f"pages from {', '.join(relay.allow_origins)} need no token, and may {may}: any program on"
        " this machine can claim to be such a page, agents included",
        "Give the frontend a token (`quarterdeck token`), and leave out `relay.allow_origins`.",
    )


def _clock() -> Iterable[Finding]:
    if time.time() < RELEASED:
        text = f"this machine's clock shows {time.strftime('%Y-%m-%d')}, which is in the past"
        yield Finding("clock", Level.PROBLEM, text, "Set it: certificates and tokens depend on it.")
    else:
        yield Finding("clock", Level.OK, time.strftime("%Y-%m-%d %H:%M:%S %z"))


def _web() -> Iterable[Finding]:
    if built_web() is None:
        advice = "In the checkout run `make deck`, then restart the hub."
        yield Finding("web app", Level.WARNING, "not built: browsers get a plain page", advice)
    else:
        yield Finding("web app", Level.OK, "built")


def _tls(home: Path, settings: Settings) -> Iterable[Finding]:
    """The certificates: their names, their ends, and who can read their keys."""
    from quarterdeck.runtime.local_ca import (  # only who has one needs the library
        AUTHORITY,
        CA_CERTIFICATE,
        HUB_CERTIFICATE,
        check_private,
    )

    server, folder = settings.server, home / TLS_FOLDER
    if server.certificate is not None:
        yield _certificate(Path(server.certificate), "Renew it.")
    if not (folder / CA_CERTIFICATE).exists():
        if server.tls is not None:
            text = "no certificate yet; the hub creates it when it starts"
            yield Finding("tls", Level.NOTE, text)
        return
    for name in (AUTHORITY, HUB_CERTIFICATE):
        try:
            check_private(folder / name)
        except QuarterdeckError as error:
            yield Finding("tls", Level.PROBLEM, str(error))
    yield _certificate(folder / HUB_CERTIFICATE, "The hub renews it: start it.")
    yield _certificate(folder / CA_CERTIFICATE, "The next start makes a new one.", trusted=True)


def _certificate(file: Path, advice: str, *, trusted: bool = False) -> Finding:
    from quarterdeck.runtime.local_ca import read_certificate

    try:
        found = read_certificate(file)
    except QuarterdeckError as error:
        return Finding("tls", Level.PROBLEM, str(error))
    what = (
        f"authority {found.subject!r}, SHA-256 {found.fingerprint}"
        if trusted
        else f"certificate for {', '.join(found.names) or 'no name'}"
    )
    left = found.ends.timestamp() - time.time()
    text = f"{what}, valid until {found.ends:%Y-%m-%d}"
    if left <= 0 or found.begins.timestamp() > time.time():
        return Finding(
            "tls",
            Level.PROBLEM,
            f"{what}: valid only from {found.begins:%Y-%m-%d} to {found.ends:%Y-%m-%d}",
            advice,
        )
    if left < ENDS_SOON:
        return Finding("tls", Level.WARNING, text, advice)
    return Finding("tls", Level.OK, text)


def _hub(hub: HubState | None) -> Iterable[Finding]:
    if hub is None:
        yield Finding("hub", Level.NOTE, "not running", "Start it: `quarterdeck serve`.")
    elif hub.version != __version__:
        yield Finding(
            "hub",
            Level.WARNING,
            f"version {hub.version} runs at {hub.address}, but {__version__} is installed",
            "Restart it; agents keep running.",
        )
    else:
        yield Finding("hub", Level.OK, f"{hub.address}, version {hub.version}, process {hub.pid}")


def _port(settings: Settings, hub: HubState | None) -> Iterable[Finding]:
    host, port = settings.server.host, settings.server.port
    if hub is not None or port == 0:
        return
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        text = "is used by another program" if taken else f"is not available: {error.strerror}"
        advice = "Use another one: `server.port`, or `quarterdeck serve --port`." if taken else ""
        yield Finding("port", Level.PROBLEM, f"{host} port {port} {text}", advice)
    else:
        yield Finding("port", Level.OK, f"{host} port {port} is free")


def _runner(home: Path, hub: HubState | None) -> Iterable[Finding]:
    living = live_runner(home / RUNNER)
    if living is None:
        if hub is not None:
            text = "no runner on this machine: agents run only on others"
            yield Finding("runner", Level.NOTE, text)
        return
    if living.version != __version__:
        yield Finding(
            "runner",
            Level.WARNING,
            f"version {living.version} runs, but {__version__} is installed",
            "`quarterdeck stop` ends it with its agents; the next `serve` starts a new one.",
        )
    else:
        yield Finding("runner", Level.OK, f"version {living.version}, process {living.pid}")


def _machines(hub: HubState) -> Iterable[Finding]:
    try:
        found = connect(Target()).call(calls.machines())
    except QuarterdeckError as error:
        yield Finding("hub", Level.PROBLEM, f"{hub.address} does not answer: {error}")
        return
    for alarm in found.alarms:
        advice = "Make the files alike at all hubs, and reload them (SIGHUP)."
        if alarm.code == "unreachable":
            advice = "Set `journal.hub_address` there, and see that its port is open for this hub."
        yield Finding("hubs", Level.PROBLEM, alarm_text(alarm), advice)
    for machine in found.machines:
        yield _machine(machine, hub)


def _machine(machine: MachineView, hub: HubState) -> Finding:
    if not machine.connected:
        return Finding("machine", Level.WARNING, f"{machine.name} is not connected")
    ahead = machine.clock_ahead_ms
    if ahead is not None and abs(ahead) > CLOCK_MS:
        text = f"the clock of {machine.name} is {abs(ahead) / 1000:.0f} s"
        text += " ahead" if ahead > 0 else " behind"
        return Finding("clock", Level.WARNING, text, "Synchronize the clocks of both machines.")
    if machine.version != hub.version:
        text = f"{machine.name} has version {machine.version}, but the hub {hub.version}"
        return Finding("machine", Level.WARNING, text, "Update the older one.")
    return Finding("machine", Level.OK, f"{machine.name}, version {machine.version}")
