"""The commands of the Telegram bot: `telegram`, `telegram pair`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.cli.commands.base import Config, add_group, finish

_telegram = add_group(
    "telegram",
    "The Telegram bot. Without a command: run it here, for a hub elsewhere.",
    callable_itself=True,
)

Hub = Annotated[
    str | None,
    typer.Option("--hub", metavar="URL", help="The hub's address, as https://name:8765."),
]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", help="The file with a token of that hub."),
]
CaFile = Annotated[
    Path | None,
    typer.Option("--ca-file", metavar="FILE", help="The certificate authority of that hub."),
]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Allow plain HTTP to a hub on another machine.")
]


@_telegram.callback()
def _run(
    context: typer.Context,
    hub: Hub = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    insecure: Insecure = False,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state", metavar="FILE", help="The file of its state; by default in the data folder."
        ),
    ] = None,
    config: Config = None,
) -> None:
    """Run the bot of the section [telegram] here, for a hub elsewhere. Ctrl-C stops it.

    A hub that has the section itself runs its bot itself. A token of the role viewer is enough.
    """
    if context.invoked_subcommand is None:
        from quarterdeck.cli.hub.target import Target
        from quarterdeck.cli.hub.telegram import run_telegram

        target = Target(hub=hub, token_file=token_file, ca_file=ca_file, insecure=insecure)
        finish(run_telegram, target, state, config)


@_telegram.command("pair")
def _pair(
    name: Annotated[
        str | None,
        typer.Option("--name", help="The person, as the audit log shows them; by default you."),
    ] = None,
    role: Annotated[
        str, typer.Option("--role", help="Their role: owner, operator or viewer.")
    ] = "owner",
    hub: Hub = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    insecure: Insecure = False,
) -> None:
    """Make a code that pairs a Telegram user with a person: send the bot /pair CODE.

    It works once, for ten minutes. With --hub it pairs with the person of the token.
    """
    from quarterdeck.cli.hub.target import Target
    from quarterdeck.cli.hub.telegram import run_pair

    target = Target(hub=hub, token_file=token_file, ca_file=ca_file, insecure=insecure)
    finish(run_pair, name, role, target)
