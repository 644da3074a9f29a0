"""The hub's commands about the past: their names, options and help texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from quarterdeck.cli.hub.options import Hub, Json, Session, TokenFile


def register(app: typer.Typer, finish: Callable[..., Any]) -> None:
    """Add the commands."""
    _register_search(app, finish)
    _register_files(app, finish)
    _register_keeping(app, finish)


def _register_search(app: typer.Typer, finish: Callable[..., Any]) -> None:
    @app.command("search")
    def _search(
        words: Annotated[
            list[str],
            typer.Argument(help='Words that must be there; "a phrase", a begin*, -without.'),
        ],
        session: Annotated[
            str | None, typer.Option("--session", metavar="SESSION", help="In this one only.")
        ] = None,
        project: Annotated[
            str | None, typer.Option("--project", help="A project's name, or a folder.")
        ] = None,
        machine: Annotated[str | None, typer.Option("--machine", help="A machine's name.")] = None,
        tool: Annotated[str | None, typer.Option("--tool", help="Only calls of this tool.")] = None,
        kind: Annotated[str | None, typer.Option("--kind", help="prompt, answer or tool.")] = None,
        since: Annotated[
            str | None, typer.Option("--since", metavar="WHEN", help="A day, a time, or 7d.")
        ] = None,
        until: Annotated[
            str | None, typer.Option("--until", metavar="WHEN", help="Before that.")
        ] = None,
        limit: Annotated[
            int, typer.Option("--limit", "-n", min=1, max=10_000, help="So many at most.")
        ] = 20,
        hub: Hub = None,
        token_file: TokenFile = None,
        json_output: Json = False,
    ) -> None:
        """Search prompts, answers and tool calls over all sessions, newest first.

        The exit code is 1 when nothing is found.
        """
        from quarterdeck.cli.hub import search as finding
        from quarterdeck.cli.hub.target import Target
        from quarterdeck.domain.errors import UsageError
        from quarterdeck.journal.search import Search, TextKind

        kinds = {each.value: each for each in TextKind}
        if kind is not None and kind not in kinds:
            raise UsageError(f"--kind: one of {', '.join(kinds)}")
        wanted = Search(
            # A word of the command line that has blanks in it was meant as a phrase.
            words=" ".join(
                f'"{word}"' if " " in word and '"' not in word else word for word in words
            ),
            session=session,
            project=finding.project(project),
            machine=machine,
            tool=tool,
            kind=None if kind is None else kinds[kind],
            since=finding.when(since, "--since"),
            until=finding.when(until, "--until"),
        )
        target = Target(hub=hub, token_file=token_file)
        finish(finding.run_search, wanted, limit, target, json_output=json_output)


def _register_files(app: typer.Typer, finish: Callable[..., Any]) -> None:
    @app.command("export")
    def _export(
        session: Session,
        file: Annotated[
            Path | None, typer.Argument(help="Its ending tells the format; else stdout.")
        ] = None,
        form: Annotated[
            str | None, typer.Option("--format", help="markdown, html or json.")
        ] = None,
        force: Annotated[
            bool, typer.Option("--force", help="Overwrite a file that is there.")
        ] = False,
        hub: Hub = None,
        token_file: TokenFile = None,
    ) -> None:
        """Write a session to a file: Markdown, one page of HTML, or all its events as JSON."""
        from quarterdeck.cli.hub.files import run_export
        from quarterdeck.cli.hub.target import Target

        target = Target(hub=hub, token_file=token_file)
        finish(run_export, session, file, form, target, force=force)

    @app.command("import")
    def _import(
        sessions: Annotated[
            list[str] | None, typer.Argument(help="Only these, by the CLI's own ids.")
        ] = None,
        directory: Annotated[
            str | None, typer.Option("--directory", help="Only those of the project there.")
        ] = None,
        dry_run: Annotated[
            bool, typer.Option("--dry-run", help="Tell what would be imported.")
        ] = False,
        hub: Hub = None,
        token_file: TokenFile = None,
        json_output: Json = False,
    ) -> None:
        """Take in sessions that the CLI left on the hub's disk, to read and to go on with.

        Again and again is once: only what is new is added.
        """
        from quarterdeck.cli.hub.files import run_import
        from quarterdeck.cli.hub.target import Target

        target = Target(hub=hub, token_file=token_file)
        finish(
            run_import,
            sessions or [],
            directory,
            target,
            dry_run=dry_run,
            json_output=json_output,
        )


def _register_keeping(app: typer.Typer, finish: Callable[..., Any]) -> None:
    @app.command("retention")
    def _retention(
        days: Annotated[
            float | None, typer.Option("--days", help="Sessions without news for so long go.")
        ] = None,
        megabytes: Annotated[
            int | None, typer.Option("--megabytes", min=1, help="The oldest go until it fits.")
        ] = None,
        archived_only: Annotated[
            bool, typer.Option("--archived-only", help="Only what was put away goes.")
        ] = False,
        delete: Annotated[
            bool, typer.Option("--delete", help="Do it. Else it is only told what would go.")
        ] = False,
        hub: Hub = None,
        token_file: TokenFile = None,
        json_output: Json = False,
    ) -> None:
        """Tell which sessions are too old or too much to be kept; or delete them.

        Without a limit the hub's own rule holds. What is in use always stays.
        """
        from quarterdeck.cli.hub.files import run_retention
        from quarterdeck.cli.hub.target import Target
        from quarterdeck.fronts.http.history_shapes import NewRetention

        wanted = NewRetention(
            days=days, megabytes=megabytes, archived_only=archived_only, dry_run=not delete
        )
        target = Target(hub=hub, token_file=token_file)
        finish(run_retention, wanted, target, json_output=json_output)

    @app.command("backup")
    def _backup(
        file: Annotated[Path, typer.Argument(help="The new file.")],
    ) -> None:
        """Back the hub's data up into one file, also while it works."""
        from quarterdeck.cli.hub.backup import run_backup

        finish(run_backup, file)

    @app.command("restore")
    def _restore(
        file: Annotated[Path, typer.Argument(help="A backup.")],
        check: Annotated[
            bool, typer.Option("--check", help="Only see whether it is good.")
        ] = False,
    ) -> None:
        """Put a backup in place. The hub must be stopped; its journal is moved aside, and kept."""
        from quarterdeck.cli.hub.backup import run_restore

        finish(run_restore, file, check_only=check)
