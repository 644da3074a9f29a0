"""Commands about policy: rules for what agents may do without asking."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.cli.commands.base import HubOptions, Json, OneSession, add_group, finish, spread

PolicyFile = Annotated[Path, typer.Argument(metavar="FILE", help="A policy file; - is stdin.")]
Since = Annotated[
    str, typer.Option("--since", metavar="DURATION", help="How far back: 12h, 30d, 4w.")
]

_policy = add_group("policy", "Rules for what agents may do without asking.")


@_policy.command("check")
def _check(
    file: PolicyFile,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 1 for warnings, too.")
    ] = False,
    json_output: Json = False,
) -> None:
    """Check a policy file and run its examples, without a hub. Exit code 1 if it is wrong."""
    from quarterdeck.cli.hub.policy import run_check

    finish(run_check, file, strict=strict, json_output=json_output)


@_policy.command("explain")
@spread
def _explain(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="As in Bash, Edit, WebFetch.")],
    argument: Annotated[
        str, typer.Argument(metavar="INPUT", help="Its command, path or URL; or JSON.")
    ] = "",
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="Apply only this policy, without a hub."),
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", "-s", help="As if this session had asked.")
    ] = None,
    name: Annotated[str | None, typer.Option("--policy", help="Add this policy or preset.")] = None,
    cwd: Annotated[
        str | None, typer.Option("--cwd", help="The folder of the call; by default this one.")
    ] = None,
    branch: Annotated[str | None, typer.Option("--branch", help="The branch.")] = None,
    project: Annotated[str | None, typer.Option("--project", help="The project.")] = None,
    machine: Annotated[str | None, typer.Option("--machine", help="The machine.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="The owner of the session.")] = None,
    mode: Annotated[str | None, typer.Option("--mode", help="The permission mode.")] = None,
    origin: Annotated[
        str | None, typer.Option("--origin", help="main, subagent or subagent:NAME.")
    ] = None,
    cost: Annotated[float | None, typer.Option("--cost", help="US dollars so far.")] = None,
    *,
    at: HubOptions,
    json_output: Json = False,
) -> None:
    """Explain the decision about a call: which rules match which part, and which one decides."""
    from quarterdeck.cli.hub.policy import run_explain
    from quarterdeck.protocol.shapes import CallQuestion

    question = CallQuestion(
        tool=tool,
        argument=argument,
        session=session,
        policy=name,
        cwd=cwd,
        branch=branch,
        project=project,
        machine=machine,
        user=user,
        mode=mode,
        origin=origin,
        cost=cost,
    )
    finish(run_explain, question, file, at.target, json_output=json_output)


@_policy.command("try")
def _try(
    command: Annotated[
        str | None,
        typer.Argument(
            metavar="COMMAND", help="A shell command, as one argument; - reads it from stdin."
        ),
    ] = None,
    tool: Annotated[
        str, typer.Option("--tool", metavar="TOOL", help="Another tool, such as Read or Edit.")
    ] = "Bash",
    argument: Annotated[
        str | None,
        typer.Option("--input", metavar="JSON", help="Its input: JSON, or a path or URL."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="FILE|PRESET",
            help="A policy file or a preset; by default policy.toml in the data folder.",
        ),
    ] = None,
    cwd: Annotated[
        Path | None, typer.Option("--cwd", help="The folder of the call; by default this one.")
    ] = None,
    home: Annotated[
        Path | None, typer.Option("--home", help="The home folder; by default yours.")
    ] = None,
    mode: Annotated[str, typer.Option("--mode", help="The permission mode.")] = "default",
    batch: Annotated[
        bool,
        typer.Option("--batch", help="Try many: JSON lines on stdin, one verdict per line."),
    ] = False,
    json_output: Json = False,
) -> None:
    """Try a command against a policy, without a hub: how it is read, what it needs, the verdict."""
    from quarterdeck.cli.local.policy_try import TryOptions, run_batch, run_try

    if batch:
        finish(run_batch, given=(command, argument, policy, cwd, home))
    options = TryOptions(
        command=command,
        tool=tool,
        argument=argument,
        policy=policy,
        cwd=cwd,
        home=home,
        mode=mode,
    )
    finish(run_try, options, json_output=json_output)


@_policy.command("replay")
@spread
def _replay(
    file: PolicyFile,
    since: Since = "30d",
    session: OneSession = None,
    *,
    at: HubOptions,
    json_output: Json = False,
) -> None:
    """Apply a policy to the calls in the journal, and show which decisions would differ."""
    from quarterdeck.cli.hub.policy import run_replay

    finish(run_replay, file, since, session, at.target, json_output=json_output)


@_policy.command("suggest")
@spread
def _suggest(
    since: Since = "30d",
    least: Annotated[
        int, typer.Option("--least", min=1, help="The least number of equal answers.")
    ] = 3,
    *,
    at: HubOptions,
    json_output: Json = False,
) -> None:
    """Suggest rules from people's answers, with the evidence for each."""
    from quarterdeck.cli.hub.policy import run_suggest

    finish(run_suggest, since, least, at.target, json_output=json_output)


@_policy.command("show")
@spread
def _show(at: HubOptions, json_output: Json = False) -> None:
    """Show the policies in force and problems in their files. Exit code 1 if there are any."""
    from quarterdeck.cli.hub.policy import run_show

    finish(run_show, at.target, json_output=json_output)


@_policy.command("preset")
def _preset(
    name: Annotated[
        str | None, typer.Argument(help="Its name; without it, all are listed.")
    ] = None,
) -> None:
    """Print a preset, as a start for a policy of your own."""
    from quarterdeck.cli.hub.policy import run_preset

    finish(run_preset, name)


@_policy.command("import")
def _import(
    files: Annotated[
        list[Path], typer.Argument(metavar="SETTINGS…", help="Claude Code's settings.json.")
    ],
) -> None:
    """Print the permission rules of Claude Code's settings files as a policy."""
    from quarterdeck.cli.hub.policy import run_import

    finish(run_import, files)


@_policy.command("grants")
@spread
def _grants(at: HubOptions, json_output: Json = False) -> None:
    """List grants: permissions from answers of «always» and from `policy grant`."""
    from quarterdeck.cli.hub.policy import run_grants

    finish(run_grants, at.target, json_output=json_output)


@_policy.command("grant")
@spread
def _grant(
    rules: Annotated[
        list[str], typer.Argument(metavar="RULE…", help="As in 'Bash(npm publish:*)'.")
    ],
    duration: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="30m, 8h; by default without end."),
    ] = None,
    directory: Annotated[
        Path | None, typer.Option("--directory", help="For sessions in this folder.")
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", help="For sessions of this project.")
    ] = None,
    *,
    at: HubOptions,
) -> None:
    """Allow something without asking, for a time or for good. Prints the grant's id."""
    from quarterdeck.cli.hub.policy import run_grant

    finish(run_grant, rules, duration, directory, project, at.target)


@_policy.command("revoke")
@spread
def _revoke(
    grant: Annotated[str, typer.Argument(help="Its id, from `policy grants`.")],
    *,
    at: HubOptions,
) -> None:
    """Revoke a grant."""
    from quarterdeck.cli.hub.policy import run_revoke

    finish(run_revoke, grant, at.target)
