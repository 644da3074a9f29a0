"""`quarterdeck status`, `stop` and `runner`: the processes of this machine.

A process is identified by the lock that it holds, never by its pid alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.target import Target, connect, find_session
from quarterdeck.cli.terminal.output import print_json, print_line
from quarterdeck.cli.terminal.text import count, plain, state_text
from quarterdeck.client import calls
from quarterdeck.domain.addresses import check_encrypted
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.coded_texts import alarm_advice, alarm_text
from quarterdeck.protocol.commands import StopSession
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.protocol.shapes import HubAlarm
from quarterdeck.protocol.views import MachineView
from quarterdeck.runner.home import live_runner
from quarterdeck.runtime.client_tls import client_context
from quarterdeck.runtime.data_dir import data_home
from quarterdeck.service.local_hub import (
    FAR_RUNNER,
    RUNNER,
    agents_in,
    end_process,
    end_runner,
    live_hub,
)

# --- status ---------------------------------------------------------------------------------------


MIB = 1024 * 1024


class Here(Value, omit_defaults=False):
    """A process on this machine."""

    what: str
    pid: int
    version: str
    address: str
    agents: int | None = None


class Report(Value, omit_defaults=False):
    """The output of `status`."""

    data: str | None
    here: tuple[Here, ...]
    hub: str | None
    version: str | None = None
    machines: tuple[MachineView, ...] = ()
    alarms: tuple[HubAlarm, ...] = ()
    sessions: dict[SessionState, int]
    asks: int = 0


def run_status(target: Target, *, json_output: bool) -> int:
    """Print the status; the exit code is 1 if no hub runs."""
    from rich.text import Text  # `stop` does not need it

    from quarterdeck.cli.terminal import console as consoles

    report = _report(target)
    if json_output:
        print_json([report])
    else:
        for name, text in _lines(report):
            line = Text.assemble((f"{name:<9}", "bold"), plain(text))
            consoles.stdout().print(line, soft_wrap=True)
    return Exit.SUCCESS if report.hub else Exit.FAILED


def _report(target: Target) -> Report:
    home = data_home(create=False)
    here: list[Here] = []
    hub = live_hub(home) if target.is_here else None
    if hub is not None:
        here.append(Here(what="hub", pid=hub.pid, version=hub.version, address=hub.address))
    if target.is_here:
        here += [found for folder in (RUNNER, FAR_RUNNER) if (found := _runner(home, folder))]
    data = str(home) if target.is_here else None
    if target.is_here and hub is None:
        return Report(data=data, here=tuple(here), hub=None, sessions={})
    client = connect(target)
    listed = client.call(calls.machines())
    return Report(
        data=data,
        here=tuple(here),
        hub=client.where.base,
        version=client.call(calls.health()).version,
        machines=listed.machines,
        alarms=listed.alarms,
        sessions=dict(Counter(shape.state for shape in client.sessions())),
        asks=len(client.asks()),
    )


def _runner(home: Path, folder: str) -> Here | None:
    living = live_runner(home / folder)
    if living is None:
        return None
    return Here(
        what=folder,
        pid=living.pid,
        version=living.version,
        address=living.hub_url,
        agents=len(agents_in(home / folder)),
    )


def _lines(report: Report) -> list[tuple[str, str]]:
    pid = next((here.pid for here in report.here if here.what == "hub"), None)
    process = f", process {pid}" if pid else ""
    hub = f"{report.hub}, version {report.version}{process}" if report.hub else "not running"
    lines = [("hub", hub)]
    for here in report.here:
        if here.agents is not None:
            agents = count(here.agents, "agent")
            lines.append(
                (here.what, f"process {here.pid}, {agents}, for the hub at {here.address}")
            )
    lines += [("ALARM", f"{alarm_text(each)}: {alarm_advice(each)}") for each in report.alarms]
    lines += [("machine", _machine(machine)) for machine in report.machines]
    by_state = ", ".join(
        f"{number} {state_text(state)}" for state, number in sorted(report.sessions.items())
    )
    if report.hub:
        lines.append(("sessions", by_state or "none"))
    if report.asks:
        lines.append(("asks", f"{report.asks} open; `quarterdeck asks` lists them"))
    if report.data:
        lines.append(("data", report.data))
    return lines


def _machine(machine: MachineView) -> str:
    if not machine.connected:
        return f"{machine.name}, not connected"
    parts = [machine.name, count(machine.runs, "agent")]
    if machine.memory_available:
        parts.append(f"{machine.memory_available // MIB:,} MiB of memory free")
    if machine.since:
        parts.append(f"connected for {max(0, round(time.time() - machine.since / 1000))} s")
    return ", ".join(parts)


# --- stop -----------------------------------------------------------------------------------------


def run_stop(sessions: list[str], target: Target, *, hub_only: bool) -> int:
    """Stop these sessions' agents; or everything."""
    if sessions:
        client = connect(target)
        for session in [find_session(client, given) for given in sessions]:
            client.submit(StopSession(session=session))
        return Exit.SUCCESS
    if not target.is_here:
        raise UsageError("stop a hub elsewhere on its own machine; here, name the sessions to stop")
    home = data_home(create=False)
    done: list[str] = []
    failed = False
    for folder in () if hub_only else (home / RUNNER, home / FAR_RUNNER):
        if live_runner(folder) is None:
            continue
        agents = len(agents_in(folder))
        ended = end_runner(folder)
        failed |= not ended
        what = f"{count(agents, 'agent')} and the runner" if agents else "The runner"
        done.append(f"{what} {'ended' if ended else 'did not end'}.")
    if (hub := live_hub(home)) is not None:
        ended = end_process(hub.pid, lambda: live_hub(home) is None)
        failed |= not ended
        done.append(f"The hub at {hub.address} {'ended' if ended else 'did not end'}.")
    elif hub_only:
        done.append("No hub is running here.")
    print_line("\n".join(done or ["Nothing is running here."]))
    return Exit.FAILED if failed else Exit.SUCCESS


# --- runner ---------------------------------------------------------------------------------------


def run_runner(
    hubs: Sequence[str],
    token_file: Path,
    machine: str | None,
    home: Path | None,
    options: Mapping[str, object],
    *,
    insecure: bool = False,
) -> int:
    """Run until a signal comes; its agents end with it. Returns the exit code.

    `options` are added to its command line; None is left out.
    """
    if not token_file.is_file():
        raise UsageError(f"--token-file: {token_file} is not a file; see `quarterdeck token`")
    for hub in hubs:
        check_encrypted(hub, insecure=insecure)
    if (ca_file := options.get("--ca-file")) is not None:
        client_context(Path(str(ca_file)))  # refuses what is no certificate
    folder = home or data_home() / FAR_RUNNER
    # A person started it: it keeps running while the hub is away.
    arguments = ["--home", str(folder), "--token-file", str(token_file)]
    arguments += [part for hub in hubs for part in ("--hub", hub)]
    arguments += ["--idle", "inf"]
    arguments += ["--closed", str(data_home(create=False)), "--closed", str(token_file.absolute())]
    if machine is not None:
        arguments += ["--machine", machine]
    for option, value in options.items():
        if value is not None:
            arguments += [option, str(value)]
    from quarterdeck.runner.__main__ import main  # an event loop, which `stop` does not need

    return main(arguments)
