"""Groups of options: each field of a group is an option of the command, and comes back in one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.main import get_command

from quarterdeck.cli.commands.base import HubOptions, given_options, spread
from quarterdeck.cli.commands.launch_options import LaunchOptions
from quarterdeck.cli.hub.target import Target

SEEN: list[tuple[str, HubOptions, LaunchOptions, bool]] = []


@spread
def declared(
    name: Annotated[str, typer.Argument()],
    *,
    launch: LaunchOptions,
    at: HubOptions,
    last: Annotated[bool, typer.Option("--last")] = False,
) -> None:
    """Say something."""
    SEEN.append((name, at, launch, last))


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer(add_completion=False)
    made.command("one")(declared)
    SEEN.clear()
    return made


def run(app: typer.Typer, *arguments: str) -> None:
    with pytest.raises(SystemExit) as end:
        get_command(app)(list(arguments))
    assert end.value.code == 0


def test_the_fields_of_a_group_are_options_and_come_back_as_the_group(app: typer.Typer) -> None:
    run(app, "x", "--hub", "http://h", "--allow", "Bash", "--allow", "Edit", "--last")
    (name, at, launch, last), *_ = SEEN
    assert (name, last) == ("x", True)
    assert at == HubOptions(hub="http://h")
    assert at.target == Target(hub="http://h")
    assert given_options(launch)["allowed_tools"] == ("Bash", "Edit")


def test_without_options_a_group_has_its_defaults(app: typer.Typer) -> None:
    run(app, "x")
    (_, at, launch, last), *_ = SEEN
    assert at.target == Target()
    assert not last
    assert given_options(launch) == {"skip_permissions": False}


def test_a_group_stands_in_the_help_where_it_was_declared(
    app: typer.Typer, capsys: pytest.CaptureFixture[str]
) -> None:
    run(app, "--help")
    text = capsys.readouterr().out
    assert "Say something." in text
    places = [text.index(option) for option in ("--model", "--settings", "--hub", "--last")]
    assert places == sorted(places)


def test_a_path_of_a_group_is_a_path(app: typer.Typer) -> None:
    run(app, "x", "--token-file", "/a/token")
    assert SEEN[0][1].token_file == Path("/a/token")
