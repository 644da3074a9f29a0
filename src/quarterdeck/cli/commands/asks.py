"""The hub's commands about open questions and history: names, options and help texts."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from quarterdeck.cli.hub.options import Hub, Json, Session, TokenFile

OfSession = Annotated[str | None, typer.Option("--session", help="Only of this session.")]


class Verb(StrEnum):
    """What can be said to a question in one word."""

    ALLOW = "allow"
    DENY = "deny"
    SKIP = "skip"
    CANCEL = "cancel"


class Reach(StrEnum):
    """How far an allowance reaches."""

    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"


class PlanWay(StrEnum):
    """What is to become of a plan."""

    FRESH = "fresh"
    AUTO = "auto"
    MANUAL = "manual"
    REVISE = "revise"
    REJECT = "reject"


def register(app: typer.Typer, finish: Callable[..., Any]) -> None:
    """Add the commands."""

    @app.command("asks")
    def _asks(
        session: OfSession = None,
        hub: Hub = None,
        token_file: TokenFile = None,
        json_output: Json = False,
    ) -> None:
        """List the open questions, oldest first."""
        from quarterdeck.cli.hub.asks import run_asks
        from quarterdeck.cli.hub.target import Target

        target = Target(hub=hub, token_file=token_file)
        finish(run_asks, session, target, json_output=json_output)

    @app.command("answer")
    def _answer(
        ask: Annotated[
            str,
            typer.Argument(
                metavar="ASK",
                help="Its id, as much as is unique; or the session's, if it asks only one thing.",
            ),
        ],
        verb: Annotated[Verb | None, typer.Argument(help="For a permission, or a form.")] = None,
        message: Annotated[
            str, typer.Option("--message", "-m", help="For the model: why not, or what instead.")
        ] = "",
        input_: Annotated[
            str | None,
            typer.Option(
                "--input", metavar="FILE|JSON", help="allow: with this input instead of its own."
            ),
        ] = None,
        scope: Annotated[
            Reach, typer.Option("--scope", help="allow: how far it reaches.")
        ] = Reach.ONCE,
        stop: Annotated[bool, typer.Option("--stop", help="deny: and stop the turn.")] = False,
        plan: Annotated[
            PlanWay | None, typer.Option("--plan", help="What is to become of a plan.")
        ] = None,
        answers: Annotated[
            list[str] | None,
            typer.Option(
                "--answer",
                metavar="QUESTION=LABEL",
                help="For a question: a label, or any text. Repeatable.",
            ),
        ] = None,
        hub: Hub = None,
        token_file: TokenFile = None,
    ) -> None:
        """Answer an open question. The first answer counts."""
        from quarterdeck.cli.hub.asks import AnswerArguments, run_answer
        from quarterdeck.cli.hub.target import Target
        from quarterdeck.protocol.commands import Scope

        given = AnswerArguments(
            verb=verb.value if verb else None,
            message=message,
            input=input_,
            scope=Scope(scope.value),
            stop=stop,
            plan=plan.value if plan else None,
            answers=tuple(answers or ()),
        )
        finish(run_answer, ask, given, Target(hub=hub, token_file=token_file))

    @app.command("log")
    def _log(
        session: Session,
        follow: Annotated[
            bool, typer.Option("--follow", "-f", help="Go on with what happens.")
        ] = False,
        hub: Hub = None,
        token_file: TokenFile = None,
        json_output: Json = False,
    ) -> None:
        """Show a session's history, as `run` would have; or as JSON, event by event."""
        from quarterdeck.cli.hub.log import run_log
        from quarterdeck.cli.hub.target import Target

        target = Target(hub=hub, token_file=token_file)
        finish(run_log, session, target, follow=follow, json_output=json_output)

    audit = typer.Typer(
        help="Who or what let each tool call pass, or did not. Without a command: show the last.",
        invoke_without_command=True,
        rich_markup_mode=None,
    )
    app.add_typer(audit, name="audit")

    @audit.callback()
    def _audit(
        context: typer.Context,
        session: OfSession = None,
        limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="The last so many.")] = 100,
        hub: Hub = None,
        token_file: TokenFile = None,
        json_output: Json = False,
    ) -> None:
        """Show who or what let each tool call pass, or did not, and why."""
        if context.invoked_subcommand is not None:
            return
        from quarterdeck.cli.hub.log import run_audit
        from quarterdeck.cli.hub.target import Target

        target = Target(hub=hub, token_file=token_file)
        finish(run_audit, session, target, limit=limit, json_output=json_output)

    @audit.command("verify")
    def _verify(
        head: Annotated[
            str | None,
            typer.Option("--head", metavar="POSITION:SEAL", help="As an earlier check gave it."),
        ] = None,
        hub: Hub = None,
        token_file: TokenFile = None,
        json_output: Json = False,
    ) -> None:
        """Check that nobody has changed the audit log. Exit code 1 if somebody has."""
        from quarterdeck.cli.hub.policy import run_verify
        from quarterdeck.cli.hub.target import Target

        target = Target(hub=hub, token_file=token_file)
        finish(run_verify, head, target, json_output=json_output)
