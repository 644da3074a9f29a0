"""The commands about policy: their names, options and help texts. What they do is in `policy`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from quarterdeck.cli.hub.options import Hub, Json, TokenFile

PolicyFile = Annotated[Path, typer.Argument(metavar="FILE", help="A policy; - is stdin.")]
Since = Annotated[
    str, typer.Option("--since", metavar="DURATION", help="How far back: 12h, 30d, 4w.")
]


def register(app: typer.Typer, finish: Callable[..., Any]) -> None:
    """Add the commands."""
    policy = typer.Typer(
        help="Rules for what agents may do without a question.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    app.add_typer(policy, name="policy")
    _register_trying(policy, finish)
    _register_grants(policy, finish)


def _register_trying(policy: typer.Typer, finish: Callable[..., Any]) -> None:
    @policy.command("check")
    def _check(file: PolicyFile, json_output: Json = False) -> None:
        """Read a policy file and try its examples. Needs no hub; exit code 1 if it is wrong."""
        from quarterdeck.cli.hub.policy import run_check

        finish(run_check, file, json_output=json_output)

    @policy.command("explain")
    def _explain(
        tool: Annotated[str, typer.Argument(metavar="TOOL", help="As in Bash, Edit, WebFetch.")],
        argument: Annotated[
            str, typer.Argument(metavar="INPUT", help="Its command, path, URL; or JSON.")
        ] = "",
        file: Annotated[
            Path | None,
            typer.Option("--file", metavar="FILE", help="By this policy alone; needs no hub."),
        ] = None,
        session: Annotated[
            str | None, typer.Option("--session", "-s", help="As if this session had asked.")
        ] = None,
        name: Annotated[
            str | None, typer.Option("--policy", help="With this policy or preset on top.")
        ] = None,
        cwd: Annotated[
            str | None, typer.Option("--cwd", help="Where it would run; else in this folder.")
        ] = None,
        branch: Annotated[str | None, typer.Option("--branch", help="The branch.")] = None,
        project: Annotated[str | None, typer.Option("--project", help="The project.")] = None,
        machine: Annotated[str | None, typer.Option("--machine", help="The machine.")] = None,
        user: Annotated[str | None, typer.Option("--user", help="Whose session.")] = None,
        mode: Annotated[str | None, typer.Option("--mode", help="The permission mode.")] = None,
        origin: Annotated[
            str | None, typer.Option("--origin", help="main, subagent or subagent:NAME.")
        ] = None,
        cost: Annotated[float | None, typer.Option("--cost", help="US dollars so far.")] = None,
        hub: Hub = None,
        token_file: TokenFile = None,
        json_output: Json = False,
    ) -> None:
        """Say what becomes of a call: which rules hit which part, and which decided."""
        from quarterdeck.cli.hub.policy import run_explain
        from quarterdeck.cli.hub.target import Target
        from quarterdeck.fronts.http.policy_shapes import CallQuestion

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
        target = Target(hub=hub, token_file=token_file)
        finish(run_explain, question, file, target, json_output=json_output)

    @policy.command("replay")
    def _replay(
        file: PolicyFile,
        since: Since = "30d",
        session: Annotated[
            str | None, typer.Option("--session", "-s", help="Of this session only.")
        ] = None,
        hub: Hub = None,
        token_file: TokenFile = None,
        json_output: Json = False,
    ) -> None:
        """Hold a policy against the calls in the journal: what would it have done otherwise?"""
        from quarterdeck.cli.hub.policy import run_replay
        from quarterdeck.cli.hub.target import Target

        target = Target(hub=hub, token_file=token_file)
        finish(run_replay, file, since, session, target, json_output=json_output)

    @policy.command("suggest")
    def _suggest(
        since: Since = "30d",
        least: Annotated[
            int, typer.Option("--least", min=1, help="So many alike answers at least.")
        ] = 3,
        hub: Hub = None,
        token_file: TokenFile = None,
        json_output: Json = False,
    ) -> None:
        """Suggest rules from the answers that people gave, with what supports each."""
        from quarterdeck.cli.hub.policy import run_suggest
        from quarterdeck.cli.hub.target import Target

        target = Target(hub=hub, token_file=token_file)
        finish(run_suggest, since, least, target, json_output=json_output)

    @policy.command("show")
    def _show(hub: Hub = None, token_file: TokenFile = None, json_output: Json = False) -> None:
        """Show what is in force, and what is wrong with a file. Exit code 1 if something is."""
        from quarterdeck.cli.hub.policy import run_show
        from quarterdeck.cli.hub.target import Target

        target = Target(hub=hub, token_file=token_file)
        finish(run_show, target, json_output=json_output)

    @policy.command("preset")
    def _preset(
        name: Annotated[str | None, typer.Argument(help="Its name; else all are listed.")] = None,
    ) -> None:
        """Print a preset, to begin a policy of one's own with."""
        from quarterdeck.cli.hub.policy import run_preset

        finish(run_preset, name)

    @policy.command("import")
    def _import(
        files: Annotated[
            list[Path], typer.Argument(metavar="SETTINGS…", help="Claude Code's settings.json.")
        ],
    ) -> None:
        """Print the permission rules of Claude Code's settings files as a policy."""
        from quarterdeck.cli.hub.policy import run_import

        finish(run_import, files)


def _register_grants(policy: typer.Typer, finish: Callable[..., Any]) -> None:
    @policy.command("grants")
    def _grants(hub: Hub = None, token_file: TokenFile = None, json_output: Json = False) -> None:
        """List what people have granted, by answering «always» or with `policy grant`."""
        from quarterdeck.cli.hub.policy import run_grants
        from quarterdeck.cli.hub.target import Target

        target = Target(hub=hub, token_file=token_file)
        finish(run_grants, target, json_output=json_output)

    @policy.command("grant")
    def _grant(
        rules: Annotated[
            list[str], typer.Argument(metavar="RULE…", help="As in 'Bash(npm publish:*)'.")
        ],
        duration: Annotated[
            str | None, typer.Option("--for", metavar="DURATION", help="30m, 8h; else always.")
        ] = None,
        directory: Annotated[
            Path | None, typer.Option("--directory", help="For sessions in this folder.")
        ] = None,
        project: Annotated[
            str | None, typer.Option("--project", help="For sessions of this project.")
        ] = None,
        hub: Hub = None,
        token_file: TokenFile = None,
    ) -> None:
        """Allow something without a question, for some time. Prints the grant's id."""
        from quarterdeck.cli.hub.policy import run_grant
        from quarterdeck.cli.hub.target import Target

        target = Target(hub=hub, token_file=token_file)
        finish(run_grant, rules, duration, directory, project, target)

    @policy.command("revoke")
    def _revoke(
        grant: Annotated[str, typer.Argument(help="Its id, as `policy grants` has it.")],
        hub: Hub = None,
        token_file: TokenFile = None,
    ) -> None:
        """Take a grant back."""
        from quarterdeck.cli.hub.policy import run_revoke
        from quarterdeck.cli.hub.target import Target

        finish(run_revoke, grant, Target(hub=hub, token_file=token_file))
