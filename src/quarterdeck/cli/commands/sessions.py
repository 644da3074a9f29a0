"""Commands about the hub's sessions."""

from __future__ import annotations

from typing import Annotated

import typer

from quarterdeck.cli.commands.base import (
    HubOptions,
    Json,
    ProcessOptions,
    Session,
    app,
    finish,
    given_options,
    spread,
)
from quarterdeck.cli.commands.launch_options import LaunchOptions, NewOptions


@app.command("new")
@spread
def _new(
    directory: Annotated[
        str, typer.Argument(help="The folder to work in; with --project, `-` is the project's.")
    ],
    prompt: Annotated[
        str | None, typer.Argument(help="The first prompt; `-` reads it from stdin.")
    ] = None,
    project: Annotated[
        str | None,
        typer.Option("--project", help="Use this project's defaults for omitted options."),
    ] = None,
    attach: Annotated[
        bool, typer.Option("--attach", "-a", help="Follow it in this terminal.")
    ] = False,
    machine: Annotated[
        str | None, typer.Option("--machine", help="The machine; by default the hub's.")
    ] = None,
    *,
    process: ProcessOptions,
    launch: LaunchOptions,
    more: NewOptions,
    cli_flags: Annotated[
        list[str] | None,
        typer.Option(
            "--cli-flag",
            metavar="NAME[=VALUE]",
            help="A flag of the CLI that has no option here. Repeatable.",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option("--policy", help="A policy or preset, besides the global one."),
    ] = None,
    sandbox: Annotated[
        str | None,
        typer.Option("--sandbox", help="off, protect or strict; by default as configured."),
    ] = None,
    auto_approve: Annotated[
        list[str] | None,
        typer.Option(
            "--auto-approve", metavar="TOOL", help="The hub allows it at once. Repeatable."
        ),
    ] = None,
    ask_timeout: Annotated[
        float | None,
        typer.Option("--ask-timeout", metavar="SECONDS", help="Deny a question after this time."),
    ] = None,
    budget_usd: Annotated[
        float | None,
        typer.Option("--budget-usd", help="US dollars for the session, over all its runs."),
    ] = None,
    budget_tokens: Annotated[
        int | None,
        typer.Option("--budget-tokens", help="Tokens for the session, over all its runs."),
    ] = None,
    restart: Annotated[
        bool | None,
        typer.Option(
            "--restart/--no-restart",
            help="Resume automatically after a crash, or never; by default when a machine fails.",
        ),
    ] = None,
    api_billing: Annotated[
        bool, typer.Option("--api-billing", help="Pass the runner's API key to the CLI.")
    ] = False,
    agents: Annotated[
        bool, typer.Option("--agents", help="It may start other agents, and direct them.")
    ] = False,
    cross_session: Annotated[
        bool,
        typer.Option("--cross-session", help="Other Claude sessions of the user may prompt it."),
    ] = False,
    at: HubOptions,
) -> None:
    """Create a session, start its agent, and print its id; or attach to it."""
    from quarterdeck.cli.hub import spec as values
    from quarterdeck.cli.hub.sessions import Conversation, run_new
    from quarterdeck.protocol.sessions import SessionSpec

    target = at.target
    here = target.is_here and machine is None
    spec = SessionSpec(
        **values.launch_members(given_options(launch, more), here=here),
        directory="" if project and directory == "-" else values.absolute(directory, here=here),
        project=project,
        machine=machine,
        claude=process.claude,
        env=values.variables(process.env or ()),
        extra_args=values.cli_flags(cli_flags or []),
        policy=policy,
        sandbox=values.sandbox_mode(sandbox),
        auto_approve=tuple(auto_approve or ()),
        ask_timeout=ask_timeout,
        budget=values.budget(budget_usd, budget_tokens),
        restart="faults" if restart is None else restart,
        api_billing=api_billing,
        agents=agents,
        cross_session=cross_session,
    )
    conversation = Conversation(id=more.cli_session, latest=more.cli_latest, fork=more.cli_fork)
    finish(run_new, spec, prompt, conversation, target, attach=attach)


@app.command("ps")
@spread
def _ps(
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="Also archived sessions.")
    ] = False,
    project: Annotated[
        str | None, typer.Option("--project", help="Only sessions of this project.")
    ] = None,
    *,
    at: HubOptions,
    json_output: Json = False,
) -> None:
    """List sessions, newest first: id, state, cost, time since the last event, name, folder."""
    from quarterdeck.cli.hub.sessions import run_ps

    finish(run_ps, at.target, everything=everything, project=project, json_output=json_output)


