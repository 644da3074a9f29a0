"""The page of the command line names every command, and every option."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import typer.main
from typer.core import TyperCommand, TyperGroup

from quarterdeck.cli.app import app
from support.pages import page

TEXT = page("docs/reference/command-line.md").text
COMMON = {
    "--help", "-h", "--json", "--permission-mode",
    "--hub", "--token-file", "--ca-file", "--insecure",
}  # fmt: skip


def commands() -> Iterator[tuple[str, TyperGroup | TyperCommand]]:
    """Every command and group by its words: `serve`, `token`, `token list`."""
    everything = typer.main.get_command(app)
    assert isinstance(everything, TyperGroup)
    for name, command in everything.commands.items():
        assert isinstance(command, TyperGroup | TyperCommand)
        yield name, command
        if isinstance(command, TyperGroup):
            for inner, each in command.commands.items():
                assert isinstance(each, TyperGroup | TyperCommand)
                yield f"{name} {inner}", each


ALL = dict(commands())


def section_of(name: str) -> str:
    """What the page says under a command's heading, smaller headings and all."""
    found = re.search(rf"^(##+) .*\b{name}\b.*$", TEXT, re.MULTILINE)
    assert found is not None, f"{name} has no heading"
    end = rf"^#{{1,{len(found[1])}}} "
    return re.split(end, TEXT[found.end() :], maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize("words", ALL)
def test_every_command_and_every_option_is_on_the_page(words: str) -> None:
    section = section_of(words.split(" ")[0])
    assert re.search(rf"(quarterdeck |`){words}\b", section), f"no {words} under its heading"
    options = {option for parameter in ALL[words].params for option in parameter.opts}
    long = {option for option in options if option.startswith("--")} - COMMON
    assert sorted(option for option in long if option not in section) == []
