"""The app that commands are declared on, how a command ends, and the options that commands share.

Every module of this package declares commands: names, options and help texts. The work is done by
modules of `local` and `hub`, each of which is loaded only when its command runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn, ParamSpec, get_type_hints

import typer

from quarterdeck.cli.commands.groups import GroupedHelp
from quarterdeck.runtime.agent_process import FREE, refuse_agents

if TYPE_CHECKING:
    from quarterdeck.cli.hub.target import Target

P = ParamSpec("P")

app = typer.Typer(
    name="quarterdeck",
    cls=GroupedHelp,
    help="Drive Claude Code from the terminal, from scripts and from Python.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

command_name: ContextVar[str] = ContextVar("command_name", default="")
"""The name of the running command, or of its group."""


def add_group(name: str, description: str, *, callable_itself: bool = False) -> typer.Typer:
    """Add a group of commands. `callable_itself`: it also works without a subcommand."""
    group = typer.Typer(
        help=description,
        no_args_is_help=not callable_itself,
        invoke_without_command=callable_itself,
        rich_markup_mode=None,
    )
    app.add_typer(group, name=name)
    return group


def finish(command: Callable[P, int], *arguments: P.args, **named: P.kwargs) -> NoReturn:
    """Run a command, and exit with its code. Agents may run only a few commands."""
    name = command_name.get()
    if name not in FREE:
        refuse_agents(f"quarterdeck {name}")
    try:
        code = command(*arguments, **named)
    except KeyboardInterrupt:
        code = 130  # Typer would make it 1
    raise typer.Exit(code)


def spread(function: Callable[..., None]) -> Callable[..., None]:
    """Let a command take groups of options: each field of a group becomes an option.

    A group is a `NamedTuple` whose fields are declared like parameters of a command.
    """
    hints = get_type_hints(function, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if hasattr(kind, "_fields")}
    parameters: list[Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        if (group := groups.get(parameter.name)) is None:
            annotation = hints[parameter.name]
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=annotation))
            continue
        options = get_type_hints(group, include_extras=True)
        parameters += [
            Parameter(
                field,
                Parameter.KEYWORD_ONLY,
                default=group._field_defaults[field],
                annotation=options[field],
            )
            for field in group._fields
        ]

    def call(**values: Any) -> None:
        made = {
            name: group(**{field: values.pop(field) for field in group._fields})
            for name, group in groups.items()
        }
        function(**values, **made)

    call.__doc__ = function.__doc__
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    call.__dict__["__signature__"] = Signature(parameters)
    return call


class HubOptions(NamedTuple):
    """Which hub a command talks to."""

    hub: Annotated[
        str | None,
        typer.Option(
            "--hub", metavar="URL", help="The hub's address; by default this machine's hub."
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="The file with the token for --hub."),
    ] = None
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Allow plain HTTP to a hub on another machine.")
    ] = False

    ca_file: Annotated[
        Path | None,
        typer.Option(
            "--ca-file",
            metavar="FILE",
            help="Trust only this certificate authority for --hub, a PEM file.",
        ),
    ] = None

    @property
    def target(self) -> Target:
        """The hub, as the commands take it."""
        from quarterdeck.cli.hub.target import Target

        return Target(
            hub=self.hub,
            token_file=self.token_file,
            insecure=self.insecure,
            ca_file=self.ca_file,
        )


Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]
Session = Annotated[
    str,
    typer.Argument(metavar="SESSION", help="The session's id, a unique prefix of it, or its name."),
]
OneSession = Annotated[
    str | None, typer.Option("--session", "-s", metavar="SESSION", help="Only this session.")
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The configuration file; by default quarterdeck.toml in the data folder.",
    ),
]


class ServeOptions(NamedTuple):
    """What `serve` and `relay` have in common."""

    no_login_link: Annotated[
        bool, typer.Option("--no-login-link", help="Print no login link: the output is kept.")
    ] = False
    no_runner: Annotated[
        bool, typer.Option("--no-runner", help="Run no agents on this machine.")
    ] = False

    @property
    def arguments(self) -> dict[str, bool]:
        """As `run_serve` takes them."""
        return {"runner": not self.no_runner, "with_link": not self.no_login_link}


class ProcessOptions(NamedTuple):
    """The program that is an agent, and its environment."""

    claude: Annotated[
        str | None, typer.Option("--claude", metavar="PATH", help="The Claude Code to start.")
    ] = None
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env", metavar="NAME=VALUE", help="An environment variable for the CLI. Repeatable."
        ),
    ] = None


def given_options(*groups: NamedTuple) -> dict[str, Any]:
    """The options of these groups that were given, as they were written."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for group in groups
        for name, value in group._asdict().items()
        if value is not None and value != []
    }
