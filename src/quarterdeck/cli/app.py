"""The command line: which commands there are, and what each takes.

Owns names, options and help texts, and nothing that happens then: each command hands plain values
to a module of its own, which is loaded only then. What the options mean is the business of
`agent.options`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from copy import copy
from pathlib import Path
from typing import Annotated, NoReturn, ParamSpec

import typer
from typer.main import get_command

from quarterdeck import __version__
from quarterdeck.cli.commands.hub import register
from quarterdeck.cli.commands.plain_values import take_plain_values
from quarterdeck.cli.hub.options import Config
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
from quarterdeck.runtime.agent_process import FREE, refuse_agents

P = ParamSpec("P")

_command: ContextVar[str] = ContextVar("command", default="")
"""The name of the command that runs, or of its group."""

app = typer.Typer(
    name="quarterdeck",
    help="Drive Claude Code: from the terminal, from scripts, from Python.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_sessions = typer.Typer(
    help="The sessions that Claude Code keeps on disk.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(_sessions, name="sessions")


def run_app(arguments: Sequence[str]) -> int:
    """Run a command line; gives the exit code. Errors of the library are left to the caller."""
    command = get_command(_part_for(arguments))
    take_plain_values(command)
    try:
        command(list(arguments), prog_name="quarterdeck")
    except SystemExit as end:
        # Typer ends this way, always: after a command, after --help, and after a usage error (2).
        return end.code if isinstance(end.code, int) else 0
    return 0


def _part_for(arguments: Sequence[str]) -> typer.Typer:
    """The app with the command that is called and no other: to make them all takes its time."""
    name = arguments[0] if arguments else None
    commands = [command for command in app.registered_commands if command.name == name]
    groups = [group for group in app.registered_groups if group.name == name]
    if not commands and not groups:
        return app  # for its help, or to say what was meant
    part = copy(app)
    part.registered_commands, part.registered_groups = commands, groups
    return part


def _finish(command: Callable[P, int], *arguments: P.args, **named: P.kwargs) -> NoReturn:
    """Run a command, and end with its exit code. Agents may run only a few."""
    name = _command.get()
    if name not in FREE:
        refuse_agents(f"quarterdeck {name}")
    try:
        code = command(*arguments, **named)
    except KeyboardInterrupt:
        code = 130  # Typer would make it 1
    raise typer.Exit(code)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"quarterdeck {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    context: typer.Context,
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Drive Claude Code: from the terminal, from scripts, from Python."""
    _command.set(context.invoked_subcommand or "")


@app.command("run")
def _run(
    prompt: Annotated[
        str | None,
        typer.Argument(
            help="What to do; `-` reads it from stdin. Without it: a conversation, at a terminal."
        ),
    ] = None,
    model: Model = None,
    effort: Effort = None,
    max_turns: MaxTurns = None,
    max_budget_usd: MaxBudget = None,
    system_prompt: SystemPrompt = None,
    append_system_prompt: AppendSystemPrompt = None,
    output_schema: Annotated[
        Path | None,
        typer.Option("--output-schema", help="A JSON schema for the final answer."),
    ] = None,
    image: Annotated[
        list[Path] | None,
        typer.Option(
            "--image", metavar="FILE", help="Show this image with the prompt. Repeatable."
        ),
    ] = None,
    permission_mode: Mode = None,
    allowed_tools: Allow = None,
    disallowed_tools: Deny = None,
    add_dir: Annotated[
        list[Path] | None,
        typer.Option("--add-dir", metavar="FOLDER", help="One more folder to work in. Repeatable."),
    ] = None,
    dangerously_skip_permissions: SkipPermissions = False,
    resume: Annotated[str | None, typer.Option("--resume", help="Go on with this session.")] = None,
    continue_: Annotated[
        bool, typer.Option("--continue", help="Go on with the newest one of the folder.")
    ] = False,
    fork: Annotated[bool, typer.Option("--fork", help="… in a copy, under a new id.")] = False,
    session_id: Annotated[
        str | None, typer.Option("--session-id", help="The new session's id, a UUID.")
    ] = None,
    mcp_config: McpConfig = None,
    settings: Settings = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="Which agent leads the session.")
    ] = None,
    cwd: Annotated[Path | None, typer.Option("--cwd", help="The folder to work in.")] = None,
    claude: Claude = None,
    api_billing: Annotated[
        bool,
        typer.Option("--api-billing", help="Pass the API key of this environment on."),
    ] = False,
    env: Env = None,
    no_partial: Annotated[
        bool, typer.Option("--no-partial", help="Whole blocks of text only.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Only the final text on stdout.")
    ] = False,
    json_lines: Annotated[
        bool,
        typer.Option("--json", help="What the CLI says, as it is, on stdout (NDJSON)."),
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option("--record", help="Write down both directions to this file."),
    ] = None,
) -> None:
    """Run a prompt, or talk: text as it comes, tools, diffs, questions.

    Exit code: 0 the turn went well, 1 it failed, 2 the command line is wrong, 3 the CLI could not
    be found or started or died, 130 interrupted. Ctrl-C interrupts the turn; a second one ends it.
    """
    from quarterdeck.agent.options import Options
    from quarterdeck.cli.local.request import RunRequest
    from quarterdeck.cli.local.run import run

    _finish(
        run,
        RunRequest(
            prompt=prompt,
            images=tuple(image or ()),
            output_schema=output_schema,
            env=tuple(env or ()),
            quiet=quiet,
            json=json_lines,
            record=record,
            options=Options(
                model=model,
                effort=effort,
                max_turns=max_turns,
                max_budget_usd=max_budget_usd,
                system_prompt=system_prompt,
                append_system_prompt=append_system_prompt,
                permission_mode=permission_mode,
                allowed_tools=tuple(allowed_tools or ()),
                disallowed_tools=tuple(disallowed_tools or ()),
                add_dirs=tuple(add_dir or ()),
                dangerously_skip_permissions=dangerously_skip_permissions,
                resume=resume,
                continue_=continue_,
                fork_session=fork,
                session_id=session_id,
                mcp_config=tuple(mcp_config or ()),
                settings=settings,
                agent=agent,
                cwd=cwd,
                claude=claude,
                api_billing=api_billing,
                include_partial_messages=not no_partial,
            ),
        ),
    )


