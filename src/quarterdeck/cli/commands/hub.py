"""The hub's commands: their names, options and help texts. Here: the service itself.

As in `cli.app`, nothing happens here: each command hands plain values to a module of its own, which
is loaded only then. The commands about sessions and questions are in `cmd`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from quarterdeck.cli.commands import asks as ask_commands
from quarterdeck.cli.commands import config as config_commands
from quarterdeck.cli.commands import history as past_commands
from quarterdeck.cli.commands import policy as policy_commands
from quarterdeck.cli.commands import sessions as cmd
from quarterdeck.cli.commands import usage as usage_commands
from quarterdeck.cli.commands import webhook as webhook_commands
from quarterdeck.cli.commands import worktrees as worktree_commands
from quarterdeck.cli.hub.options import Config, Hub, Json, TokenFile


def register(app: typer.Typer, finish: Callable[..., Any]) -> None:
    """Add the hub's commands. `finish` runs a command and ends with its exit code."""
    _register_service(app, finish)
    _register_tokens(app, finish)
    cmd.register(app, finish)
    ask_commands.register(app, finish)
    past_commands.register(app, finish)
    policy_commands.register(app, finish)
    webhook_commands.register(app, finish)
    usage_commands.register(app, finish)
    worktree_commands.register(app, finish)
    config_commands.register(app, finish)


def _register_service(app: typer.Typer, finish: Callable[..., Any]) -> None:
    @app.command("serve")
    def _serve(
        config: Config = None,
        host: Annotated[
            str | None, typer.Option("--host", help="The address to listen on; 127.0.0.1.")
        ] = None,
        port: Annotated[
            int | None,
            typer.Option("--port", "-p", min=0, max=65535, help="8765; 0 takes a free one."),
        ] = None,
        certificate: Annotated[
            Path | None, typer.Option("--certificate", help="A TLS certificate, as a PEM file.")
        ] = None,
        key: Annotated[
            Path | None, typer.Option("--key", help="Its key, if it is in another file.")
        ] = None,
        allow_host: Annotated[
            list[str] | None,
            typer.Option(
                "--allow-host", metavar="NAME", help="A name by which it is reached. Repeatable."
            ),
        ] = None,
        allow_origin: Annotated[
            list[str] | None,
            typer.Option(
                "--allow-origin",
                metavar="URL",
                help="Pages from there may use the API. Repeatable.",
            ),
        ] = None,
        proxy: Annotated[
            list[str] | None,
            typer.Option(
                "--proxy",
                metavar="ADDRESS",
                help="A proxy, or a network of them, whose forwarding headers count. Repeatable.",
            ),
        ] = None,
        no_runner: Annotated[
            bool, typer.Option("--no-runner", help="Run no agents on this machine.")
        ] = False,
    ) -> None:
        """Serve the hub: many agents, from a browser, a terminal and programs.

        Ctrl-C stops the hub; agents go on without it, and the next hub finds them again. Options
        are stronger than the configuration; see `quarterdeck config`.
        """
        from quarterdeck.service.config_file import Configuration
        from quarterdeck.service.service import run_serve

        flags: dict[str, tuple[str, object]] = {
            "host": ("--host", host),
            "port": ("--port", port),
            "certificate": ("--certificate", certificate and str(certificate.absolute())),
            "key": ("--key", key and str(key.absolute())),
            "hosts": ("--allow-host", allow_host),
            "origins": ("--allow-origin", allow_origin),
            "proxies": ("--proxy", proxy),
        }
        overrides = {
            ("server", name): (flag, value)
            for name, (flag, value) in flags.items()
            if value is not None and value != []
        }
        finish(run_serve, Configuration(config, overrides=overrides), runner=not no_runner)

    @app.command("stop")
    def _stop(
        sessions: Annotated[
            list[str] | None, typer.Argument(help="Only end the agents of these sessions.")
        ] = None,
        hub_only: Annotated[
            bool, typer.Option("--hub-only", help="Leave the agents and their runner alone.")
        ] = False,
        hub: Hub = None,
        token_file: TokenFile = None,
    ) -> None:
        """End all agents of this machine, their runner, and the hub; or single agents."""
        from quarterdeck.cli.hub.stop import run_stop
        from quarterdeck.cli.hub.target import Target

        target = Target(hub=hub, token_file=token_file)
        finish(run_stop, sessions or [], target, hub_only=hub_only)

    @app.command("status")
    def _status(hub: Hub = None, token_file: TokenFile = None, json_output: Json = False) -> None:
        """Tell what runs: hub, runner, machines, sessions; and where the data is.

        The exit code is 1 when no hub runs.
        """
        from quarterdeck.cli.hub.status import run_status
        from quarterdeck.cli.hub.target import Target

        finish(run_status, Target(hub=hub, token_file=token_file), json_output=json_output)

    @app.command("runner")
    def _runner(
        hub: Annotated[str, typer.Option("--hub", help="The hub, as https://name:8765.")],
        token_file: Annotated[
            Path, typer.Option("--token-file", help="Holds a token with the role runner.")
        ],
        machine: Annotated[
            str | None, typer.Option("--machine", help="This machine's name; else its host name.")
        ] = None,
        home: Annotated[
            Path | None,
            typer.Option("--home", help="The runner's folder; else in the data folder."),
        ] = None,
        max_runs: Annotated[
            int | None, typer.Option("--max-runs", min=1, help="Agents at a time.")
        ] = None,
        memory_floor: Annotated[
            int | None,
            typer.Option(
                "--memory-floor", min=0, metavar="MIB", help="Start none when less is free."
            ),
        ] = None,
        log_level: Annotated[
            str | None, typer.Option("--log-level", help="debug, info, warning or error.")
        ] = None,
        log_format: Annotated[
            str | None, typer.Option("--log-format", help="text or json.")
        ] = None,
    ) -> None:
        """Run agents on this machine for a hub elsewhere. Ctrl-C ends them and it."""
        from quarterdeck.cli.hub.runner import run_runner

        options = {
            "--max-runs": max_runs,
            "--memory-floor": memory_floor,
            "--log-level": log_level,
            "--log-format": log_format,
        }
        finish(run_runner, hub, token_file, machine, home, options)

    @app.command("demo")
    def _demo(
        port: Annotated[
            int, typer.Option("--port", "-p", min=0, max=65535, help="0 takes a free one.")
        ] = 0,
    ) -> None:
        """Show the deck with a scripted agent: no account, no cost, nothing left behind."""
        from quarterdeck.cli.hub.demo import run_demo

        finish(run_demo, port)


