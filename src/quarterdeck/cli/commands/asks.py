"""Commands about open questions, a session's history, and the audit log."""

from __future__ import annotations

from enum import StrEnum
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


class Verb(StrEnum):
    """An answer in one word."""

    ALLOW = "allow"
    DENY = "deny"
    SKIP = "skip"
    CANCEL = "cancel"


class Reach(StrEnum):
    """Where a permission is valid."""

    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"
    EVERYWHERE = "everywhere"


class PlanChoice(StrEnum):
    """The decision about a plan."""

    FRESH = "fresh"
    AUTO = "auto"
    MANUAL = "manual"
    REVISE = "revise"
    REJECT = "reject"


@app.command("asks")
@spread
def _asks(session: OneSession = None, *, at: HubOptions, json_output: Json = False) -> None:
    """List the open questions, oldest first."""
    from quarterdeck.cli.hub.asks import run_asks

    finish(run_asks, session, at.target, json_output=json_output)


@app.command("answer")
@spread
def _answer(
    ask: Annotated[
        str,
        typer.Argument(
            metavar="ASK",
            help="The question's id or a unique prefix; or a session with one open question.",
        ),
    ],
    verb: Annotated[
        Verb | None, typer.Argument(help="The answer to a permission request or a form.")
    ] = None,
    message: Annotated[
        str, typer.Option("--message", "-m", help="For the model: why not, or what to do instead.")
    ] = "",
    input_: Annotated[
        str | None,
        typer.Option("--input", metavar="FILE|JSON", help="allow: replace the tool's input."),
    ] = None,
    scope: Annotated[
        Reach,
        typer.Option("--scope", help="allow: once, or by a grant in the session or beyond."),
    ] = Reach.ONCE,
    rules: Annotated[
        list[str] | None,
        typer.Option(
            "--rule",
            metavar="RULE",
            help="What is granted; by default the narrowest rule. Repeatable.",
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="The grant ends after 30m, 8h."),
    ] = None,
    updates: Annotated[
        list[int] | None,
        typer.Option(
            "--take",
            metavar="NUMBER",
            min=1,
            help="allow: make this change that the CLI suggests, from `asks`. Repeatable.",
        ),
    ] = None,
    stop: Annotated[bool, typer.Option("--stop", help="deny: also stop the turn.")] = False,
    plan: Annotated[
        PlanChoice | None, typer.Option("--plan", help="The decision about a plan.")
    ] = None,
    answers: Annotated[
        list[str] | None,
        typer.Option(
            "--answer",
            metavar="QUESTION=LABEL",
            help="The answer to a question: a label, or any text. Repeatable.",
        ),
    ] = None,
    *,
    at: HubOptions,
) -> None:
    """Answer an open question. The first answer counts."""
    from quarterdeck.cli.hub.asks import AnswerArguments, run_answer
    from quarterdeck.protocol.commands import Scope

    arguments = AnswerArguments(
        verb=verb.value if verb else None,
        message=message,
        input=input_,
        scope=Scope(scope.value),
        rules=tuple(rules or ()),
        duration=duration,
        updates=tuple(updates or ()),
        stop=stop,
        plan=plan.value if plan else None,
        answers=tuple(answers or ()),
    )
    finish(run_answer, ask, arguments, at.target)


@app.command("log")
@spread
def _log(
    session: Session,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep following it.")] = False,
    *,
    at: HubOptions,
    json_output: Json = False,
) -> None:
    """Show a session's history as `run` shows it, or its events as JSON."""
    from quarterdeck.cli.hub.log import run_log

    finish(run_log, session, at.target, follow=follow, json_output=json_output)


_audit = add_group(
    "audit",
    "Who or what allowed or denied each tool call. Without a command: show the newest entries.",
    callable_itself=True,
)


@_audit.callback()
@spread
def _show_audit(
    context: typer.Context,
    session: OneSession = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="The last so many.")] = 100,
    *,
    at: HubOptions,
    json_output: Json = False,
) -> None:
    """Show who or what allowed or denied each tool call, and why."""
    if context.invoked_subcommand is not None:
        return
    from quarterdeck.cli.hub.log import run_audit

    finish(run_audit, session, at.target, limit=limit, json_output=json_output)


@_audit.command("verify")
@spread
def _verify(
    head: Annotated[
        str | None,
        typer.Option("--head", metavar="POSITION:SEAL", help="The result of an earlier check."),
    ] = None,
    *,
    at: HubOptions,
    json_output: Json = False,
) -> None:
    """Check that the audit log was not changed. The exit code is 1 if it was."""
    from quarterdeck.cli.hub.policy import run_verify

    finish(run_verify, head, at.target, json_output=json_output)
