"""Commands of the service: `serve`, `stop`, `status`, `runner`, `demo`, `token`, `webhook`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.cli.commands.base import (
    Config,
    HubOptions,
    Json,
    ServeOptions,
    add_group,
    app,
    finish,
    spread,
)


@app.command("serve")
@spread
def _serve(
    config: Config = None,
    host: Annotated[
        str | None, typer.Option("--host", help="The address to listen on (127.0.0.1).")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", "-p", min=0, max=65535, help="The port (8765); 0 picks a free one."),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="A TLS certificate, as a PEM file.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="Its private key, if it is in another file.")
    ] = None,
    tls: Annotated[
        str | None,
        typer.Option(
            "--tls", metavar="auto", help="auto: make certificates, and say how to trust them."
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", metavar="NAME", help="A host name that reaches the hub. Repeatable."
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin",
            metavar="URL",
            help="Let pages from this origin use the API. Repeatable.",
        ),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy",
            metavar="ADDRESS",
            help="Trust the forwarding headers of this proxy or network. Repeatable.",
        ),
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Allow plain HTTP on an address that others can reach."),
    ] = False,
    *,
    serving: ServeOptions,
) -> None:
    """Serve the hub: many agents, used from a browser, a terminal and programs.

    Ctrl-C stops the hub. Agents keep running, and the next hub reconnects to them. Options override
    the configuration; see `quarterdeck config`.
    """
    from quarterdeck.service.config_file import Configuration
    from quarterdeck.service.service import run_serve

    flags: dict[str, tuple[str, object]] = {
        "host": ("--host", host),
        "port": ("--port", port),
        "certificate": ("--certificate", certificate and str(certificate.absolute())),
        "key": ("--key", key and str(key.absolute())),
        "tls": ("--tls", tls),
        "hosts": ("--allow-host", allow_host),
        "origins": ("--allow-origin", allow_origin),
        "proxies": ("--proxy", proxy),
        "insecure": ("--insecure", insecure or None),
    }
    overrides = {
        ("server", name): (flag, value)
        for name, (flag, value) in flags.items()
        if value is not None and value != []
    }
    finish(run_serve, Configuration(config, overrides=overrides), **serving.arguments)


@app.command("stop")
@spread
def _stop(
    sessions: Annotated[
        list[str] | None, typer.Argument(help="Stop only the agents of these sessions.")
    ] = None,
    hub_only: Annotated[
        bool, typer.Option("--hub-only", help="Keep the agents and their runner running.")
    ] = False,
    *,
    at: HubOptions,
) -> None:
    """Stop all agents of this machine, their runner and the hub; or only some agents."""
    from quarterdeck.cli.hub.processes import run_stop

    finish(run_stop, sessions or [], at.target, hub_only=hub_only)


@app.command("status")
@spread
def _status(at: HubOptions, json_output: Json = False) -> None:
    """Show what runs (hub, runner, machines, sessions), and the data folder.

    The exit code is 1 if no hub runs.
    """
    from quarterdeck.cli.hub.processes import run_status

    finish(run_status, at.target, json_output=json_output)


@app.command("runner")
def _runner(
    hub: Annotated[
        list[str],
        typer.Option(
            "--hub", help="The hub's address, as https://name:8765. Again for each other hub."
        ),
    ],
    token_file: Annotated[
        Path, typer.Option("--token-file", help="The file with a token of the role runner.")
    ],
    machine: Annotated[
        str | None,
        typer.Option("--machine", help="This machine's name; by default its host name."),
    ] = None,
    home: Annotated[
        Path | None,
        typer.Option("--home", help="The runner's folder; by default in the data folder."),
    ] = None,
    max_runs: Annotated[
        int | None, typer.Option("--max-runs", min=1, help="The most agents at a time.")
    ] = None,
    memory_floor: Annotated[
        int | None,
        typer.Option(
            "--memory-floor", min=0, metavar="MIB", help="Start no agent with less memory free."
        ),
    ] = None,
    log_level: Annotated[
        str | None, typer.Option("--log-level", help="debug, info, warning or error.")
    ] = None,
    log_format: Annotated[str | None, typer.Option("--log-format", help="text or json.")] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Allow plain HTTP to a hub on another machine.")
    ] = False,
    ca_file: Annotated[
        Path | None,
        typer.Option("--ca-file", help="Trust only this certificate authority, a PEM file."),
    ] = None,
) -> None:
    """Run agents on this machine for a hub elsewhere. Ctrl-C stops the runner and its agents."""
    from quarterdeck.cli.hub.processes import run_runner

    options = {
        "--max-runs": max_runs,
        "--memory-floor": memory_floor,
        "--log-level": log_level,
        "--log-format": log_format,
        "--ca-file": ca_file and ca_file.absolute(),
    }
    finish(run_runner, hub, token_file, machine, home, options, insecure=insecure)


@app.command("demo")
def _demo(
    port: Annotated[
        int, typer.Option("--port", "-p", min=0, max=65535, help="0 picks a free one.")
    ] = 0,
) -> None:
    """Try the hub with six scripted agents: no account, no cost, nothing left behind."""
    from quarterdeck.cli.hub.demo import run_demo

    finish(run_demo, port)


_tokens = add_group(
    "token",
    "Access to the hub. Without a command: create a token and print it.",
    callable_itself=True,
)


@_tokens.callback()
def _token(
    context: typer.Context,
    role: Annotated[
        str, typer.Option("--role", help="owner, operator, viewer, runner or metrics.")
    ] = "owner",
    name: Annotated[
        str | None, typer.Option("--name", help="The holder's name, as the audit log shows it.")
    ] = None,
    login: Annotated[
        bool,
        typer.Option("--login", help="A login link for a browser: works once, for ten minutes."),
    ] = False,
    cli: Annotated[
        bool,
        typer.Option(
            "--cli", help="The command line with which a CLI up to 2.1.120 connects to the hub."
        ),
    ] = False,
    session: Annotated[
        str | None, typer.Option("--session", help="With --cli: dial as this session.")
    ] = None,
    days: Annotated[
        float | None, typer.Option("--days", min=0.001, help="Expires after so many days.")
    ] = None,
) -> None:
    """Create a token or a login link, and print it. It is not shown again."""
    if context.invoked_subcommand is None:
        from quarterdeck.cli.hub.tokens import run_token, run_token_cli

        if cli:
            finish(run_token_cli, session)
        finish(run_token, role, name, login=login, days=days)


@_tokens.command("list")
def _token_list() -> None:
    """List who has access. No token is shown."""
    from quarterdeck.cli.hub.tokens import run_token_list

    finish(run_token_list)


@_tokens.command("revoke")
def _token_revoke(
    grant: Annotated[
        str, typer.Argument(help="Its id, from `token list`; `cli` for all CLIs that dial the hub.")
    ],
) -> None:
    """Revoke access, for open connections too."""
    from quarterdeck.cli.hub.tokens import run_token_revoke

    finish(run_token_revoke, grant)


_webhooks = add_group("webhook", "Webhooks: test one, or create a secret.")


@_webhooks.command("test")
def _webhook_test(
    name: Annotated[str, typer.Argument(help="A webhook of the configuration, or a URL.")],
    event: Annotated[
        str, typer.Option("--event", help="The kind of event to send a sample of.")
    ] = "ask.opened",
    secret_file: Annotated[
        Path | None,
        typer.Option("--secret-file", help="Sign with this secret; by default the configured one."),
    ] = None,
    config: Config = None,
) -> None:
    """Send one sample, and print the result. The exit code is 1 if it was refused."""
    from quarterdeck.cli.hub.webhook import run_webhook_test

    finish(run_webhook_test, name, event, secret_file, config)


@_webhooks.command("secret")
def _webhook_secret() -> None:
    """Create a secret and print it, for the secret file and for the receiver."""
    from quarterdeck.cli.hub.webhook import run_webhook_secret

    finish(run_webhook_secret)