def _register_tokens(app: typer.Typer, finish: Callable[..., Any]) -> None:
    tokens = typer.Typer(
        help="Who may use the hub. Without a command: make a token and print it.",
        invoke_without_command=True,
        rich_markup_mode=None,
    )
    app.add_typer(tokens, name="token")

    @tokens.callback()
    def _token(
        context: typer.Context,
        role: Annotated[
            str, typer.Option("--role", help="owner, operator, viewer, runner or metrics.")
        ] = "owner",
        name: Annotated[
            str | None, typer.Option("--name", help="Whose it is; their deeds carry this name.")
        ] = None,
        login: Annotated[
            bool, typer.Option("--login", help="A link for a browser, once, for ten minutes.")
        ] = False,
        cli: Annotated[
            bool,
            typer.Option(
                "--cli", help="The command line with which a CLI up to 2.1.120 dials the hub."
            ),
        ] = False,
        session: Annotated[
            str | None, typer.Option("--session", help="--cli: for this session, not a new one.")
        ] = None,
        days: Annotated[
            float | None, typer.Option("--days", min=0.001, help="Valid for so long; else always.")
        ] = None,
    ) -> None:
        """Make a token, or a login link, and print it. It is not shown again."""
        if context.invoked_subcommand is None:
            from quarterdeck.cli.hub.tokens import run_token, run_token_cli

            if cli:
                finish(run_token_cli, session)
            finish(run_token, role, name, login=login, days=days)

    @tokens.command("list")
    def _list() -> None:
        """List who has access; no token is shown."""
        from quarterdeck.cli.hub.tokens import run_token_list

        finish(run_token_list)

    @tokens.command("revoke")
    def _revoke(
        grant: Annotated[str, typer.Argument(help="Its id, as `token list` has it.")],
    ) -> None:
        """Take access back, from open connections too."""
        from quarterdeck.cli.hub.tokens import run_token_revoke

        finish(run_token_revoke, grant)
