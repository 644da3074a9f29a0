"""Values that are taken as they are: the same as Typer makes of them, and the same refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.main import get_command

from quarterdeck.cli.commands.plain_values import take_plain_values

PLAIN = [
    "first",
    "--text=",
    "--text=ä \n",
    "--whole=3",
    "--whole=-3",
    "--real=2",
    "--real=-2.5",
    "--port=0",
    "--port=65535",
    "--path=here",
    "--path=nowhere",
    "--several=a --several=b",
    "--paths=here --paths=nowhere",
    "--flag",
    "--called",
    "- more rest",
]
"""Taken without Typer."""
FOR_TYPER = [
    "--text=\udcff",
    "--several=a --several=\udcff",
    "--whole=",
    "--whole=3.0",
    "--whole=3.5",
    "--whole=1_000",
    "--whole=٣",
    "--whole=99999999999999999999",
    "--real=1e3",
    "--real=inf",
    "--real=x",
    "--port=-1",
    "--port=65536",
    "--unknown=1",
    "--whole",
]
"""Not plainly right: Typer says what they are."""


_given: list[object] = []
_app = typer.Typer(add_completion=False, rich_markup_mode=None)


def _note(value: bool) -> None:
    _given.append(value)


@_app.command()
def _command(
    needed: str,
    rest: Annotated[list[str] | None, typer.Argument()] = None,
    text: Annotated[str | None, typer.Option()] = None,
    whole: Annotated[int | None, typer.Option()] = None,
    real: Annotated[float | None, typer.Option()] = None,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 1,
    path: Annotated[Path | None, typer.Option()] = None,
    several: Annotated[list[str] | None, typer.Option()] = None,
    paths: Annotated[list[Path] | None, typer.Option()] = None,
    flag: Annotated[bool, typer.Option("--flag")] = False,
    _: Annotated[bool, typer.Option("--called", callback=_note)] = False,
) -> None:
    _given.append([needed, rest, text, whole, real, port, path, several, paths, flag])


def outcome(capsys: pytest.CaptureFixture[str], *arguments: str, plainly: bool) -> list[object]:
    """What a command is given, and what Typer says of its command line."""
    command = get_command(_app)
    if plainly:
        take_plain_values(command)
    _given.clear()
    with pytest.raises(SystemExit) as end:
        command(list(arguments), prog_name="it")
    return [end.value.code, capsys.readouterr().err, *_given]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("here").touch()


@pytest.mark.parametrize("words", [*PLAIN, *FOR_TYPER])
def test_plain_values_are_what_typer_makes_of_them(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["needed", *words.split(" ")]
    assert outcome(capsys, *arguments, plainly=True) == outcome(capsys, *arguments, plainly=False)


def test_what_is_missing_is_missed(capsys: pytest.CaptureFixture[str]) -> None:
    missed = outcome(capsys, plainly=True)
    assert missed == outcome(capsys, plainly=False)
    assert missed[0] == 2
    assert "Missing argument" in str(missed[1])


@pytest.mark.parametrize("words", PLAIN)
def test_typer_is_not_asked_about_plain_values(
    words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: object) -> None:
        raise AssertionError("Typer was asked")

    monkeypatch.setattr("typer.core.build_runtime_param", ask)
    code, _, *given = outcome(capsys, "needed", *words.split(" "), plainly=True)
    assert code == 0
    assert given
