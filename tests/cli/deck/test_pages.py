"""The page of the command line names every command of the hub, and every option."""

from __future__ import annotations

import re

import pytest
import typer.main
from typer.core import TyperGroup

from quarterdeck.cli.app import app
from support.pages import page

TEXT = page("docs/reference/command-line.md").text
COMMON = {"--help", "-h", "--hub", "--token-file", "--json", "--permission-mode"}
OF_THE_HUB = [
    "serve",
    "stop",
    "status",
    "runner",
    "demo",
    "new",
    "ps",
    "send",
    "attach",
    "interrupt",
    "resume",
    "fork",
    "rename",
    "archive",
    "rm",
    "asks",
    "answer",
    "log",
    "audit",
    "token",
    "webhook",
]


@pytest.mark.parametrize("name", OF_THE_HUB)
def test_every_command_and_every_option_is_on_the_page(name: str) -> None:
    everything = typer.main.get_command(app)
    assert isinstance(everything, TyperGroup)
    command = everything.commands[name]
    options = {option for parameter in command.params for option in parameter.opts}
    long = {option for option in options if option.startswith("--")} - COMMON
    heading = re.search(rf"^##+ .*\b{name}\b.*$", TEXT, re.MULTILINE)
    assert heading is not None
    section = re.split(r"^##+ ", TEXT[heading.end() :], maxsplit=1, flags=re.MULTILINE)[0]
    assert f"quarterdeck {name}" in section
    assert sorted(option for option in long if option not in section) == []