@app.command(
    "record",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    epilog="Everything after FILE is taken as it is by `quarterdeck run`.",
)
def _record(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="The recording to make.")],
) -> None:
    """Like `run`, and write both directions down: record FILE [PROMPT] [options of run]."""
    _finish(run_app, ["run", "--record", str(file), *context.args])


@app.command("replay")
def _replay(
    file: Annotated[Path, typer.Argument(help="A recording.")],
    speed: Annotated[
        float,
        typer.Option("--speed", min=0.0, help="1 is as it was, 2 twice as fast, 0 all at once."),
    ] = 0.0,
    longest_pause: Annotated[
        float, typer.Option("--longest-pause", min=0.0, help="Seconds; longer ones are cut short.")
    ] = 5.0,
    json_lines: Annotated[
        bool, typer.Option("--json", help="What the CLI said, as it was, on stdout.")
    ] = False,
) -> None:
    """Show a recording as `run` would have shown it, without any CLI."""
    from quarterdeck.cli.local.replay import replay

    _finish(replay, file, speed=speed, longest_pause=longest_pause, json_lines=json_lines)


@app.command("doctor")
def _doctor(
    claude: Annotated[
        str | None, typer.Option("--claude", help="The CLI to look at, by its path.")
    ] = None,
    api_billing: Annotated[
        bool, typer.Option("--api-billing", help="Look as if the API key were passed on.")
    ] = False,
    probe: Annotated[
        bool,
        typer.Option(
            "--probe", help="Also run it, offline, and tell what it says that we do not know."
        ),
    ] = False,
    config: Config = None,
    json_output: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Find out what is in the way of Claude Code and of the hub, and what to do about it."""
    from quarterdeck.cli.local.doctor import doctor

    _finish(
        doctor,
        claude=claude,
        api_billing=api_billing,
        probe=probe,
        json_output=json_output,
        config=config,
    )


_SessionId = Annotated[str, typer.Argument(help="The id of the session.")]
_Folder = Annotated[
    Path | None,
    typer.Option("--cwd", help="The project's folder; without it all projects are searched."),
]


@_sessions.command("list")
def _sessions_list(
    cwd: _Folder = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")] = 20,
    json_output: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """List sessions, the newest first."""
    from quarterdeck.cli.local.sessions import list_all

    _finish(list_all, cwd, limit=limit, json_output=json_output)


@_sessions.command("show")
def _sessions_show(
    session_id: _SessionId,
    cwd: _Folder = None,
    json_output: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Show the conversation of a session."""
    from quarterdeck.cli.local.sessions import show

    _finish(show, session_id, cwd, json_output=json_output)


@_sessions.command("rename")
def _sessions_rename(
    session_id: _SessionId,
    title: Annotated[str, typer.Argument(help="The new title.")],
    cwd: _Folder = None,
) -> None:
    """Give a session a title."""
    from quarterdeck.cli.local.sessions import rename

    _finish(rename, session_id, title, cwd)


@_sessions.command("tag")
def _sessions_tag(
    session_id: _SessionId,
    tag: Annotated[
        str | None, typer.Argument(help="The tag; without it, it is taken away.")
    ] = None,
    cwd: _Folder = None,
) -> None:
    """Give a session a tag, or take it away."""
    from quarterdeck.cli.local.sessions import tag as give

    _finish(give, session_id, tag, cwd)


@_sessions.command("delete")
def _sessions_delete(
    session_id: _SessionId,
    cwd: _Folder = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a session for good, with its subagents."""
    from quarterdeck.cli.local.sessions import delete

    _finish(delete, session_id, cwd, sure=yes)


register(app, _finish)
