"""Commands about the changes of a session, its worktree, and the projects."""

from __future__ import annotations

from typing import Annotated

import typer

from quarterdeck.cli.commands.base import (
    HubOptions,
    Json,
    Session,
    add_group,
    app,
    finish,
    spread,
)

_worktree = add_group("worktree", "A session's changes: show, merge, keep or discard them.")


@app.command("projects")
@spread
def _projects(at: HubOptions, json_output: Json = False) -> None:
    """List the projects of the hub's configuration, with their folders."""
    from quarterdeck.cli.hub.worktrees import run_projects

    finish(run_projects, at.target, json_output=json_output)


@_worktree.command("diff")
@spread
def _diff(
    session: Session,
    stat: Annotated[bool, typer.Option("--stat", help="Only the files, with line counts.")] = False,
    *,
    at: HubOptions,
    json_output: Json = False,
) -> None:
    """Show what a session has changed, committed or not."""
    from quarterdeck.cli.hub.worktrees import run_diff

    finish(run_diff, session, at.target, stat=stat, json_output=json_output)


@_worktree.command("merge")
@spread
def _merge(
    session: Session,
    into: Annotated[
        str | None,
        typer.Option("--into", metavar="BRANCH", help="Merge into this branch, not its base."),
    ] = None,
    message: Annotated[
        str | None,
        typer.Option("--commit", metavar="MESSAGE", help="First commit uncommitted changes."),
    ] = None,
    *,
    at: HubOptions,
) -> None:
    """Merge the session's branch into its base branch. On conflicts nothing changes."""
    from quarterdeck.cli.hub.worktrees import run_settle

    finish(run_settle, session, "merge", at.target, into=into, message=message)


@_worktree.command("keep")
@spread
def _keep(session: Session, *, at: HubOptions) -> None:
    """Keep the worktree and its branch, and print where they are."""
    from quarterdeck.cli.hub.worktrees import run_settle

    finish(run_settle, session, "keep", at.target)


@_worktree.command("discard")
@spread
def _discard(session: Session, *, at: HubOptions) -> None:
    """Remove the worktree and its branch. Work that exists nowhere else is saved first.

    The session's agent must have ended.
    """
    from quarterdeck.cli.hub.worktrees import run_settle

    finish(run_settle, session, "discard", at.target)