@app.command("send")
@spread
def _send(
    session: Session,
    prompt: Annotated[str, typer.Argument(help="The prompt; `-` reads it from stdin.")],
    *,
    steer: Annotated[
        bool,
        typer.Option("--steer", help="Send it into the running turn, and do not wait for its end."),
    ] = False,
    at: HubOptions,
) -> None:
    """Send a prompt. It is queued while a turn runs; an agent that has ended is resumed."""
    from quarterdeck.cli.hub.sessions import run_send

    finish(run_send, session, prompt, at.target, steer=steer)


@app.command("attach")
@spread
def _attach(
    session: Session,
    notify: Annotated[
        bool,
        typer.Option("--notify", help="Always notify on the desktop, not only when you are away."),
    ] = False,
    no_notify: Annotated[
        bool, typer.Option("--no-notify", help="Never notify on the desktop.")
    ] = False,
    *,
    at: HubOptions,
) -> None:
    """Follow a session in the terminal: read its text, answer its questions, send prompts.

    Ctrl-C interrupts the turn; a second Ctrl-C, or Ctrl-D, leaves. The agent keeps running.
    """
    from quarterdeck.cli.hub.attach import run_attach

    finish(run_attach, session, at.target, notify=None if no_notify else notify)


@app.command("top")
@spread
def _top(*, at: HubOptions) -> None:
    """Show sessions, open questions and one session on the whole screen, and answer them.

    Ctrl-Q leaves. The agents keep running.
    """
    from quarterdeck.cli.hub.top import run_top

    finish(run_top, at.target)


@app.command("interrupt")
@spread
def _interrupt(session: Session, *, at: HubOptions) -> None:
    """Stop the running turn. Queued prompts stay queued."""
    from quarterdeck.cli.hub.sessions import run_interrupt

    finish(run_interrupt, session, at.target)


@app.command("resume")
@spread
def _resume(
    session: Session,
    machine: Annotated[
        str | None,
        typer.Option("--machine", metavar="NAME", help="On this machine, which may be another."),
    ] = None,
    directory: Annotated[
        str | None,
        typer.Option("--directory", metavar="PATH", help="With --machine: the folder there."),
    ] = None,
    *,
    at: HubOptions,
) -> None:
    """Start a session's agent again, where the last one ended."""
    from quarterdeck.cli.hub.sessions import run_resume

    finish(run_resume, session, machine, directory, at.target)


@app.command("fork")
@spread
def _fork(
    session: Session,
    message: Annotated[
        str | None, typer.Option("--at", metavar="UUID", help="Up to this message of the CLI.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="A name for people.")] = None,
    worktree: Annotated[
        str | None,
        typer.Option(
            "--worktree",
            metavar="BRANCH",
            help="Work in a git worktree of its own, with the files as they are now.",
        ),
    ] = None,
    *,
    at: HubOptions,
) -> None:
    """Create a session that begins as a copy of another, and print its id."""
    from quarterdeck.cli.hub.sessions import run_fork

    finish(run_fork, session, message, name, worktree, at.target)


@app.command("rename")
@spread
def _rename(
    session: Session,
    name: Annotated[str, typer.Argument(help="The new name.")],
    *,
    at: HubOptions,
) -> None:
    """Rename a session."""
    from quarterdeck.cli.hub.sessions import run_rename

    finish(run_rename, session, name, at.target)


@app.command("archive")
@spread
def _archive(
    session: Session,
    undo: Annotated[bool, typer.Option("--undo", help="Take it out of the archive.")] = False,
    *,
    at: HubOptions,
) -> None:
    """Archive a session: `ps` shows it only with --all."""
    from quarterdeck.cli.hub.sessions import run_archive

    finish(run_archive, session, at.target, archived=not undo)


@app.command("rm")
@spread
def _rm(
    sessions: Annotated[list[str], typer.Argument(metavar="SESSION…", help="Their ids.")],
    stop: Annotated[bool, typer.Option("--stop", help="Stop their agents first.")] = False,
    *,
    at: HubOptions,
) -> None:
    """Delete sessions with their whole history. Their agents must have ended."""
    from quarterdeck.cli.hub.sessions import run_rm

    finish(run_rm, sessions, at.target, stop=stop)
