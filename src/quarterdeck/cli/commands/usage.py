"""Commands about usage and budgets."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from quarterdeck.cli.commands.base import HubOptions, Json, Session, app, finish, spread


class By(StrEnum):
    """How usage is grouped."""

    DAY = "day"
    PROJECT = "project"
    MODEL = "model"
    MACHINE = "machine"
    SESSION = "session"


@app.command("usage")
@spread
def _usage(
    by: Annotated[By, typer.Option("--by", help="One row for each of these.")] = By.DAY,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="DAY", help="The first day; by default 30 days ago."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="DAY", help="The last day, inclusive.")
    ] = None,
    *,
    at: HubOptions,
    json_output: Json = False,
) -> None:
    """Show usage: cost, tokens, turns, tool calls, and how long questions waited.

    Also shows the account's limits and when they reset, as far as the CLI reported them.
    """
    from quarterdeck.cli.hub.usage import run_usage

    finish(run_usage, at.target, by.value, since, until, json_output=json_output)


@app.command("budget")
@spread
def _budget(
    session: Session,
    run_usd: Annotated[
        float | None, typer.Option("--run-usd", help="US dollars for each run of its CLI.")
    ] = None,
    run_tokens: Annotated[
        int | None, typer.Option("--run-tokens", help="Tokens for each run of its CLI.")
    ] = None,
    session_usd: Annotated[
        float | None, typer.Option("--session-usd", help="US dollars for the session.")
    ] = None,
    session_tokens: Annotated[
        int | None, typer.Option("--session-tokens", help="Tokens for the session.")
    ] = None,
    lift: Annotated[bool, typer.Option("--lift", help="Remove all its limits.")] = False,
    *,
    at: HubOptions,
) -> None:
    """Show or change a session's budget. Limits that are not named stay as they are."""
    from quarterdeck.cli.hub.usage import run_budget

    changes: dict[str, float] = {
        name: value
        for name, value in (
            ("run_usd", run_usd),
            ("run_tokens", run_tokens),
            ("session_usd", session_usd),
            ("session_tokens", session_tokens),
        )
        if value is not None
    }
    finish(run_budget, session, at.target, changes, lift=lift)
