"""Variables and shell options: which of them change what commands do."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell import read
from quarterdeck.policy.shell.environment import (
    assignment_effect,
    export_effect,
    finds_hidden,
    lasting_doubt,
)
from quarterdeck.policy.shell.script import Assignment
from quarterdeck.policy.shell.word_reader import read_word


@pytest.mark.parametrize("name", ["LANG", "TZ", "NO_COLOR", "LC_ALL", "GIT_AUTHOR_NAME", "CI"])
def test_colours_languages_and_dates_may_be_set_anywhere(name: str) -> None:
    assert lasting_doubt(name) is None
    assert assignment_effect(Assignment(name=name, value=read_word("x"))) is None
    assert export_effect(f"{name}=x") is None
    assert export_effect(name) is None


@pytest.mark.parametrize(
    "name",
    ["PATH", "IFS", "LD_PRELOAD", "BASH_ENV", "GIT_SSH_COMMAND", "PYTHONPATH", "NODE_OPTIONS"],
)
def test_what_programs_look_at_counts_wherever_it_is_set(name: str) -> None:
    assert lasting_doubt(name) == f"{name} changes the effect of later commands"
    before = assignment_effect(Assignment(name=name, value=read_word("x")))
    assert before is not None
    assert before.token == f"{name}="
    for text, token in ((f"{name}=x", f"{name}="), (name, name)):
        effect = export_effect(text)
        assert effect is not None
        assert effect.token == token


@pytest.mark.parametrize(
    ("name", "value", "harmless"),
    [
        ("GIT_PAGER", "cat", True),
        ("PAGER", "cat", True),
        ("PAGER", "'cat x'", False),
        ("PAGER", "$x", False),
        ("GIT_EDITOR", "true", True),
        ("GIT_EDITOR", "vim", False),
        ("PATH", "cat", False),
    ],
)
def test_a_pager_or_an_editor_that_does_nothing_is_harmless(
    name: str, value: str, harmless: bool
) -> None:
    effect = assignment_effect(Assignment(name=name, value=read_word(value)))
    assert (effect is None) is harmless


def test_a_name_that_nobody_knows_counts_once_a_program_sees_it() -> None:
    assert lasting_doubt("note") is None
    assert export_effect("note") is None
    assert assignment_effect(Assignment(name="note", value=read_word("x"))) is not None
    assert export_effect("note=x") is not None


def test_names_are_whole_names() -> None:
    assert lasting_doubt("MYPATH") is None
    assert lasting_doubt("PATHS") is None
    assert lasting_doubt("LANGX") is None


@pytest.mark.parametrize(
    "command",
    [
        "shopt -s dotglob",
        "setopt globdots",
        "source a",
        ". a",
        "set -o dotglob",
        "set $x",
        "bash -O dotglob -c a",
        "GLOBIGNORE=a ls",
    ],
)
def test_some_commands_let_patterns_find_hidden_names(command: str) -> None:
    assert any(finds_hidden(part) for part in read(command, cwd="/w").parts)


@pytest.mark.parametrize(
    "command", ["set -euo pipefail", "set -x", "set --", "bash -c a", "ls *", "LANG=C ls *"]
)
def test_most_commands_do_not(command: str) -> None:
    assert not any(finds_hidden(part) for part in read(command, cwd="/w").parts)
