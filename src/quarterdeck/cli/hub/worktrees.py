"""`quarterdeck worktree …` and `projects`: changes of a session, and the projects."""

from __future__ import annotations

from rich.text import Text

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.target import Target, connect, find_session
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.output import print_json, print_line
from quarterdeck.cli.terminal.text import count, plain
from quarterdeck.client import calls
from quarterdeck.protocol.machine_requests import Changes, TreeAction
from quarterdeck.protocol.shapes import WorktreeAction

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def run_diff(session: str, target: Target, *, stat: bool, json_output: bool) -> int:
    """Print the changes of a session."""
    client = connect(target)
    changes = client.call(calls.diff(find_session(client, session)))
    if json_output:
        print_json([changes])
        return Exit.SUCCESS
    if not stat:
        _print_text(changes)
    _print_files(changes)
    return Exit.SUCCESS


def run_settle(
    session: str,
    action: str,
    target: Target,
    *,
    into: str | None = None,
    message: str | None = None,
) -> int:
    """Merge, keep or discard its worktree; print the result."""
    client = connect(target)
    wanted = WorktreeAction(action=TreeAction(action), into=into, message=message)
    print_line(client.call(calls.settle(find_session(client, session), wanted)).text)
    return Exit.SUCCESS


def run_projects(target: Target, *, json_output: bool) -> int:
    """List the projects."""
    projects = connect(target).call(calls.projects()).projects
    if json_output:
        print_json(projects)
        return Exit.SUCCESS
    console = consoles.stdout()
    if not projects:
        consoles.stderr().print(Text("no projects; they are defined in the configuration"))
    width = max((len(each.name) for each in projects), default=0)
    for each in projects:
        line = Text.assemble((f"{each.name:<{width}}", "cyan"), "  ")
        machine = f"{each.defaults.machine}:" if each.defaults.machine else ""
        line.append(plain(machine + each.defaults.directory))
        if each.defaults.model:
            line.append(f"  {plain(each.defaults.model)}", "dim")
        console.print(line, soft_wrap=True)
    return Exit.SUCCESS


def _print_text(changes: Changes) -> None:
    console = consoles.stdout()
    for line in changes.text.splitlines():
        console.print(Text(plain(line), _STYLES.get(line[:1], "")), soft_wrap=True)
    if changes.text_cut:
        console.print(Text("… the rest is too long to show here", "dim"))


def _print_files(changes: Changes) -> None:
    console = consoles.stdout()
    for file in changes.files:
        moved = f"{file.old_path} → " if file.old_path else ""
        lines = "binary" if file.added is None else f"+{file.added} -{file.removed}"
        text = f"{file.status:<9} {lines:>12}  {moved}{file.path}"
        console.print(Text(plain(text)), soft_wrap=True)
    if changes.files_left_out:
        console.print(Text(f"… and {count(changes.files_left_out, 'file')} more"))
    total = len(changes.files) + changes.files_left_out
    where = f"{count(total, 'file')}, +{changes.added} -{changes.removed}"
    if changes.branch is not None:
        where += f", {count(changes.commits, 'commit')} on {changes.branch}"
        where += f" since {changes.into or changes.base[:12]}"
    if changes.uncommitted:
        where += f", {changes.uncommitted} not committed"
    console.print(Text(plain(where), "bold"), soft_wrap=True)
