"""`quarterdeck doctor`: problems of Claude Code and of the hub, and what to do about them.

Owns how findings are printed, as text and as JSON, and the exit code: 1 if there is a problem.
`findings` checks the machine and `hub.findings` the hub; `probe` runs the CLI, offline, on request.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import msgspec
from msgspec import Struct
from rich.console import Console
from rich.text import Text

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.findings import look_at_hub
from quarterdeck.cli.local.findings import Cli, Finding, Level, look
from quarterdeck.cli.local.probe import Answer, Probe, Scene, probe_cli
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.output import write_all
from quarterdeck.cli.terminal.text import count, plain
from quarterdeck.domain.errors import UsageError

_STYLES = {
    Level.OK: "green",
    Level.NOTE: "cyan",
    Level.WARNING: "yellow",
    Level.PROBLEM: "bold red",
}


class Report(Struct, frozen=True):
    """The findings, as `--json` prints them."""

    command: tuple[str, ...] | None
    version: str | None
    findings: list[Finding]
    probe: Probe | None = None


def doctor(
    *,
    claude: str | None,
    api_billing: bool,
    probe: bool,
    json_output: bool,
    config: Path | None = None,
) -> int:
    """Check, and print the findings; returns the exit code."""
    cli, findings = look(claude, api_billing=api_billing)
    findings += look_at_hub(config)
    console = consoles.stdout()
    if not json_output:
        _show_findings(findings, console)
    probed = _probe(cli, console, quiet=json_output) if probe else None
    if json_output:
        report = Report(
            cli.command if cli else None, cli.version if cli else None, findings, probed
        )
        encoded = msgspec.json.format(msgspec.json.encode(report), indent=2)
        write_all(sys.stdout.fileno(), encoded + b"\n")
    elif probed is not None:
        _show_probe(probed, console)
    bad = any(finding.level is Level.PROBLEM for finding in findings)
    return Exit.FAILED if bad or (probed is not None and probed.failed) else Exit.SUCCESS


def _probe(cli: Cli | None, console: Console, *, quiet: bool) -> Probe:
    if cli is None:
        raise UsageError("there is no CLI to probe")
    if not quiet:
        console.print()
        console.print(Text("running it offline, in a folder of its own …", "dim"))

    def report(scene: Scene) -> None:
        if not quiet:
            _show_scene(scene, console)

    return anyio.run(probe_cli, cli.command, report)


def _show_findings(findings: list[Finding], console: Console) -> None:
    width = max(len(finding.topic) for finding in findings)
    for finding in findings:
        line = Text.assemble((f"{finding.level.value:<8}", _STYLES[finding.level]))
        line.append(f" {finding.topic:<{width}}  ", "dim")
        line.append(plain(finding.text))
        console.print(line, soft_wrap=not console.is_terminal)
        if finding.advice:
            console.print(
                Text(f"{'':8} {'':<{width}}  → {plain(finding.advice)}", "bold"),
                soft_wrap=not console.is_terminal,
            )


def _show_scene(scene: Scene, console: Console) -> None:
    mark = ("failed  ", "bold red") if scene.problem else ("ok      ", "green")
    text = f"{scene.name}: {scene.problem}" if scene.problem else scene.name
    console.print(Text.assemble(mark, f" {plain(text)}"), soft_wrap=True)


def _show_probe(probe: Probe, console: Console) -> None:
    console.print()
    for answer in Answer:
        names = sorted(name for name, given in probe.commands.items() if given is answer)
        if names:
            style = "green" if answer is Answer.ANSWERED else ""
            console.print(
                Text.assemble((f"{answer.value}: ", style or "yellow"), ", ".join(names)),
                soft_wrap=not console.is_terminal,
            )
    if probe.not_tried:
        console.print(
            Text(
                f"not tried, because they change or end something: {', '.join(probe.not_tried)}",
                "dim",
            ),
            soft_wrap=not console.is_terminal,
        )
    console.print()
    received = count(sum(probe.received.values()), "message")
    console.print(Text(f"received {received} of {count(len(probe.received), 'type')}"))
    if not probe.unknown:
        console.print(Text("nothing in them is new to us", "green"))
        return
    console.print(Text(f"{count(len(probe.unknown), 'thing')} new to us:", "yellow"))
    for finding in probe.unknown:
        console.print(Text(f"  {plain(finding)}"), soft_wrap=True)
