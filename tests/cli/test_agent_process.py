"""Commands that are for people refuse to run in an agent's process."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from quarterdeck.cli import main
from quarterdeck.cli.app import app
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.runtime.agent_process import FREE, AgentRefused
from quarterdeck.service.local_hub import CLI_TOKEN, own_token
from quarterdeck.testing import RealCli, ScriptedModel, isolated_env
from quarterdeck.testing.script import Text, ToolUse, play
from support.hub_house import house
from support.processes import Processes


def every_command() -> list[list[str]]:
    """Each command with as many words as it needs to be run."""
    found: list[list[str]] = []

    def walk(group: TyperGroup, path: list[str]) -> None:
        for name, command in group.commands.items():
            if isinstance(command, TyperGroup):
                walk(command, [*path, name])
                continue
            words = [*path, name]
            for parameter in command.params:
                if not parameter.required:
                    continue
                option = parameter.opts[0].startswith("-")
                words += [parameter.opts[0], "1"] if option else ["1"]
            found.append(words)

    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    walk(group, [])
    return found


FOR_PEOPLE = [words for words in every_command() if words[0] not in FREE]


@pytest.mark.parametrize("words", FOR_PEOPLE, ids=" ".join)
def test_a_command_for_people_refuses_an_agent_and_does_nothing(
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("QUARTERDECK_RUN_0a", "1")
    code = main(words)
    said = capsys.readouterr().err
    if code == 2:  # its words were not right: then it does nothing either, for nobody
        assert said.startswith("quarterdeck: give ") or "Usage:" in said
    else:
        assert code == 4
        assert f"quarterdeck {words[0]} is reserved for people" in said
    assert not (tmp_path / "data").exists()


def test_the_commands_that_speak_for_a_person_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUARTERDECK_LINK_0a", "1")
    for command in (["asks"], ["answer", "1", "allow"], ["send", "1", "x"], ["token", "list"]):
        assert main(command) == 4


def test_help_and_version_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUARTERDECK_RUN_0a", "1")
    assert main(["--version"]) == 0
    assert main(["answer", "--help"]) == 0


def test_help_as_the_value_of_an_option_is_no_way_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUARTERDECK_RUN_0a", "1")
    assert main(["token", "--name", "--help"]) == 4


def test_the_token_of_the_commands_is_not_given_to_an_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert own_token(tmp_path)
    monkeypatch.setenv("QUARTERDECK_RUN_0a", "1")
    with pytest.raises(AgentRefused, match="started by an agent"):
        own_token(tmp_path)
    (tmp_path / CLI_TOKEN).unlink()
    with pytest.raises(AgentRefused):
        own_token(tmp_path)
    assert not (tmp_path / CLI_TOKEN).exists()


@pytest.mark.anyio
@pytest.mark.real_cli
async def test_a_program_of_an_agent_has_the_mark_and_is_refused(
    tmp_path: Path, model: ScriptedModel, clis: dict[str, RealCli], processes: Processes
) -> None:
    """No rule can see what a script does; skipped permissions have nobody asked."""
    work = tmp_path / "work"
    for folder in (tmp_path / "home", work):
        folder.mkdir()
    command = f"'{sys.executable}' -m quarterdeck.cli"
    script = work / "answer.sh"
    script.write_text(
        f"env | grep -c ^QUARTERDECK_RUN_ >marks\n"
        f"{command} asks >asks 2>&1; echo $? >>asks\n"
        f"{command} answer 1 allow >answer 2>&1; echo $? >>answer\n"
    )
    spec = SessionSpec(
        directory=str(work),
        claude=clis["2.1.325"].command[-1],
        env=isolated_env(tmp_path / "home", model.url),
        mode="bypassPermissions",
        skip_permissions=True,
    )
    turn = play(ToolUse("Bash", {"command": "sh ./answer.sh"}), Text("done"))
    async with house(tmp_path, processes) as home:
        session = await home.new(spec, json.dumps(turn).encode())
        await home.until(session, lambda view: view.turns == 1)
    assert (work / "marks").read_text() == "1\n"
    for name in ("asks", "answer"):
        said, code = (work / name).read_text().splitlines()
        assert said.startswith(f"quarterdeck: quarterdeck {name} is reserved for people")
        assert code == "4"
