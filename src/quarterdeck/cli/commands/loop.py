"""The commands of loops: `loop run`, `list`, `show`, `pause`, `resume`, `stop`, `continue`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from quarterdeck.cli.commands.base import (
    HubOptions,
    Json,
    ProcessOptions,
    add_group,
    finish,
    given_options,
    spread,
)
from quarterdeck.cli.commands.launch_options import LaunchOptions

if TYPE_CHECKING:
    from quarterdeck.loop.spec import LoopSpec

_loop = add_group("loop", "An agent works on a task, turn by turn, until it is done.")

_Loop = Annotated[
    str, typer.Argument(metavar="LOOP", help="The loop's id, a unique prefix of it, or its name.")
]
_Local = Annotated[bool, typer.Option("--local", help="A loop of this machine, without a hub.")]
_Zero = Annotated[
    bool, typer.Option("--zero", help="Exit with 0 whenever the task is done, whatever the goal.")
]


class StopOptions(NamedTuple):
    """When a loop stops."""

    until_phrase: Annotated[
        str | None,
        typer.Option(
            "--until-phrase", metavar="TEXT", help="Done when the agent writes this line."
        ),
    ] = None
    until_command: Annotated[
        str | None,
        typer.Option(
            "--until-command", metavar="COMMAND", help="Done when this command exits with 0."
        ),
    ] = None
    command_seconds: Annotated[
        float, typer.Option("--command-seconds", help="How long that command may run.")
    ] = 900.0
    until_result: Annotated[
        bool,
        typer.Option("--until-result", help="Done when the structured result says `done`."),
    ] = False
    result_schema: Annotated[
        Path | None,
        typer.Option(
            "--result-schema", metavar="FILE", help="The schema of that result, with `done`."
        ),
    ] = None
    turns: Annotated[int, typer.Option("--turns", min=1, help="At most this many turns.")] = 20
    minutes: Annotated[
        float | None, typer.Option("--minutes", help="At most this many minutes of work.")
    ] = None
    budget_usd: Annotated[
        float | None, typer.Option("--budget-usd", help="At most this many US dollars.")
    ] = None
    no_progress: Annotated[
        int | None,
        typer.Option(
            "--no-progress",
            metavar="TURNS",
            min=1,
            help="Stop when so many turns change no file and no number of failing tests.",
        ),
    ] = None
    failures: Annotated[
        int, typer.Option("--failures", min=1, help="Stop when so many turns in a row fail.")
    ] = 3
    limit_minutes: Annotated[
        float,
        typer.Option(
            "--limit-minutes", min=0.0, help="How long to wait for the account's usage limit."
        ),
    ] = 360.0


class LoopOptions(NamedTuple):
    """How the turns of a loop are run."""

    one_session: Annotated[
        bool, typer.Option("--one-session", help="One conversation, not a new one each turn.")
    ] = False
    plan: Annotated[bool, typer.Option("--plan", help="Make a plan first.")] = False
    review: Annotated[
        bool, typer.Option("--review", help="A second agent reviews each turn, and must agree.")
    ] = False
    review_prompt: Annotated[
        str, typer.Option("--review-prompt", metavar="TEXT", help="What the reviewer looks for.")
    ] = ""
    review_model: Annotated[
        str | None, typer.Option("--review-model", help="The reviewer's model.")
    ] = None
    worktree: Annotated[
        str | None,
        typer.Option("--worktree", metavar="BRANCH", help="Work in a git worktree of its own."),
    ] = None
    commit: Annotated[bool, typer.Option("--commit", help="Commit what each turn has changed.")] = (
        False
    )
    proof: Annotated[
        list[str] | None,
        typer.Option("--proof", metavar="COMMAND", help="Run it at the end. Repeatable."),
    ] = None
    ask_timeout: Annotated[
        float,
        typer.Option(
            "--ask-timeout",
            metavar="SECONDS",
            min=0.0,
            help="Deny a question that nobody answers in this time; 0 waits without limit.",
        ),
    ] = 300.0
    name: Annotated[str | None, typer.Option("--name", help="A name for people.")] = None


def _spec(task: str, directory: str, how: LoopOptions, stop: StopOptions) -> LoopSpec:
    from msgspec import Raw

    from quarterdeck.cli.local.loop import read_schema
    from quarterdeck.domain.structs import ABSENT
    from quarterdeck.loop.spec import LoopSpec, Review, Stops, check_spec

    schema = ABSENT if stop.result_schema is None else Raw(read_schema(stop.result_schema))
    wants_review = how.review or how.review_prompt or how.review_model
    return check_spec(
        LoopSpec(
            task=task,
            directory=directory,
            name=how.name,
            fresh=not how.one_session,
            plan=how.plan,
            review=Review(prompt=how.review_prompt, model=how.review_model)
            if wants_review
            else None,
            worktree=how.worktree,
            commit=how.commit,
            proof=tuple(how.proof or ()),
            ask_timeout=how.ask_timeout or None,
            stops=Stops(
                phrase=stop.until_phrase,
                command=stop.until_command,
                command_seconds=stop.command_seconds,
                result=stop.until_result or bool(schema),
                result_schema=schema,
                turns=stop.turns,
                seconds=None if stop.minutes is None else stop.minutes * 60,
                budget_usd=stop.budget_usd,
                no_progress=stop.no_progress,
                failures=stop.failures,
                usage_limit_seconds=stop.limit_minutes * 60,
            ),
        )
    )


@_loop.command("run")
@spread
def _run(
    task: Annotated[
        str | None, typer.Argument(help="The task; `-` reads it from stdin. Or use --file.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="A file with the task.")
    ] = None,
    cwd: Annotated[
        str | None, typer.Option("--cwd", help="The folder to work in; by default this one.")
    ] = None,
    local: Annotated[
        bool, typer.Option("--local", help="Run it in this process, without a hub.")
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Print its id, and do not wait for its end.")
    ] = False,
    zero: _Zero = False,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON at the end.")
    ] = False,
    *,
    how: LoopOptions,
    stop: StopOptions,
    process: ProcessOptions,
    launch: LaunchOptions,
    policy: Annotated[
        str | None,
        typer.Option("--policy", help="A policy or preset, besides the one for all sessions."),
    ] = None,
    sandbox: Annotated[
        str | None,
        typer.Option("--sandbox", help="off, protect or strict; by default as configured."),
    ] = None,
    api_billing: Annotated[
        bool, typer.Option("--api-billing", help="Pass the API key of the environment to the CLI.")
    ] = False,
    at: HubOptions,
) -> None:
    """Let an agent work on a task until it is done, or until a limit is reached.

    Exit code: 10 the phrase was written, 11 the command exited with 0, 12 the result says `done`,
    20 turns, 21 time, 22 budget, 23 no progress, 24 usage limit, 25 failed turns, 30 a person.
    Ctrl-C stops a local loop, and leaves a loop of the hub running.
    """
    from quarterdeck.cli.local.loop import AgentSettings, directory_of, run_local, task_of

    target = at.target
    spec = _spec(task_of(task, file), directory_of(cwd, here=local or target.is_here), how, stop)
    settings = AgentSettings(
        **given_options(process, launch),
        api_billing=api_billing,
        policy=policy,
        sandbox=sandbox,
    )
    if local:
        finish(run_local, spec, settings, json_output=json_output, zero=zero)
    from quarterdeck.cli.hub.loop import run_in_hub

    finish(run_in_hub, spec, settings, target, detach=detach, json_output=json_output, zero=zero)


@_loop.command("continue")
def _continue(
    loop: _Loop,
    zero: _Zero = False,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON at the end.")
    ] = False,
) -> None:
    """Continue a local loop that was killed or stopped, where it was.

    The hub continues its own loops by itself.
    """
    from quarterdeck.cli.local.loop import continue_local

    finish(continue_local, loop, json_output=json_output, zero=zero)


@_loop.command("list")
@spread
def _list(local: _Local = False, *, at: HubOptions, json_output: Json = False) -> None:
    """List loops, newest first: id, state, turns, cost, name."""
    from quarterdeck.cli.hub.loop import run_list

    finish(run_list, at.target, local=local, json_output=json_output)


@_loop.command("show")
@spread
def _show(
    loop: _Loop,
    local: _Local = False,
    pull_request: Annotated[
        bool, typer.Option("--pull-request", help="Print a text for a pull request.")
    ] = False,
    *,
    at: HubOptions,
    json_output: Json = False,
) -> None:
    """Print the report of a loop, also of one that still runs."""
    from quarterdeck.cli.hub.loop import run_show

    finish(
        run_show,
        loop,
        at.target,
        local=local,
        pull_request=pull_request,
        json_output=json_output,
    )


@_loop.command("pause")
@spread
def _pause(loop: _Loop, local: _Local = False, *, at: HubOptions) -> None:
    """Pause a loop: the turn that runs ends, and no other begins."""
    from quarterdeck.cli.hub.loop import run_control

    finish(run_control, loop, "pause", at.target, local=local)


@_loop.command("resume")
@spread
def _resume(loop: _Loop, local: _Local = False, *, at: HubOptions) -> None:
    """Let a paused loop go on."""
    from quarterdeck.cli.hub.loop import run_control

    finish(run_control, loop, "resume", at.target, local=local)


@_loop.command("stop")
@spread
def _stop(loop: _Loop, local: _Local = False, *, at: HubOptions) -> None:
    """Stop a loop, and interrupt the turn that runs."""
    from quarterdeck.cli.hub.loop import run_control

    finish(run_control, loop, "stop", at.target, local=local)
