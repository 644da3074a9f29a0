"""Variables and shell options: which of them change what commands do."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell import read
from quarterdeck.policy.shell.environment import exported, finds_hidden, set_alone, set_before
from quarterdeck.policy.shell.script import Assignment
from quarterdeck.policy.shell.words import word


@pytest.mark.parametrize("name", ["LANG", "TZ", "NO_COLOR", "LC_ALL", "GIT_AUTHOR_NAME", "CI"])
def test_colours_languages_and_dates_may_be_set_anywhere(name: str) -> None:
    assert set_alone(name) is None
    assert set_before(Assignment(name=name, value=word("x"))) is None
    assert exported(f"{name}=x") is None
    assert exported(name) is None


@pytest.mark.parametrize(
    "name",
    ["PATH", "IFS", "LD_PRELOAD", "BASH_ENV", "GIT_SSH_COMMAND", "PYTHONPATH", "NODE_OPTIONS"],
)
def test_what_programs_look_at_counts_wherever_it_is_set(name: str) -> None:
    assert set_alone(name) == f"{name} changes what later commands do"
    before = set_before(Assignment(name=name, value=word("x")))
    assert before is not None
    assert before.token == f"{name}="
    for text, token in ((f"{name}=x", f"{name}="), (name, name)):
        effect = exported(text)
        assert effect is not None
        assert effect.token == token


def test_a_name_that_nobody_knows_counts_once_a_program_sees_it() -> None:
    assert set_alone("note") is None
    assert exported("note") is None
    assert set_before(Assignment(name="note", value=word("x"))) is not None
    assert exported("note=x") is not None


def test_names_are_whole_names() -> None:
    assert set_alone("MYPATH") is None
    assert set_alone("PATHS") is None
    assert set_alone("LANGX") is None


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
