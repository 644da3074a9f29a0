"""`quarterdeck worktree` and `quarterdeck projects`: names, options and help texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from quarterdeck.cli.hub.options import Hub, Json, Session, TokenFile


def register(app: typer.Typer, finish: Callable[..., Any]) -> None:
    """Add the commands. `finish` runs a command and ends with its exit code."""
    trees = typer.Typer(
        help="What a session has changed, and what becomes of its worktree.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    app.add_typer(trees, name="worktree")
    _register_diff(trees, finish)
    _register_settling(trees, finish)

    @app.command("projects")
    def _projects(hub: Hub = None, token_file: TokenFile = None, json_output: Json = False) -> None:
        """List the projects of the hub's configuration, with their folders."""
        from quarterdeck.cli.hub.target import Target
        from quarterdeck.cli.hub.worktrees import run_projects

        finish(run_projects, Target(hub=hub, token_file=token_file), json_output=json_output)


def _register_diff(trees: typer.Typer, finish: Callable[..., Any]) -> None:
    @trees.command("diff")
    def _diff(
        session: Session,
        stat: Annotated[bool, typer.Option("--stat", help="Only the files, with lines.")] = False,
        hub: Hub = None,
        token_file: TokenFile = None,
        json_output: Json = False,
    ) -> None:
        """Show what a session has changed, whether it is committed or not."""
        from quarterdeck.cli.hub.target import Target
        from quarterdeck.cli.hub.worktrees import run_diff

        target = Target(hub=hub, token_file=token_file)
        finish(run_diff, session, target, stat=stat, json_output=json_output)


def _register_settling(trees: typer.Typer, finish: Callable[..., Any]) -> None:
    @trees.command("merge")
    def _merge(
        session: Session,
        into: Annotated[
            str | None, typer.Option("--into", metavar="BRANCH", help="Not into its base.")
        ] = None,
        message: Annotated[
            str | None,
            typer.Option("--commit", metavar="MESSAGE", help="Commit first what is not committed."),
        ] = None,
        hub: Hub = None,
        token_file: TokenFile = None,
    ) -> None:
        """Merge its branch into the one that it was made from; with conflicts nothing changes."""
        from quarterdeck.cli.hub.target import Target
        from quarterdeck.cli.hub.worktrees import run_settle

        target = Target(hub=hub, token_file=token_file)
        finish(run_settle, session, "merge", target, into=into, message=message)

    @trees.command("keep")
    def _keep(session: Session, hub: Hub = None, token_file: TokenFile = None) -> None:
        """Leave its worktree and branch as they are, and say where."""
        from quarterdeck.cli.hub.target import Target
        from quarterdeck.cli.hub.worktrees import run_settle

        finish(run_settle, session, "keep", Target(hub=hub, token_file=token_file))

    @trees.command("discard")
    def _discard(session: Session, hub: Hub = None, token_file: TokenFile = None) -> None:
        """Remove its worktree and branch. What is nowhere else is saved first, and it says where.

        Its agent must have ended.
        """
        from quarterdeck.cli.hub.target import Target
        from quarterdeck.cli.hub.worktrees import run_settle

        finish(run_settle, session, "discard", Target(hub=hub, token_file=token_file))
