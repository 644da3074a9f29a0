"""`quarterdeck schedule …`: the schedules and inbound webhooks of a hub."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from rich.table import Table
from rich.text import Text

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub import spec as values
from quarterdeck.cli.hub.target import Target, connect
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.output import print_json, print_line
from quarterdeck.cli.terminal.text import cost, moment, plain
from quarterdeck.client import calls
from quarterdeck.domain.decode_errors import describe
from quarterdeck.domain.errors import UsageError
from quarterdeck.protocol.schedules import (
    Firing,
    FiringState,
    Schedule,
    ScheduleShape,
)
from quarterdeck.wire.tools import one_line

_STYLES = {
    FiringState.DONE: "green",
    FiringState.FAILED: "red",
    FiringState.SKIPPED: "yellow",
    FiringState.WAITING: "dim",
}
_REASONS = {
    "missed": "missed while the hub was down",
    "still_running": "the last one was still running",
    "day_limit": "limit of the day",
    "queue_full": "too many were waiting",
    "owner_has_no_access": "its owner has no access any more",
    "machine_not_connected": "its machine did not connect",
    "time_limit": "stopped at its time limit",
    "not_started": "could not be started",
    "turn_failed": "the turn failed",
    "ended": "ended before its work was done",
    "session_deleted": "the session was deleted",
    "prompt_cancelled": "the prompt was cancelled",
}


def run_list(target: Target, *, json_output: bool) -> int:
    """List them."""
    shapes = connect(target).call(calls.schedules()).schedules
    if json_output:
        print_json(shapes)
        return Exit.SUCCESS
    if not shapes:
        consoles.stderr().print(Text("no schedules"))
        return Exit.SUCCESS
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("name", "when", "next", "last", "owner"):
        table.add_column(heading, no_wrap=True, overflow="ellipsis")
    for shape in shapes:
        table.add_row(
            Text(plain(shape.name), "cyan"),
            Text(plain(when_text(shape))),
            Text(_next_text(shape), "yellow" if shape.paused else ""),
            _result_text(shape.last),
            Text(plain(shape.owner), "dim"),
        )
    consoles.stdout().print(table)
    return Exit.SUCCESS


def run_add(
    given: Mapping[str, object],
    prompt: str,
    directory: str | None,
    target: Target,
    *,
    json_output: bool,
) -> int:
    """Add a schedule; print its next time."""
    here = target.is_here and given["machine"] is None
    folder = None if directory is None else values.absolute(directory, here=here)
    members = {name: value for name, value in given.items() if value is not None}
    members |= {"prompt": values.read_prompt(prompt)}
    if folder is not None:
        members["directory"] = folder
    try:
        schedule = msgspec.convert(members, Schedule)
    except msgspec.ValidationError as error:
        raise UsageError(describe(error)) from error
    made = connect(target).call(calls.add_schedule(schedule))
    if json_output:
        print_json([made])
    else:
        print_line(f"{made.name}: {when_text(made)}; next: {_next_text(made)}")
    return Exit.SUCCESS


def run_pause(name: str, target: Target, *, paused: bool) -> int:
    """Pause or resume one; print its next time."""
    shape = connect(target).call(calls.pause_schedule(name, paused=paused))
    print_line(f"{shape.name}: {_next_text(shape)}")
    return Exit.SUCCESS


def run_now(name: str, target: Target, *, json_output: bool) -> int:
    """Start a session now."""
    firing = connect(target).call(calls.run_schedule(name))
    if json_output:
        print_json([firing])
    else:
        print_line(f"{name}: starts now; see: quarterdeck schedule history {name}")
    return Exit.SUCCESS


def run_history(name: str, limit: int, target: Target, *, json_output: bool) -> int:
    """List the starts of one."""
    firings = connect(target).call(calls.firings(name, limit=limit)).firings
    if json_output:
        print_json(firings)
        return Exit.SUCCESS
    console = consoles.stdout()
    if not firings:
        consoles.stderr().print(Text("nothing was started yet"))
    for firing in firings:
        line = Text(f"{moment(firing.planned)}  ")
        line.append(_result_text(firing))
        if firing.cost_usd:
            line.append(f"  {cost(firing.cost_usd)}", "dim")
        if started := firing.session or firing.loop:
            line.append(f"  {plain(started)}", "cyan")
        if firing.by:
            line.append(f"  by {one_line(firing.by, 60)}", "dim")
        if firing.detail:
            line.append(f"  {one_line(firing.detail, 200)}", "dim")
        console.print(line, soft_wrap=True)
    return Exit.SUCCESS


def run_remove(name: str, target: Target) -> int:
    """Remove one."""
    connect(target).call(calls.remove_schedule(name))
    print_line(f"{name}: removed")
    return Exit.SUCCESS


def when_text(shape: ScheduleShape) -> str:
    """The times of a schedule, for people."""
    match shape.kind:
        case "webhook":
            return f"request to {shape.when}"
        case "every":
            return f"every {shape.when}"
        case kind:
            zone = "" if shape.timezone in {None, "UTC"} else f" {shape.timezone}"
            return f"{kind} {shape.when}{zone}"


def _next_text(shape: ScheduleShape) -> str:
    if shape.paused:
        return f"paused by {shape.paused_by}" if shape.paused_by else "paused"
    if shape.kind == "webhook":
        return "on request"
    return "never" if shape.next is None else moment(shape.next)


def _result_text(firing: Firing | None) -> Text:
    if firing is None:
        return Text("never", "dim")
    reason = _REASONS.get(firing.reason, firing.reason.replace("_", " "))
    text = firing.state.value + (f": {reason}" if reason else "")
    return Text(plain(text), _STYLES.get(firing.state, ""))
