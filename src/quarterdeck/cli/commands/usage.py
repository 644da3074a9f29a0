"""The commands about what is used and what may be spent: names, options and help texts."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from quarterdeck.cli.hub.options import Hub, Json, Session, TokenFile


class By(StrEnum):
    """What usage is told by."""

    DAY = "day"
    PROJECT = "project"
    MODEL = "model"
    MACHINE = "machine"
    SESSION = "session"


def register(app: typer.Typer, finish: Callable[..., Any]) -> None:
    """Add the commands."""

    @app.command("usage")
    def _usage(
        by: Annotated[By, typer.Option("--by", help="What the rows are.")] = By.DAY,
        since: Annotated[
            str | None,
            typer.Option("--since", metavar="DAY", help="From this day on; else 30 days ago."),
        ] = None,
        until: Annotated[
            str | None, typer.Option("--until", metavar="DAY", help="Up to this day, and with it.")
        ] = None,
        hub: Hub = None,
        token_file: TokenFile = None,
        json_output: Json = False,
    ) -> None:
        """Show what was used: cost, tokens, turns, tool calls, and the time that questions waited.

        Also where the account's limits stand, and when they are reset, as far as the CLI told.
        """
        from quarterdeck.cli.hub.target import Target
        from quarterdeck.cli.hub.usage import run_usage

        target = Target(hub=hub, token_file=token_file)
        finish(run_usage, target, by.value, since, until, json_output=json_output)

    @app.command("budget")
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
        lift: Annotated[bool, typer.Option("--lift", help="Take all its limits away.")] = False,
        hub: Hub = None,
        token_file: TokenFile = None,
    ) -> None:
        """Show a session's budget, or change it: a limit that is not named stays as it was."""
        from quarterdeck.cli.hub.budget import run_budget
        from quarterdeck.cli.hub.target import Target

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
        target = Target(hub=hub, token_file=token_file)
        finish(run_budget, session, target, changes, lift=lift)
