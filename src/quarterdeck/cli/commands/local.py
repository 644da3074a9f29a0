"""Commands that need no hub: `run`, `record`, `replay`, `doctor`, `sessions`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.cli.commands.base import (
    Config,
    Json,
    ProcessOptions,
    add_group,
    app,
    finish,
    given_options,
    spread,
)
from quarterdeck.cli.commands.launch_options import LaunchOptions


@app.command("run")
@spread
def _run(
    prompt: Annotated[
        str | None,
        typer.Argument(
            help="The prompt; `-` reads it from stdin. Without it, a conversation at the terminal."
        ),
    ] = None,
    *,
    process: ProcessOptions,
    launch: LaunchOptions,
    output_schema: Annotated[
        Path | None,
        typer.Option("--output-schema", help="A JSON schema for the final answer."),
    ] = None,
    image: Annotated[
        list[Path] | None,
        typer.Option("--image", metavar="FILE", help="Attach this image. Repeatable."),
    ] = None,
    add_dir: Annotated[
        list[Path] | None,
        typer.Option("--add-dir", metavar="FOLDER", help="One more folder to work in. Repeatable."),
    ] = None,
    resume: Annotated[str | None, typer.Option("--resume", help="Resume this session.")] = None,
    continue_: Annotated[
        bool, typer.Option("--continue", help="Resume the newest session of the folder.")
    ] = False,
    fork: Annotated[bool, typer.Option("--fork", help="Resume in a copy, under a new id.")] = False,
    session_id: Annotated[
        str | None, typer.Option("--session-id", help="The new session's id, a UUID.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="The agent that leads the session.")
    ] = None,
    cwd: Annotated[Path | None, typer.Option("--cwd", help="The folder to work in.")] = None,
    api_billing: Annotated[
        bool,
        typer.Option("--api-billing", help="Pass this environment's API key to the CLI."),
    ] = False,
    no_partial: Annotated[
        bool, typer.Option("--no-partial", help="Print whole blocks of text only.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only the final text on stdout.")
    ] = False,
    json_lines: Annotated[
        bool,
        typer.Option("--json", help="Print the CLI's messages unchanged on stdout (NDJSON)."),
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option("--record", help="Record both directions to this file."),
    ] = None,
) -> None:
    """Run a prompt, or hold a conversation: text, tools, diffs and questions in the terminal.

    Exit code: 0 the turn succeeded, 1 it failed, 2 wrong usage, 3 the CLI was not found, did not
    start or died, 130 interrupted. Ctrl-C interrupts the turn; a second Ctrl-C ends the agent.
    """
    from quarterdeck.agent.options import Options
    from quarterdeck.cli.local.request import RunRequest, launch_options
    from quarterdeck.cli.local.run import run

    finish(
        run,
        RunRequest(
            prompt=prompt,
            images=tuple(image or ()),
            output_schema=output_schema,
            env=tuple(process.env or ()),
            quiet=quiet,
            json=json_lines,
            record=record,
            options=Options(
                **launch_options(given_options(launch)),
                claude=process.claude,
                add_dirs=tuple(add_dir or ()),
                resume=resume,
                continue_=continue_,
                fork_session=fork,
                session_id=session_id,
                agent=agent,
                cwd=cwd,
                api_billing=api_billing,
                include_partial_messages=not no_partial,
            ),
        ),
    )


@app.command(
    "record",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    epilog="Everything after FILE is passed to `quarterdeck run`.",
)
def _record(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="The recording to write.")],
) -> None:
    """Like `run`, and record both directions: record FILE [PROMPT] [options of run]."""
    from quarterdeck.cli.app import run_app

    finish(run_app, ["run", "--record", str(file), *context.args])


@app.command("replay")
def _replay(
    file: Annotated[Path, typer.Argument(help="A recording.")],
    speed: Annotated[
        float,
        typer.Option("--speed", min=0.0, help="1 is real time, 2 twice as fast, 0 all at once."),
    ] = 0.0,
    longest_pause: Annotated[
        float,
        typer.Option("--longest-pause", min=0.0, help="Cut longer pauses to this many seconds."),
    ] = 5.0,
    json_lines: Annotated[
        bool, typer.Option("--json", help="Print the CLI's messages unchanged on stdout.")
    ] = False,
) -> None:
    """Show a recording as `run` would have shown it, without a CLI."""
    from quarterdeck.cli.local.replay import replay

    finish(replay, file, speed=speed, longest_pause=longest_pause, json_lines=json_lines)


@app.command("doctor")
def _doctor(
    claude: Annotated[
        str | None, typer.Option("--claude", metavar="PATH", help="The Claude Code to examine.")
    ] = None,
    api_billing: Annotated[
        bool, typer.Option("--api-billing", help="Check as `run --api-billing` would start it.")
    ] = False,
    probe: Annotated[
        bool,
        typer.Option("--probe", help="Also run it offline, and report what is new in it."),
    ] = False,
    config: Config = None,
    json_output: Json = False,
) -> None:
    """Check Claude Code and the hub for problems, and say what to do about them."""
    from quarterdeck.cli.local.doctor import doctor

    finish(
        doctor,
        claude=claude,
        api_billing=api_billing,
        probe=probe,
        json_output=json_output,
        config=config,
    )


_sessions = add_group("sessions", "The sessions that Claude Code keeps on disk.")
_SessionId = Annotated[str, typer.Argument(help="The id of the session.")]
_Folder = Annotated[
    Path | None,
    typer.Option("--cwd", help="The project's folder; by default all projects are searched."),
]


@_sessions.command("list")
def _list(
    cwd: _Folder = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most this many.")] = 20,
    json_output: Json = False,
) -> None:
    """List sessions, newest first."""
    from quarterdeck.cli.local.sessions import list_all

    finish(list_all, cwd, limit=limit, json_output=json_output)


@_sessions.command("show")
def _show(session_id: _SessionId, cwd: _Folder = None, json_output: Json = False) -> None:
    """Show the conversation of a session."""
    from quarterdeck.cli.local.sessions import show

    finish(show, session_id, cwd, json_output=json_output)


@_sessions.command("rename")
def _rename(
    session_id: _SessionId,
    title: Annotated[str, typer.Argument(help="The new title.")],
    cwd: _Folder = None,
) -> None:
    """Set a session's title."""
    from quarterdeck.cli.local.sessions import rename

    finish(rename, session_id, title, cwd)


@_sessions.command("tag")
def _tag(
    session_id: _SessionId,
    tag: Annotated[str | None, typer.Argument(help="The tag; without it, remove the tag.")] = None,
    cwd: _Folder = None,
) -> None:
    """Set a session's tag, or remove it."""
    from quarterdeck.cli.local.sessions import set_tag

    finish(set_tag, session_id, tag, cwd)


@_sessions.command("delete")
def _delete(
    session_id: _SessionId,
    cwd: _Folder = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete a session and its subagents. This cannot be undone."""
    from quarterdeck.cli.local.sessions import delete

    finish(delete, session_id, cwd, sure=yes)
