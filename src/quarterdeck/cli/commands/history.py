"""Commands about history: search, export, import, retention, backup, restore and `journal`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.cli.commands.base import (
    HubOptions,
    Json,
    OneSession,
    Session,
    add_group,
    app,
    finish,
    spread,
)


@app.command("search")
@spread
def _search(
    words: Annotated[
        list[str],
        typer.Argument(help='Words that must occur; "a phrase", a prefix*, -excluded.'),
    ],
    session: OneSession = None,
    project: Annotated[
        str | None, typer.Option("--project", help="A project's name, or a folder.")
    ] = None,
    machine: Annotated[str | None, typer.Option("--machine", help="A machine's name.")] = None,
    tool: Annotated[str | None, typer.Option("--tool", help="Only calls of this tool.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="prompt, answer or tool.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="WHEN", help="A day, a time, or an age (7d).")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="WHEN", help="Before this.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=10_000, help="At most this many.")
    ] = 20,
    *,
    at: HubOptions,
    json_output: Json = False,
) -> None:
    """Search prompts, answers and tool calls of all sessions, newest first.

    The exit code is 1 if nothing is found.
    """
    from quarterdeck.cli.hub import search as values
    from quarterdeck.domain.errors import UsageError
    from quarterdeck.protocol.search import Search, TextKind

    kinds = {each.value: each for each in TextKind}
    if kind is not None and kind not in kinds:
        raise UsageError(f"--kind: one of {', '.join(kinds)}")
    wanted = Search(
        # An argument with blanks in it was meant as a phrase.
        words=" ".join(f'"{word}"' if " " in word and '"' not in word else word for word in words),
        session=session,
        project=values.project(project),
        machine=machine,
        tool=tool,
        kind=None if kind is None else kinds[kind],
        since=values.when(since, "--since"),
        until=values.when(until, "--until"),
    )
    finish(values.run_search, wanted, limit, at.target, json_output=json_output)


@app.command("export")
@spread
def _export(
    session: Session,
    file: Annotated[
        Path | None,
        typer.Argument(help="Its suffix selects the format; by default stdout."),
    ] = None,
    form: Annotated[str | None, typer.Option("--format", help="markdown, html or json.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    *,
    at: HubOptions,
) -> None:
    """Write a session to a file: Markdown, one HTML page, or all its events as JSON."""
    from quarterdeck.cli.hub.files import run_export

    finish(run_export, session, file, form, at.target, force=force)


@app.command("import")
@spread
def _import(
    sessions: Annotated[
        list[str] | None, typer.Argument(help="Only these, by the CLI's own ids.")
    ] = None,
    directory: Annotated[
        str | None, typer.Option("--directory", help="Only sessions of the project there.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print what would be imported.")
    ] = False,
    *,
    at: HubOptions,
    json_output: Json = False,
) -> None:
    """Import sessions that the CLI left on the hub's disk, to read and to resume.

    Importing is idempotent: only new messages are added.
    """
    from quarterdeck.cli.hub.files import run_import

    finish(
        run_import, sessions or [], directory, at.target, dry_run=dry_run, json_output=json_output
    )


@app.command("retention")
@spread
def _retention(
    days: Annotated[
        float | None, typer.Option("--days", help="Sessions without events for so many days.")
    ] = None,
    megabytes: Annotated[
        int | None, typer.Option("--megabytes", min=1, help="The oldest, down to this size.")
    ] = None,
    archived_only: Annotated[
        bool, typer.Option("--archived-only", help="Only archived sessions.")
    ] = False,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete them; without it they are only listed.")
    ] = False,
    *,
    at: HubOptions,
    json_output: Json = False,
) -> None:
    """List the sessions that exceed the retention limits, or delete them.

    Without a limit, the hub's own retention settings apply. Sessions in use are always kept.
    """
    from quarterdeck.cli.hub.files import run_retention
    from quarterdeck.protocol.shapes import NewRetention

    wanted = NewRetention(
        days=days, megabytes=megabytes, archived_only=archived_only, dry_run=not delete
    )
    finish(run_retention, wanted, at.target, json_output=json_output)


@app.command("backup")
def _backup(file: Annotated[Path, typer.Argument(help="The file to create.")]) -> None:
    """Back up the hub's data to one file. The hub may be running."""
    from quarterdeck.cli.hub.backup import run_backup

    finish(run_backup, file)


@app.command("restore")
def _restore(
    file: Annotated[Path, typer.Argument(help="A backup.")],
    check: Annotated[bool, typer.Option("--check", help="Only verify the backup.")] = False,
) -> None:
    """Restore a backup. The hub must be stopped; the current journal is moved aside and kept."""
    from quarterdeck.cli.hub.backup import run_restore

    finish(run_restore, file, check_only=check)


_journal = add_group("journal", "The record of all sessions: a file, or a database.")


@_journal.command("copy")
def _copy_journal(
    source: Annotated[
        str, typer.Option("--from", metavar="PLACE", help="A file, or postgresql://…")
    ],
    target: Annotated[
        str, typer.Option("--to", metavar="PLACE", help="An empty journal, or a new file.")
    ],
    json_output: Json = False,
) -> None:
    """Copy a journal between a file and PostgreSQL, and compare both. Stop the hubs first."""
    from quarterdeck.cli.hub.journals import run_copy

    finish(run_copy, source, target, json_output=json_output)
