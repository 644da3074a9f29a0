"""The hub's commands about sessions: their names, options and help texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from quarterdeck.cli.hub.options import Hub, Json, Session, TokenFile
from quarterdeck.cli.options import (
    Allow,
    AppendSystemPrompt,
    Claude,
    Deny,
    Effort,
    Env,
    MaxBudget,
    MaxTurns,
    McpConfig,
    Mode,
    Model,
    Settings,
    SkipPermissions,
    SystemPrompt,
)


def register(app: typer.Typer, finish: Callable[..., Any]) -> None:
    """Add the commands."""
    _register_new(app, finish)
    _register_use(app, finish)
    _register_small(app, finish)


def _register_new(app: typer.Typer, finish: Callable[..., Any]) -> None:
    @app.command("new")
    def _new(
        directory: Annotated[
            str, typer.Argument(help="The folder to work in; with --project `-` is the project's.")
        ],
        prompt: Annotated[
            str | None, typer.Argument(help="What to do first; `-` reads it from stdin.")
        ] = None,
        project: Annotated[
            str | None,
            typer.Option("--project", help="What is left out here is as this project has it."),
        ] = None,
        attach: Annotated[bool, typer.Option("--attach", "-a", help="And follow it here.")] = False,
        name: Annotated[str | None, typer.Option("--name", help="A name for people.")] = None,
        machine: Annotated[
            str | None, typer.Option("--machine", help="Where; else where the hub is.")
        ] = None,
        worktree: Annotated[
            str | None,
            typer.Option("--worktree", metavar="BRANCH", help="In a git worktree of its own."),
        ] = None,
        claude: Claude = None,
        cli_session: Annotated[
            str | None,
            typer.Option("--resume", metavar="ID", help="Go on with this session of the CLI."),
        ] = None,
        model: Model = None,
        mode: Mode = None,
        effort: Effort = None,
        system_prompt: SystemPrompt = None,
        append_system_prompt: AppendSystemPrompt = None,
        tools: Annotated[
            list[str] | None,
            typer.Option("--tool", metavar="NAME", help="Only these tools. Repeatable."),
        ] = None,
        allow: Allow = None,
        deny: Deny = None,
        policy: Annotated[
            str | None,
            typer.Option("--policy", help="A policy or preset, on top of the one for all."),
        ] = None,
        auto_approve: Annotated[
            list[str] | None,
            typer.Option(
                "--auto-approve", metavar="TOOL", help="The hub allows it at once. Repeatable."
            ),
        ] = None,
        ask_timeout: Annotated[
            float | None,
            typer.Option("--ask-timeout", metavar="SECONDS", help="Then a question is denied."),
        ] = None,
        add_dir: Annotated[
            list[str] | None,
            typer.Option("--add-dir", metavar="FOLDER", help="One more folder. Repeatable."),
        ] = None,
        mcp_config: McpConfig = None,
        settings: Settings = None,
        max_turns: MaxTurns = None,
        max_budget_usd: MaxBudget = None,
        budget_usd: Annotated[
            float | None,
            typer.Option("--budget-usd", help="US dollars for the session, over all its runs."),
        ] = None,
        budget_tokens: Annotated[
            int | None,
            typer.Option("--budget-tokens", help="Tokens for the session, over all its runs."),
        ] = None,
        restart: Annotated[
            bool, typer.Option("--restart", help="Resume by itself after a crash.")
        ] = False,
        env: Env = None,
        api_billing: Annotated[
            bool, typer.Option("--api-billing", help="Pass the API key of the runner on.")
        ] = False,
        skip_permissions: SkipPermissions = False,
        hub: Hub = None,
        token_file: TokenFile = None,
    ) -> None:
        """Make a session, start its agent, and print its id; or attach to it."""
        from quarterdeck.cli.hub import spec as made
        from quarterdeck.cli.hub.sessions import run_new
        from quarterdeck.cli.hub.target import Target
        from quarterdeck.protocol.sessions import SessionSpec

        target = Target(hub=hub, token_file=token_file)
        here = target.is_here and machine is None
        spec = SessionSpec(
            directory="" if project and directory == "-" else made.absolute(directory, here=here),
            project=project,
            name=name,
            machine=machine,
            worktree=worktree,
            policy=policy,
            claude=claude,
            model=model,
            mode=mode,
            effort=effort,
            system_prompt=system_prompt,
            append_system_prompt=append_system_prompt,
            tools=tuple(tools) if tools else None,
            allowed_tools=tuple(allow or ()),
            disallowed_tools=tuple(deny or ()),
            auto_approve=tuple(auto_approve or ()),
            ask_timeout=ask_timeout,
            add_dirs=tuple(made.absolute(each, here=here) for each in add_dir or ()),
            mcp_servers=made.mcp_servers(mcp_config or []),
            settings=made.settings(settings, here=here),
            max_turns=max_turns,
            max_budget_usd=max_budget_usd,
            budget=made.budget(budget_usd, budget_tokens),
            restart=restart,
            env=made.variables(env or []),
            api_billing=api_billing,
            skip_permissions=skip_permissions,
        )
        finish(run_new, spec, prompt, cli_session, target, attach=attach)


def _register_use(app: typer.Typer, finish: Callable[..., Any]) -> None:
    @app.command("ps")
    def _ps(
        everything: Annotated[
            bool, typer.Option("--all", "-a", help="Those that were put away, too.")
        ] = False,
        project: Annotated[
            str | None, typer.Option("--project", help="Only those of this project.")
        ] = None,
        hub: Hub = None,
        token_file: TokenFile = None,
        json_output: Json = False,
    ) -> None:
        """List sessions, newest first: id, state, cost, time since the last event, name, folder."""
        from quarterdeck.cli.hub.sessions import run_ps
        from quarterdeck.cli.hub.target import Target

        target = Target(hub=hub, token_file=token_file)
        finish(run_ps, target, everything=everything, project=project, json_output=json_output)

    @app.command("send")
    def _send(
        session: Session,
        prompt: Annotated[str, typer.Argument(help="What to do; `-` reads it from stdin.")],
        hub: Hub = None,
        token_file: TokenFile = None,
    ) -> None:
        """Send a prompt; it is queued while a turn runs. An agent that has ended is resumed."""
        from quarterdeck.cli.hub.sessions import run_send
        from quarterdeck.cli.hub.target import Target

        finish(run_send, session, prompt, Target(hub=hub, token_file=token_file))

    @app.command("attach")
    def _attach(
        session: Session,
        notify: Annotated[
            bool,
            typer.Option("--notify", help="Tell you on the desktop always, not only when away."),
        ] = False,
        no_notify: Annotated[
            bool, typer.Option("--no-notify", help="Never tell you on the desktop.")
        ] = False,
        hub: Hub = None,
        token_file: TokenFile = None,
    ) -> None:
        """Follow a session in the terminal: its text as it comes, its questions, your prompts.

        Ctrl-C interrupts the turn; a second one, or Ctrl-D, leaves. The agent goes on.
        """
        from quarterdeck.cli.hub.attach import run_attach
        from quarterdeck.cli.hub.target import Target

        target = Target(hub=hub, token_file=token_file)
        finish(run_attach, session, target, notify=None if no_notify else notify)


def _register_small(app: typer.Typer, finish: Callable[..., Any]) -> None:
    @app.command("interrupt")
    def _interrupt(session: Session, hub: Hub = None, token_file: TokenFile = None) -> None:
        """Stop the running turn. Queued prompts stay queued."""
        from quarterdeck.cli.hub.sessions import run_interrupt
        from quarterdeck.cli.hub.target import Target

        finish(run_interrupt, session, Target(hub=hub, token_file=token_file))

    @app.command("resume")
    def _resume(session: Session, hub: Hub = None, token_file: TokenFile = None) -> None:
        """Start the agent of a session again, where the last one ended."""
        from quarterdeck.cli.hub.sessions import run_resume
        from quarterdeck.cli.hub.target import Target

        finish(run_resume, session, Target(hub=hub, token_file=token_file))

    @app.command("fork")
    def _fork(
        session: Session,
        at: Annotated[
            str | None, typer.Option("--at", metavar="UUID", help="Up to this message of the CLI.")
        ] = None,
        name: Annotated[str | None, typer.Option("--name", help="A name for people.")] = None,
        hub: Hub = None,
        token_file: TokenFile = None,
    ) -> None:
        """Make a session that begins with a copy of another, and print its id."""
        from quarterdeck.cli.hub.sessions import run_fork
        from quarterdeck.cli.hub.target import Target

        finish(run_fork, session, at, name, Target(hub=hub, token_file=token_file))

    @app.command("rename")
    def _rename(
        session: Session,
        name: Annotated[str, typer.Argument(help="The new name.")],
        hub: Hub = None,
        token_file: TokenFile = None,
    ) -> None:
        """Give a session another name."""
        from quarterdeck.cli.hub.sessions import run_rename
        from quarterdeck.cli.hub.target import Target

        finish(run_rename, session, name, Target(hub=hub, token_file=token_file))

    @app.command("archive")
    def _archive(
        session: Session,
        undo: Annotated[bool, typer.Option("--undo", help="Take it out again.")] = False,
        hub: Hub = None,
        token_file: TokenFile = None,
    ) -> None:
        """Put a session away: `ps` shows it only with --all."""
        from quarterdeck.cli.hub.sessions import run_archive
        from quarterdeck.cli.hub.target import Target

        finish(run_archive, session, Target(hub=hub, token_file=token_file), archived=not undo)

    @app.command("rm")
    def _rm(
        sessions: Annotated[list[str], typer.Argument(metavar="SESSION…", help="Their ids.")],
        stop: Annotated[bool, typer.Option("--stop", help="End their agents first.")] = False,
        hub: Hub = None,
        token_file: TokenFile = None,
    ) -> None:
        """Forget sessions and all that was said in them. Their agents must have ended."""
        from quarterdeck.cli.hub.sessions import run_rm
        from quarterdeck.cli.hub.target import Target

        finish(run_rm, sessions, Target(hub=hub, token_file=token_file), stop=stop)
