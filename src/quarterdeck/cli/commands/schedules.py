"""The commands of schedules: `schedule list`, `add`, `pause`, `resume`, `run`, `history`, `rm`."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer

from quarterdeck.cli.commands.base import HubOptions, Json, add_group, finish, spread

_schedule = add_group("schedule", "Sessions that the hub starts at planned times.")

_Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]


class _Times(NamedTuple):
    """When a schedule starts a session: one of the first three."""

    cron: Annotated[
        str | None,
        typer.Option("--cron", metavar="EXPRESSION", help="Five fields, as '30 3 * * 1-5'."),
    ] = None
    every: Annotated[
        str | None, typer.Option("--every", metavar="INTERVAL", help="As 90m, 6h or 1d.")
    ] = None
    once: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="Once, as 2030-01-31T18:00.")
    ] = None
    timezone: Annotated[
        str, typer.Option("--timezone", metavar="ZONE", help="As Europe/Berlin.")
    ] = "UTC"
    catch_up: Annotated[
        str,
        typer.Option("--catch-up", help="For times while the hub was down: skip, once or all."),
    ] = "once"
    catch_up_max: Annotated[
        int, typer.Option("--catch-up-max", metavar="N", help="With all: the newest so many.")
    ] = 10


class _Limits(NamedTuple):
    """The limits of a schedule."""

    max_running: Annotated[
        int, typer.Option("--max-running", metavar="N", help="Sessions at the same time.")
    ] = 1
    overlap: Annotated[
        str, typer.Option("--overlap", help="When so many work already: skip or wait.")
    ] = "skip"
    per_day: Annotated[
        int | None, typer.Option("--per-day", metavar="N", help="Starts in a day.")
    ] = None
    max_minutes: Annotated[
        float | None,
        typer.Option("--max-minutes", metavar="M", help="Stop a session that works longer."),
    ] = None
    budget_usd: Annotated[
        float | None, typer.Option("--budget-usd", metavar="USD", help="For each session.")
    ] = None
    budget_tokens: Annotated[
        int | None, typer.Option("--budget-tokens", metavar="N", help="For each session.")
    ] = None
    ask_timeout: Annotated[
        float | None,
        typer.Option("--ask-timeout", metavar="SECONDS", help="Deny unanswered questions."),
    ] = None


@_schedule.command("list")
@spread
def _list(at: HubOptions, json_output: Json = False) -> None:
    """List schedules and inbound webhooks, with the next time and the last result."""
    from quarterdeck.cli.hub.schedules import run_list

    finish(run_list, at.target, json_output=json_output)


@_schedule.command("add")
@spread
def _add(
    name: _Name,
    prompt: Annotated[str, typer.Argument(help="The prompt; `-` reads it from stdin.")],
    *,
    directory: Annotated[
        str | None, typer.Option("--cwd", "-C", metavar="FOLDER", help="The folder to work in.")
    ] = None,
    project: Annotated[str | None, typer.Option("--project", help="A project.")] = None,
    machine: Annotated[
        str | None, typer.Option("--machine", help="The machine; by default the hub's.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="The model.")] = None,
    mode: Annotated[
        str | None, typer.Option("--permission-mode", "--mode", help="The permission mode.")
    ] = None,
    effort: Annotated[str | None, typer.Option("--effort", help="The thinking effort.")] = None,
    policy: Annotated[
        str | None, typer.Option("--policy", help="A policy, besides the global one.")
    ] = None,
    worktree: Annotated[
        bool, typer.Option("--worktree", help="Each session in a git worktree of its own.")
    ] = False,
    keep_running: Annotated[
        bool, typer.Option("--keep-running", help="Leave the CLI running when it is done.")
    ] = False,
    paused: Annotated[bool, typer.Option("--paused", help="Start nothing yet.")] = False,
    times: _Times,
    limits: _Limits,
    at: HubOptions,
    json_output: Json = False,
) -> None:
    """Add a schedule. Its sessions belong to you. It needs --cron, --every or --at."""
    from quarterdeck.cli.hub.schedules import run_add

    target = at.target
    given = {
        "name": name,
        "project": project,
        "machine": machine,
        "model": model,
        "mode": mode,
        "effort": effort,
        "policy": policy,
        "worktree": worktree,
        "keep_running": keep_running,
        "paused": paused,
        "cron": times.cron,
        "every": times.every,
        "at": times.once,
        "timezone": times.timezone,
        "catch_up": times.catch_up,
        "catch_up_max": times.catch_up_max,
        **limits._asdict(),
    }
    finish(run_add, given, prompt, directory, target, json_output=json_output)


@_schedule.command("pause")
@spread
def _pause(name: _Name, at: HubOptions) -> None:
    """Start nothing until it is resumed."""
    from quarterdeck.cli.hub.schedules import run_pause

    finish(run_pause, name, at.target, paused=True)


@_schedule.command("resume")
@spread
def _resume(name: _Name, at: HubOptions) -> None:
    """Start sessions again. Times that passed while it was paused are left out."""
    from quarterdeck.cli.hub.schedules import run_pause

    finish(run_pause, name, at.target, paused=False)


@_schedule.command("run")
@spread
def _run(name: _Name, at: HubOptions, json_output: Json = False) -> None:
    """Start a session now, also while it is paused."""
    from quarterdeck.cli.hub.schedules import run_now

    finish(run_now, name, at.target, json_output=json_output)


@_schedule.command("history")
@spread
def _history(
    name: _Name,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=500, help="At most so many.")
    ] = 20,
    *,
    at: HubOptions,
    json_output: Json = False,
) -> None:
    """List its starts, newest first, and why there was none."""
    from quarterdeck.cli.hub.schedules import run_history

    finish(run_history, name, limit, at.target, json_output=json_output)


@_schedule.command("rm")
@spread
def _rm(name: _Name, at: HubOptions) -> None:
    """Remove a schedule and its history. Its sessions stay."""
    from quarterdeck.cli.hub.schedules import run_remove

    finish(run_remove, name, at.target)
